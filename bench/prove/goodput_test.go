//go:build linux

package prove

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/checker"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

func TestGoodput(t *testing.T) {
	const ms = clock.Time(time.Millisecond)
	var endings []checker.Ending
	for due := clock.Time(0); due < 400*ms; due += ms {
		e := checker.Ending{Due: due, Finished: due + ms}
		if due >= 100*ms && due < 150*ms {
			e.Outcome = checker.Unknown
		}
		if due >= 150*ms && due < 200*ms {
			e.Finished = due + 50*ms // answered, and too late
		}
		endings = append(endings, e)
	}
	g := NewGoodput(endings, 5*time.Millisecond)
	if got := g.Share(0, 100*ms); got != 1 {
		t.Errorf("before: %v", got)
	}
	if got := g.Share(100*ms, 200*ms); got != 0 {
		t.Errorf("while it is away: %v", got)
	}
	if got := g.Share(500*ms, 600*ms); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	if got, ok := g.Recovery(120*ms, 0.95); got != 80*time.Millisecond || !ok {
		t.Errorf("recovery after %v, %v", got, ok)
	}
	if _, ok := g.Recovery(350*ms, 0.95); ok {
		t.Error("a recovery was seen in less than a window")
	}
}

func TestGoodputWhole(t *testing.T) {
	const ms = clock.Time(time.Millisecond)
	// good has a request each 10 ms for 5 s, of which those fail that arise in one of the spans.
	good := func(spans ...[2]clock.Time) *Goodput {
		var endings []checker.Ending
		for due := clock.Time(0); due < 5000*ms; due += 10 * ms {
			e := checker.Ending{Due: due, Finished: due + ms}
			for _, span := range spans {
				if due >= span[0] && due < span[1] {
					e.Outcome = checker.Unknown
				}
			}
			endings = append(endings, e)
		}
		return NewGoodput(endings, 5*time.Millisecond)
	}
	for _, c := range []struct {
		name string
		g    *Goodput
		want clock.Time
		ok   bool
	}{
		{"all along", good(), 0, true},
		{"a while", good([2]clock.Time{0, 1500 * ms}), 1500 * ms, true},
		{"one request later", good([2]clock.Time{0, 1500 * ms}, [2]clock.Time{3000 * ms, 3010 * ms}), 1500 * ms, true},
		{"a fifth of a second later", good([2]clock.Time{0, 500 * ms}, [2]clock.Time{3000 * ms, 3200 * ms}), 3200 * ms, true},
		{"never", good([2]clock.Time{0, 5000 * ms}), 4990 * ms, false},
		{"only before the end", good([2]clock.Time{4900 * ms, 5000 * ms}), 0, true},
		{"not at the end", good([2]clock.Time{4000 * ms, 5000 * ms}), 4990 * ms, false},
		{"nothing", NewGoodput(nil, 0), 0, false},
	} {
		if got, ok := c.g.Whole(0, 0.95); got != time.Duration(c.want) || ok != c.ok {
			t.Errorf("%s: after %v, %v; want %v, %v", c.name, got, ok, time.Duration(c.want), c.ok)
		}
	}
}
