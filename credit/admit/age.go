package admit

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Age bounds a queue in time by what was learnt of a method's service: a request is let in only if its deadline leaves room for its wait and for the
// method's p99, and is started only if what remains covers the mean, or the p99 where others wait that have more. A bound of exactly the deadline is a
// knife edge: the queue stands where the next one is just too late, and a server that runs what is likely to be late has less time for the others (experiment E1).
//
// The p99 counts as at most half of what a request brings along: where one in fifty takes longer than anybody waits, the others are still worth it. What is
// refused gives no sample, so many refusals without one doubt the estimates, a little each: neither can shut a server for good. The zero Age knows
// nothing, and refuses only what is over.
type Age struct {
	mean  client.Learnt
	tail  Tail
	quiet uint32 // refusals since the last sample
	// served is the mean without any doubt.
	served client.Learnt
}

// doubtAfter is how many refusals without a sample are no reason to doubt: a server that is offered so many times what it can do refuses as many for each
// that it serves. Who doubted each time would expect an eighth too little at one and a half times the capacity, and let in as much too much.
const doubtAfter = 32

// doubtPart is the part of the mean that Refused takes off at the most, while requests are served.
const doubtPart = 4

// Sample learns a service time; one below zero is left out.
func (a *Age) Sample(service time.Duration) {
	if service < 0 {
		return
	}
	a.quiet = 0
	a.mean.Sample(service)
	a.served.Sample(service)
	a.tail.Sample(service)
}

// Expected is the learnt mean of the service time; zero before the first sample.
func (a *Age) Expected() time.Duration { return a.mean.Mean() }

// Tail is the learnt 99th percentile of the service time, never below the mean.
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
	a.refused()
	return false
}

// Start reports whether a request that was taken from the queue is still worth running. It arrived then, and others wait behind it or not.
func (a *Age) Start(now, arrived, deadline clock.Time, others bool) bool {
	if deadline == 0 {
		return true
	}
	needs := a.Expected()
	if others {
		needs = max(needs, min(a.Tail(), deadline.Sub(arrived)/2))
	}
	if left := deadline.Sub(now); left > 0 && left >= needs {
		return true
	}
	a.refused()
	return false
}

func (a *Age) refused() {
	if a.quiet++; a.quiet > doubtAfter {
		a.Doubt()
	}
}

// Refused is for each request that was refused by Expected, and not by Admit or Start: it doubts the estimates. While others are served it takes no more off than a part,
// for they would tell if the mean were that wrong: where a service takes long, and twenty are refused for each that is served, the mean sank to an eighth, and half of what was run by it was too late.
func (a *Age) Refused() {
	a.quiet++
	if a.quiet > doubtAfter || a.mean.Mean() > a.served.Mean()-a.served.Mean()/doubtPart {
		a.Doubt()
	}
}

// Doubt lowers the estimates by a 64th.
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
