package credit

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// TestGovernor: frozen the pool stays, under a ceiling it is no larger, and both let go.
func TestGovernor(t *testing.T) {
	b := NewBreakwater(BreakwaterConfig{Workers: 4})
	b.Resize(1000)
	now := clock.Time(1)
	update := func(targets time.Duration, times int) uint64 {
		for range times {
			now = now.Add(periodMin)
			b.Update(now, Signal{Delay: targets * b.Target()}, Load{Issued: b.Pool(), Active: true})
		}
		return b.Pool()
	}
	grown := update(0, 100)
	if grown < 100 {
		t.Fatalf("a pool of %d", grown)
	}
	var g Governor = b
	g.Freeze(true)
	for _, targets := range []time.Duration{0, 3} {
		if got := update(targets, 100); got != grown {
			t.Errorf("frozen at %d, and now %d", grown, got)
		}
	}
	g.Freeze(false)
	for _, c := range []struct{ ceiling, want uint64 }{{10, 10}, {1, 1}, {math.MaxUint64, grown}, {0, grown}} { // below the workers, too
		if g.Ceiling(c.ceiling); b.Pool() != c.want {
			t.Errorf("ceiling %d: a pool of %d, want %d", c.ceiling, b.Pool(), c.want)
		}
	}
	g.Ceiling(10)
	if got := update(0, 1000); got != 10 {
		t.Errorf("grew to %d under a ceiling of 10", got)
	}
	// Under the ceiling the floor holds, above it answers take credits back.
	for issued, want := range map[uint64]uint64{10: 1, 11: 0} {
		if got := b.Window(Holding{Issued: issued, Window: 1}); got != want {
			t.Errorf("%d issued: a window of %d, want %d", issued, got, want)
		}
	}
	g.Ceiling(0)
	if got := b.Pool(); got < 10 || got > 10*grown {
		t.Errorf("%d when it is lifted", got)
	}
}
