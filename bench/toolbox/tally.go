package toolbox

import (
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// tally counts the calls that end, in slices of time.
type tally struct {
	w       *sim.World
	within  time.Duration // from when it was made: later is no goodput
	slice   time.Duration // 0 = none
	from    time.Duration // what is made before does not count
	made    int
	good    int
	answers int
	refused int
	latency []time.Duration // of the answers
	series  []float64       // good, by slice
}

// observe takes a call that ended.
func (t *tally) observe(o *sim.Observation) {
	t.end(o.Call.Outcome, o.Made.Sub(t.w.Instant(0)), o.Latency)
}

// end counts a call that was made at an instant and took so long.
func (t *tally) end(outcome dispatcher.Outcome, made, latency time.Duration) {
	if made < t.from {
		return
	}
	t.made++
	switch outcome {
	case dispatcher.OutcomeOK:
		t.answers++
		t.latency = append(t.latency, latency)
		if latency <= t.within {
			t.good++
			t.count(made + latency)
		}
	case dispatcher.OutcomeRejected, dispatcher.OutcomeExpired, dispatcher.OutcomeQueueFull, dispatcher.OutcomeThrottled:
		t.refused++
	}
}

func (t *tally) count(at time.Duration) {
	if t.slice == 0 {
		return
	}
	i := int(at / t.slice)
	for len(t.series) <= i {
		t.series = append(t.series, 0)
	}
	t.series[i] += 1 / t.slice.Seconds()
}

// p99 is of the answers; zero without any.
func (t *tally) p99() time.Duration {
	if len(t.latency) == 0 {
		return 0
	}
	slices.Sort(t.latency)
	return t.latency[(len(t.latency)*99-1)/100]
}

// per is a count per second, over the time that counts.
func (t *tally) per(count int) float64 { return float64(count) / (t.w.Elapsed() - t.from).Seconds() }
