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
	if got, ok := g.Whole(0, 0.95); got != 200*time.Millisecond+90*time.Millisecond || !ok {
		t.Errorf("whole after %v, %v", got, ok)
	}
	if got, ok := g.Whole(250*ms, 0.95); got != 0 || !ok {
		t.Errorf("whole all along: after %v, %v", got, ok)
	}
	if _, ok := g.Whole(0, 1.01); ok {
		t.Error("whole, by a share that is not to be had")
	}
	if _, ok := NewGoodput(nil, 0).Whole(0, 0); ok {
		t.Error("nothing is whole")
	}
}
