package client

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// One late call in fifty leaves it where it is; it never is more than the target, or less than nothing.
func TestLate(t *testing.T) {
	var l Late
	const target = 128 * us
	l.Met(target)
	if l.By() != 0 {
		t.Errorf("%v when no call was late", l.By())
	}
	for range lateSteps + 5 {
		l.Missed(target)
	}
	if l.By() != target {
		t.Errorf("%v when all are late: no more than the target, %v", l.By(), target)
	}
	for range lateSteps / 2 {
		for range lateShare {
			l.Met(target)
		}
	}
	if l.By() != target/2 {
		t.Errorf("%v after half of what leads back to nothing", l.By())
	}
	for range 100 {
		l.Missed(target)
		for range lateShare {
			l.Met(target)
		}
	}
	if l.By() < target/2-target/lateSteps || l.By() > target/2+target/lateSteps {
		t.Errorf("%v with one late in fifty, and %v before", l.By(), target/2)
	}
	for range 2 * lateSteps * lateShare {
		l.Met(target)
	}
	if l.By() != 0 {
		t.Errorf("%v when none is late any more", l.By())
	}
	l.Missed(0) // a server that says nothing of a target
	l.Met(0)
	if l.By() != 0 {
		t.Errorf("%v without a target", l.By())
	}
}

// Whatever the distribution of what the estimates leave out, one call in fifty comes to be late, if so much is left to take off.
func TestLateIsAQuantile(t *testing.T) {
	const target, spare = 80 * us, 20 * us // what calls have left beyond the estimates
	for name, rest := range map[string]func(*rand.Rand) time.Duration{
		"exponential": func(rng *rand.Rand) time.Duration { return time.Duration(rng.ExpFloat64() * float64(12*us)) },
		"uniform":     func(rng *rand.Rand) time.Duration { return time.Duration(rng.IntN(int(50 * us))) },
	} {
		rng := rand.New(rand.NewPCG(1, 1))
		var l Late
		late, calls := 0, 40_000
		for i := range 2 * calls {
			if rest(rng) > spare+l.By() {
				l.Missed(target)
				if i >= calls {
					late++
				}
			} else {
				l.Met(target)
			}
		}
		if share := float64(late) / float64(calls); math.Abs(share-1./lateShare) > 0.004 {
			t.Errorf("%s: %.2f %% are late", name, 100*share)
		}
	}
}

// Of an invited share at least a half is taken, and all where all are invited.
func TestLateTakes(t *testing.T) {
	const target, all = 80 * us, 127
	for _, x := range []struct {
		missed      int
		share, want uint8
	}{
		{0, 60, 60}, {0, 0, 0},
		{1, 60, 59}, {lateSteps / 2, 60, 40}, {lateSteps, 60, 30}, {2 * lateSteps, 60, 30}, {lateSteps, 126, 63},
		{lateSteps, 3, 2}, {lateSteps, 2, 1}, {lateSteps, 1, 1}, {lateSteps, 0, 0},
		{lateSteps, all, all},
	} {
		var l Late
		for range x.missed {
			l.Missed(target)
		}
		if got := l.Takes(x.share, all, target); got != x.want {
			t.Errorf("%d late: takes %d of %d, want %d", x.missed, got, x.share, x.want)
		}
	}
	var l Late
	l.Missed(target)
	if got := l.Takes(60, all, 0); got != 60 {
		t.Errorf("of a server without a target it takes %d of 60", got)
	}
}
