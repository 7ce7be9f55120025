package client

import "time"

// RTT is a smoothed round-trip time and its variation, as TCP keeps them (RFC 6298, section 2). The zero RTT knows
// nothing. Samples leave out the time that the peer held the packet, so they are the network's alone.
type RTT struct {
	smoothed  time.Duration
	variation time.Duration
}

// sampleMax bounds what one wrong sample can do; no echo is held for longer than a second.
const sampleMax = time.Second

// Sample adds a measurement. One below zero, of a peer whose clock or echo is wrong, is left out; one above a second
// counts as one.
func (r *RTT) Sample(rtt time.Duration) {
	if rtt < 0 {
		return
	}
	rtt = max(min(rtt, sampleMax), 1) // zero would mean "unknown"
	if r.smoothed == 0 {
		r.smoothed, r.variation = rtt, rtt/2
		return
	}
	deviation := (r.smoothed - rtt).Abs()
	r.variation += (deviation - r.variation) / 4
	r.smoothed = max(r.smoothed+(rtt-r.smoothed)/8, 1)
}

// Known reports whether there was a sample.
func (r *RTT) Known() bool { return r.smoothed != 0 }

// Smoothed is the smoothed round trip; zero when unknown.
func (r *RTT) Smoothed() time.Duration { return r.smoothed }

// Variation is the smoothed mean deviation.
func (r *RTT) Variation() time.Duration { return r.variation }

// Timeout is how long to wait for an answer that takes the peer no time: the round trip and four variations, at least
// floor. To retransmit a request under overload wait for the drop threshold and the service besides.
func (r *RTT) Timeout(floor time.Duration) time.Duration {
	return max(r.smoothed+4*r.variation, floor)
}

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
		d = min(d, outlierFactor*max(l.mean, 1))
		l.mean += (d - l.mean + 8) / 16 // rounded, or a mean of a few nanoseconds could not grow
	}
}

// Doubt lowers the mean by a 64th. What was refused on the word of the mean gives no sample, so a mean that is wrong
// would stay wrong for ever; who refuses by it must call this each time, and now and then one gets through.
func (l *Learnt) Doubt() { l.mean -= l.mean / 64 }

// outlierFactor is how many means a sample counts at most.
const outlierFactor = 8

// Mean returns the mean; zero when nothing was measured.
func (l *Learnt) Mean() time.Duration { return l.mean }
