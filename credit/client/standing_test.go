package client

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// A queue that stands is found within as many answers as the doc says, and forgotten sooner.
func TestStanding(t *testing.T) {
	const target = 80 * us
	var s Standing
	samples := 0
	for ; s.Delay() < target*99/100; samples++ {
		s.Sample(target, target)
	}
	if samples > standingSteps {
		t.Errorf("%d answers until it is found", samples)
	}
	s.Sample(10*us, 0) // a server without a target: the smallest step
	for range 2 * standingSteps {
		s.Sample(60*us, target)
	}
	if got := s.Delay(); got > 60*us || got < 60*us-standingDown*target/standingSteps {
		t.Errorf("all wait 60 us, and it says %v", got)
	}
	for samples = 0; s.Delay() > 0; samples++ {
		s.Sample(-us, target)
	}
	if samples > standingSteps/standingDown+1 {
		t.Errorf("%d answers until it is forgotten", samples)
	}
}

// A queue that runs empty for a fifth of those that come does not stand, however long it is for the others; one that does for a
// twentieth does.
func TestStandingIsNoBurst(t *testing.T) {
	rng := seedtest.Rand(t)
	const target, samples = 80 * us, 20_000
	for _, c := range []struct {
		empty    float64
		from, to time.Duration
	}{{0.2, 0, 8 * us}, {0.05, 40 * us, target}} {
		var s Standing
		var sum time.Duration
		for i := range 2 * samples {
			wait := time.Duration(0)
			if rng.Float64() > c.empty {
				wait = target
			}
			s.Sample(wait, target)
			if i >= samples {
				sum += s.Delay()
			}
		}
		if mean := sum / samples; mean < c.from || mean > c.to {
			t.Errorf("%v of all find it empty: %v on average", c.empty, mean)
		}
	}
}
