package paper

import (
	"fmt"
	"math"
	"time"
)

// settings adds the 27 settings per scheme of F11. The paper plots them without saying which they are; these halve and double each of
// the three settings of a scheme about its tuned value, or less where the scheme would stop to work.
func (b *planner) settings(f figure) error {
	for _, scheme := range []Scheme{Stillwater, BreakwaterArtifact, BreakwaterPaper, DAGOR, SEDA} {
		if !b.wanted(scheme) {
			continue
		}
		p, err := f.setUp("27sets", "", "", math.NaN(), b.plan.Size)
		if err != nil {
			return err
		}
		p.Scheme = scheme
		if scheme.hasCredits() {
			p.Parts = whole
		}
		for i := range 27 {
			var text string
			p.Tuning, text = setting(scheme, i%3, i/3%3, i/9)
			for _, metric := range []Metric{Throughput, P99Latency} {
				b.plan.Cells = append(b.plan.Cells, Cell{
					Figure: f.name, Panel: "27sets", Scheme: scheme, Parts: p.Parts, XText: text, X: math.NaN(), Metric: metric,
					Point: b.point(p), Published: math.NaN(), Error: math.NaN(),
				})
			}
		}
	}
	return nil
}

// setting returns one of the 27 of a scheme, and its name.
func setting(scheme Scheme, i, j, k int) (t Tuning, name string) {
	const us = time.Microsecond
	switch scheme {
	case DAGOR:
		t.DAGOR = DAGORTuning{
			Threshold: []time.Duration{50 * us, 70 * us, 90 * us}[k],
			Alpha:     []float64{0.025, dagorAlpha, 0.10}[i],
			Beta:      []float64{0.005, dagorBeta, 0.02}[j],
		}
		d := t.DAGOR
		return t, fmt.Sprintf("q%d a%g%%/b%g%%", d.Threshold/us, 100*d.Alpha, 100*d.Beta)
	case SEDA:
		t.SEDA = SEDATuning{
			Target: []time.Duration{60 * us, 80 * us, 100 * us}[k],
			AdjI:   []float64{20, 40, 80}[i],
			AdjD:   []float64{1.02, 1.04, 1.08}[j],
		}
		s := t.SEDA
		return t, fmt.Sprintf("t%d i%g/d%g", s.Target/us, s.AdjI, s.AdjD)
	}
	target := []time.Duration{60 * us, 80 * us, 100 * us}[k]
	t.Breakwater = BreakwaterTuning{
		Alpha: []float64{0.0005, breakwaterAlpha, 0.002}[i], Beta: []float64{0.01, breakwaterBeta, 0.04}[j],
		TargetDelay: target, DropThreshold: 2 * target,
	}
	w := t.Breakwater
	return t, fmt.Sprintf("t%d a%g%%/b%g%%", target/us, 100*w.Alpha, 100*w.Beta)
}
