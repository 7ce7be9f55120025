package client

import "time"

// Learnt is an exponentially weighted mean of a duration, such as a method's service time, over about 16 samples. A sample
// counts as at most eight times the mean: a host that takes the CPU away for 40 ms in the middle of 10 us of work would
// otherwise make the next hundred requests look hopeless. Bimodal work (a fifth of it at four times the mean) is not touched
// by that, of an exponential distribution 0.03 %. The zero Learnt knows nothing and is zero.
type Learnt struct {
	mean  time.Duration
	known bool
}

// Sample adds a measurement; one below zero is left out.
func (l *Learnt) Sample(d time.Duration) {
	switch {
	case d < 0:
	case !l.known:
		l.mean, l.known = d, true
	default:
		d = min(d, outlierFactor*max(l.mean, outlierBase)) // from a base, or a mean of a few nanoseconds could not grow
		l.mean += (d - l.mean + 8) / 16
	}
}

// Doubt lowers the mean by a 64th. What was refused on the word of the mean gives no sample, so a mean that is wrong
// would stay wrong for ever; who refuses by it must call this each time, and now and then one gets through.
func (l *Learnt) Doubt() { l.mean -= l.mean / 64 }

// A sample counts as at most outlierFactor means, or outlierFactor bases if that is more.
const (
	outlierFactor = 8
	outlierBase   = 100 * time.Nanosecond
)

// Mean returns the mean; zero when nothing was measured.
func (l *Learnt) Mean() time.Duration { return l.mean }
