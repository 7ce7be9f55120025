package experiments

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// Experiment is one experiment.
type Experiment struct {
	ID    string // as in "E12"
	Title string
	About string // what is done, and how to read the figures

	figures []string // of the table, in its order
	charts  []chart
	jobs    func(Size) []job
	derive  func(*Row)           // adds figures that come of a whole series; nil = none
	judge   func(*Table) []Check // of all lines together
}

// chart is a figure drawn over the places of the points of each panel.
type chart struct {
	figure string
	title  string
	x      string // what the place is
	named  bool   // places are at equal distances, by the names of the points
	slo    bool   // with a line at slo_ns
	logY   bool
}

// Experiments are all of them, in the order of their numbers.
func Experiments() []*Experiment {
	return []*Experiment{e6(), e12(), e13(), e14(), e15(), e16(), e17(), e18(), e21(), e22()}
}

// job is one line of a table: a scheme at a point, to be run with several seeds.
type job struct {
	panel   string  // what points are drawn together
	at      string  // and which of them it is
	x       float64 // its place in the drawing
	scheme  string
	clients int  // where the acceptance depends on it
	seeds   int  // 0 = the size's
	alone   bool // measures the machine that it runs on, so nothing runs beside it
	play    func(ctx context.Context, seed uint64) (Sample, error)
}

// Sample is what one run measured.
type Sample struct {
	Figures map[string]float64 // by their names, which end in their units
	Series  []float64          // goodput over time, where the experiment is about that
}

// Row is one line of a table.
type Row struct {
	Panel   string
	At      string
	X       float64
	Scheme  string
	Clients int
	Samples []Sample // a seed each
	Derived map[string]float64
}

// Point names the row's place.
func (r *Row) Point() string { return strings.TrimPrefix(r.Panel+", "+r.At, ", ") }

// Mean is a figure, averaged over the seeds; NaN where there is none.
func (r *Row) Mean(figure string) float64 {
	if v, found := r.Derived[figure]; found {
		return v
	}
	var sum float64
	for _, s := range r.Samples {
		v, found := s.Figures[figure]
		if !found {
			return math.NaN()
		}
		sum += v
	}
	return sum / float64(len(r.Samples))
}

// Series is the goodput over time, averaged over the seeds.
func (r *Row) Series() []float64 {
	mean := make([]float64, len(r.Samples[0].Series))
	for _, s := range r.Samples {
		for i, v := range s.Series {
			mean[i] += v / float64(len(r.Samples))
		}
	}
	return mean
}

// Table is an experiment with its results.
type Table struct {
	*Experiment
	Size   Size
	Rows   []*Row
	Checks []Check
}

// Check is a part of the acceptance.
type Check struct {
	Met  bool
	Text string // what was to come out, and the figure that did
}

// String is the line of the check.
func (c Check) String() string {
	if c.Met {
		return "ok      " + c.Text
	}
	return "MISSED  " + c.Text
}

// row finds a line; nil if it was not run.
func (t *Table) row(point, scheme string) *Row {
	for _, r := range t.Rows {
		if r.Point() == point && r.Scheme == scheme {
			return r
		}
	}
	return nil
}

// of are the lines of a scheme.
func (t *Table) of(scheme string) (rows []*Row) {
	for _, r := range t.Rows {
		if r.Scheme == scheme {
			rows = append(rows, r)
		}
	}
	return rows
}

// bound checks a figure of some lines against a bound each, and names the line that is nearest to it or farthest beyond it.
func bound(text string, rows []*Row, figure string, limit float64, atLeast bool) Check {
	worst, bad := (*Row)(nil), 0
	margin := math.Inf(1)
	for _, r := range rows {
		m := limit - r.Mean(figure)
		if atLeast {
			m = -m
		}
		if !(m >= 0) {
			bad++
		}
		if worst == nil || m < margin || math.IsNaN(m) {
			worst, margin = r, m
		}
	}
	if worst == nil {
		return Check{false, text + ": nothing was run"}
	}
	word := "at most"
	if atLeast {
		word = "at least"
	}
	kind := kindOf(figure)
	c := Check{bad == 0, fmt.Sprintf("%s %s %s: %s at %s, %s", text, word, kind.text(limit), kind.text(worst.Mean(figure)), worst.Point(), worst.Scheme)}
	if bad > 0 && len(rows) > 1 {
		c.Text += fmt.Sprintf("; %d of %d lines miss it", bad, len(rows))
	}
	return c
}

// collapse is the check of a control arm: if it does not collapse, the harness is wrong.
func collapse(rows []*Row, figure string, limit float64) Check {
	return bound("the control arm collapses: "+kindOf(figure).title, rows, figure, limit, false)
}

// only keeps the lines that f wants.
func only(rows []*Row, f func(*Row) bool) (kept []*Row) {
	for _, r := range rows {
		if f(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// Size is how much is run.
type Size struct {
	Name   string
	Calls  int           // measured at each point and seed
	Seeds  int           // of each line
	Warmup time.Duration // with 10 us of service
	Full   bool          // all points, and figures of the machine that runs it
}

// Small is what a test runs: a seed, and few points.
func Small() Size { return Size{Name: "small", Calls: 25_000, Seeds: 1, Warmup: 30 * time.Millisecond} }

// Full is for claims: half a million calls at each point, in ten runs of a seed each.
func Full() Size {
	return Size{Name: "full", Calls: 50_000, Seeds: 10, Warmup: 100 * time.Millisecond, Full: true}
}

// kind is how a figure is written.
type kind struct {
	title, unit string
	width       int
	decimals    int
	divide      float64
	format      report.Format
}

func kindOf(figure string) kind {
	if k, found := kinds[figure]; found {
		return k
	}
	return kind{title: figure, width: 10, decimals: 2, divide: 1}
}

// text writes a value with its unit.
func (k kind) text(v float64) string {
	if math.IsNaN(v) {
		return "nothing"
	}
	text := fmt.Sprintf("%.*f", k.decimals, v/k.divide)
	if k.unit != "" {
		text += " " + k.unit
	}
	return text
}
