//go:build linux

package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bench/prove"
)

func TestMain(m *testing.M) {
	prove.Children()
	os.Exit(m.Run())
}

// What must hold however slow the machine is: one outcome a request, no handler twice, and books that balance.
func TestBadNetworkKeepsTheBooks(t *testing.T) {
	labtest.Require(t)
	r := prove.NewRun("faulty", 1)
	e, err := measure(context.Background(), r, settings{
		sessions: 20, slo: 200 * time.Microsecond, patient: 20 * time.Millisecond,
		window: 30 * time.Millisecond, warmup: 5 * time.Millisecond, calibrate: 30 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, arms := range e.steps {
		for _, rounds := range arms {
			for _, s := range rounds {
				if s.Violations > 0 || len(s.Disagreements) > 0 {
					t.Errorf("%.1f times capacity, deadline %v, %v %% faults: violations %q, disagreements %q",
						s.Load, s.Deadline, 100*s.Fault, s.Examples, s.Disagreements)
				}
			}
		}
	}
	if err := e.show(r); err != nil {
		t.Fatal(err)
	}
}
