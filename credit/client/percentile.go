package client

import "time"

// Percentile follows a percentile of durations without keeping them: stochastic approximation (Robbins and Monro, 1951) on a logarithmic scale. A sample above the estimate raises
// it by q/16 of itself, one below lowers it by (1-q)/16, so it stands still where a share q of the samples is below it. It follows a change by the factor 100 within
// 100 / (1-q) samples, and strays by about a tenth (an exponential distribution at its 95th percentile).
//
// Only whether a sample is above the estimate counts, not by how much. So a measurement that was broken off above it, such as that of a hedged call whose
// hedge won, is as good as a whole one.
type Percentile struct {
	q, value float64
	samples  int
}

const (
	percentileStep    = 1.0 / 16         // once it is settled
	percentileStart   = 1.0              // of the first samples, falling with their number: one that is far off is soon mended
	percentileKnown   = 32               // samples from which the estimate is used
	percentileFloor   = 1.0              // ns
	percentileCeiling = float64(1 << 62) // ns, or it would not fit into a duration
	percentileOctave  = 0.5              // a step never halves the value
)

// NewPercentile makes one for a share q of the samples, like 0.95.
func NewPercentile(q float64) Percentile { return Percentile{q: min(max(q, 0), 1)} }

// Sample adds a measurement; one below zero is left out.
func (p *Percentile) Sample(d time.Duration) {
	if d < 0 {
		return
	}
	p.samples++
	if p.samples == 1 {
		p.value = max(float64(d), percentileFloor)
		return
	}
	step := max(percentileStart/float64(min(p.samples, percentileKnown)), percentileStep)
	if float64(d) > p.value {
		p.value = min(p.value*(1+step*p.q), percentileCeiling)
	} else {
		p.value = max(p.value*(1-min(step*(1-p.q), percentileOctave)), percentileFloor)
	}
}

// Value returns the estimate, and whether there were enough samples to believe it.
func (p *Percentile) Value() (d time.Duration, known bool) {
	return time.Duration(p.value), p.samples >= percentileKnown
}
