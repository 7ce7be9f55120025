package session

import "time"

// RTT is the smoothed value and mean deviation of a duration, after RFC 6298, section 2, but robust: a sample counts as
// at most twice the estimate. A peer that loses its CPU for 4 ms between reading the clock and sending makes one sample a
// hundred times too large; taken as it is, that would slow everything that is timed by round trips for the next fifty. A
// path that really became slower is followed all the same, by an eighth a sample. The zero value has seen no sample.
type RTT struct {
	smoothed  time.Duration
	deviation time.Duration
}

// outlierMin is never an outlier: doubling a few nanoseconds, an eighth of it at a time, would get nowhere.
const outlierMin = time.Microsecond

// Sample takes one measurement. Zero and values below it are measurement errors and are ignored.
func (r *RTT) Sample(d time.Duration) {
	switch {
	case d <= 0:
		return
	case r.smoothed == 0:
		r.smoothed, r.deviation = d, d/2
	default:
		d = min(d, max(2*r.smoothed, outlierMin))
		r.deviation += ((r.smoothed - d).Abs() - r.deviation) / 4
		r.smoothed += (d - r.smoothed) / 8
	}
}

// Doubt lowers the estimate by a 64th: for who acts on its word in a way that brings no new sample.
func (r *RTT) Doubt() { r.smoothed -= r.smoothed / 64 }

// Smoothed is the estimate, and zero before the first sample.
func (r *RTT) Smoothed() time.Duration { return r.smoothed }

// Bound is the estimate plus four deviations: what nearly every sample stays below.
func (r *RTT) Bound() time.Duration { return r.smoothed + 4*r.deviation }
