package admit

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Age bounds a queue in time by what was learnt of a method's service: a request is let in only if its deadline leaves room for its wait and for the
// method's p99, and is started only if what remains covers the mean. A bound of exactly the deadline is a knife edge: everything would be
// served just too late, and a bound that only drops what is over already serves as little (experiment E1).
//
// The p99 counts as at most half of what a request brings along: where one in fifty takes longer than anybody waits, the others are still worth it. Each
// refusal doubts the estimates a little, since what is refused gives no sample: neither can shut a server for good. The zero Age knows nothing, and refuses
// only what is over.
type Age struct {
	mean client.Learnt
	tail Tail
}

// Sample learns a service time; one below zero is left out.
func (a *Age) Sample(service time.Duration) {
	if service < 0 {
		return
	}
	a.mean.Sample(service)
	a.tail.Sample(service)
}

// Expected is the learnt mean, and Tail the learnt p99, never below it; zero before the first sample.
func (a *Age) Expected() time.Duration { return a.mean.Mean() }

// Tail is the learnt 99th percentile of the service time.
func (a *Age) Tail() time.Duration { return max(a.tail.Value(), a.mean.Mean()) }

// Admit reports whether a request that will wait for so long can be answered by its deadline; zero = it has none.
func (a *Age) Admit(now, deadline clock.Time, wait time.Duration) bool {
	if deadline == 0 {
		return true
	}
	left := deadline.Sub(now)
	if left > 0 && wait+max(min(a.Tail(), left/2), a.Expected()) <= left {
		return true
	}
	a.Doubt()
	return false
}

// Start reports whether a request that was taken from the queue is still worth running.
func (a *Age) Start(now, deadline clock.Time) bool {
	if deadline == 0 {
		return true
	}
	if left := deadline.Sub(now); left > 0 && left >= a.Expected() {
		return true
	}
	a.Doubt()
	return false
}

// Doubt lowers the estimates a little. Who refuses by them otherwise than by Admit and Start must call it each time.
func (a *Age) Doubt() {
	a.mean.Doubt()
	a.tail.doubt()
}

// tailGain is the share by which a sample above the estimate raises it, or nearly: by 0.99 of it, and one below lowers it by 0.01 of it.
const tailGain = 1. / 16

// Tail follows the 99th percentile of a duration in one number (stochastic approximation: Robbins and Monro, 1951; in the log, so that it is as good for
// microseconds as for seconds). It doubles within 12 samples above it, and halves within 1,100 below it; where it stands still, one in a hundred is above it.
// The zero Tail knows nothing.
type Tail struct{ ns float64 }

// Sample learns one duration.
func (t *Tail) Sample(d time.Duration) {
	switch v := float64(d); {
	case t.ns == 0:
		t.ns = max(v, 1)
	case v > t.ns:
		t.ns *= 1 + 0.99*tailGain
	default:
		t.ns = max(t.ns*(1-0.01*tailGain), 1)
	}
}

// Value is the estimate; zero before the first sample.
func (t *Tail) Value() time.Duration { return time.Duration(t.ns) }

// doubt lowers the estimate as client.Learnt.Doubt does the mean.
func (t *Tail) doubt() { t.ns -= t.ns / 64 }
