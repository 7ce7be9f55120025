package paper

import (
	"math"
	"slices"
	"strings"
)

// Comparison is a cell with its value from the run.
type Comparison struct {
	Cell
	Ours float64 // in the unit of Metric; NaN where the run has none
	// Residual is ours less published, as a share of published. It is NaN without one of them, where published is 0, and where it is
	// a lower bound that ours is not below.
	Residual  float64
	Tolerance float64 // the largest Residual, either way, that is still a match; 0 = not judged
}

// Judged reports whether a tolerance was fixed for the cell beforehand.
func (c Comparison) Judged() bool { return c.Tolerance > 0 }

// Within reports whether the residual is within the tolerance. A value that is missing is not.
func (c Comparison) Within() bool { return math.Abs(c.Residual) <= c.Tolerance }

// rateTolerances are for goodput, and for throughput in F9 a, of breakwater-artifact.
var rateTolerances = map[string]float64{"F3": 0.03, "F4": 0.03, "F6": 0.03, "F5": 0.05, "F8": 0.05, "F9": 0.05, "F12": 0.05}

// p99Tolerance is for the p99 of breakwater-artifact, in all of those figures that have one.
const p99Tolerance = 0.15

// tolerance returns how far ours may be from the published value. The other schemes are judged by their order and their recovery, since
// their settings are known less exactly; so are the windows of F7, since each holds the noise of one run.
func tolerance(c Cell) float64 {
	rate := rateTolerances[c.Figure]
	switch {
	case c.Row == nil || c.Scheme != BreakwaterArtifact || c.Window != 0 || c.AtLeast():
		return 0
	case c.Metric == Goodput || c.Metric == Throughput:
		return rate
	case c.Metric == P99Latency && rate > 0:
		return p99Tolerance
	}
	return 0
}

// compare reads the cells from their results.
func compare(cells []Cell, results []Result) []Comparison {
	all := make([]Comparison, len(cells))
	for i, c := range cells {
		v := Comparison{Cell: c, Ours: math.NaN(), Residual: math.NaN()}
		if c.Point >= 0 {
			v.Ours = c.read(results[c.Point])
			v.Tolerance = tolerance(c)
		}
		if v.Published > 0 && (!c.AtLeast() || v.Ours < v.Published) {
			v.Residual = (v.Ours - v.Published) / v.Published
		}
		all[i] = v
	}
	return all
}

// Summary is the residuals of one metric of one scheme in one figure.
type Summary struct {
	Figure   string
	Metric   Metric
	Curve    string
	Compared int     // rows that have a residual
	Median   float64 // of the residuals' sizes
	Largest  float64 // of the residuals by size, with its sign
	At       string  // where that is
	Judged   int     // rows with a tolerance
	Within   int     // of those
}

// summarize groups the comparisons with published rows.
func summarize(all []Comparison) []Summary {
	type group struct {
		figure string
		metric Metric
		curve  string
	}
	var order []group
	members := map[group][]Comparison{}
	for _, c := range all {
		if c.Row == nil || c.Point < 0 {
			continue
		}
		g := group{c.Figure, c.Metric, c.curve()}
		if members[g] == nil {
			order = append(order, g)
		}
		members[g] = append(members[g], c)
	}
	summaries := make([]Summary, 0, len(order))
	for _, g := range order {
		s := Summary{Figure: g.figure, Metric: g.metric, Curve: g.curve, Median: math.NaN(), Largest: math.NaN()}
		var sizes []float64
		for _, c := range members[g] {
			if c.Judged() {
				s.Judged++
				if c.Within() {
					s.Within++
				}
			}
			if math.IsNaN(c.Residual) {
				continue
			}
			s.Compared++
			sizes = append(sizes, math.Abs(c.Residual))
			if !(math.Abs(c.Residual) <= math.Abs(s.Largest)) { // also the first, beside NaN
				s.Largest, s.At = c.Residual, strings.TrimPrefix(c.Panel+" "+c.xLabel(), "- ")
			}
		}
		s.Median = median(sizes)
		summaries = append(summaries, s)
	}
	return summaries
}

// median sorts values; of none it is NaN.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
