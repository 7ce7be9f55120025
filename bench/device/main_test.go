//go:build linux

package main

import (
	"context"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/checker"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bench/prove"
)

// What must hold however slow the machine is: one outcome a request, and all frames.
func TestDeviceFaultsKeepTheBooks(t *testing.T) {
	labtest.Require(t)
	r := prove.NewRun("device", 4)
	e, err := measure(context.Background(), r, settings{sessions: 4, rate: 500, holdMax: 50 * time.Millisecond, restMax: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if e.violations > 0 || e.requests == 0 {
		t.Errorf("%d violations in %d requests: %s", e.violations, e.requests, e.example)
	}
	for _, one := range e.rounds {
		if one.Frames != "" {
			t.Errorf("after %s: %s", one.Fault, one.Frames)
		}
	}
	if err := e.show(r); err != nil {
		t.Fatal(err)
	}
}

// TestLedger tells each kind of violation from what is right.
func TestLedger(t *testing.T) {
	for _, test := range []struct {
		name       string
		executions int
		outcomes   []checker.Outcome
		wrong      bool
	}{
		{"answered", 1, []checker.Outcome{checker.OK}, false},
		{"failed", 1, []checker.Outcome{checker.Failed}, false},
		{"refused", 0, []checker.Outcome{checker.Rejected}, false},
		{"unknown, ran", 1, []checker.Outcome{checker.Unknown}, false},
		{"unknown, did not run", 0, []checker.Outcome{checker.Unknown}, false},
		{"no outcome", 1, nil, true},
		{"two outcomes", 1, []checker.Outcome{checker.OK, checker.OK}, true},
		{"ran twice", 2, []checker.Outcome{checker.Unknown}, true},
		{"answered and never ran", 0, []checker.Outcome{checker.OK}, true},
		{"refused and ran", 1, []checker.Outcome{checker.Rejected}, true},
		{"never sent and ran", 1, []checker.Outcome{checker.NeverSent}, true},
	} {
		l := newLedger(1)
		mark := l.Mark()
		for range test.executions {
			l.Executed(checker.Execution{Mark: mark})
		}
		for _, o := range test.outcomes {
			l.Ended(checker.Ending{Mark: mark, Outcome: o})
		}
		if _, _, violations, example := l.check(); violations > 0 != test.wrong {
			t.Errorf("%s: %d violations: %s", test.name, violations, example)
		}
	}
	l := newLedger(1)
	for range 2 {
		l.Ended(checker.Ending{Mark: l.Mark()})
	}
	if _, _, violations, _ := l.check(); violations != 1 {
		t.Errorf("a request beyond the room: %d violations", violations)
	}
}
