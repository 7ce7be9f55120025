package session

import "time"

// RTT is the smoothed value and mean deviation of a duration (RFC 6298, section 2, without its clock granularity). The zero
// value has seen no sample.
type RTT struct {
	smoothed  time.Duration
	deviation time.Duration
}

// Sample takes one measurement. Values below zero are measurement errors and are ignored.
func (r *RTT) Sample(d time.Duration) {
	switch {
	case d < 0:
		return
	case r.smoothed == 0:
		r.smoothed, r.deviation = d, d/2
	default:
		r.deviation += ((r.smoothed - d).Abs() - r.deviation) / 4
		r.smoothed += (d - r.smoothed) / 8
	}
}

// Smoothed is the estimate, and zero before the first sample.
func (r *RTT) Smoothed() time.Duration { return r.smoothed }

// Bound is the estimate plus four deviations: what nearly every sample stays below.
func (r *RTT) Bound() time.Duration { return r.smoothed + 4*r.deviation }
