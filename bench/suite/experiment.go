package suite

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// Suite is a set of experiments that are run and shown alike.
type Suite struct {
	Title      string // of the page
	Schema     string // of the objects of JSON
	Arm        string // what the lines of a point differ in, as in "scheme"
	Conditions string // what holds in all of them, in a few words
	Kinds      Kinds
	// Experiments are all of them, in the order of their numbers.
	Experiments []*Experiment
	// Line is a figure that may be drawn as a line across a chart, with its label; "" = none.
	Line, LineLabel string
}

// Experiment is one experiment.
type Experiment struct {
	ID    string // as in "E12"
	Title string
	About string // what is done, and how to read the figures

	Figures []string // of the table, in its order
	Charts  []Chart
	Course  *Course // nil = none
	Jobs    func(Size) []Job
	Derive  func(*Row)           // adds figures that come of a whole series; nil = none
	Judge   func(*Table) []Check // of all lines together
}

// Chart is a figure that is drawn over the places of the points of each panel.
type Chart struct {
	Figure string
	Title  string
	X      string // what the place is
	Named  bool   // places are at equal distances, by the names of the points
	Line   bool   // with the suite's line
	LogY   bool
}

// Job is one line of a table: an arm at a point, to be run with several seeds.
type Job struct {
	Panel   string  // what points are drawn together
	At      string  // and which of them it is
	X       float64 // its place in the drawing
	Arm     string
	Clients int  // where the acceptance depends on it
	Seeds   int  // 0 = the size's
	Alone   bool // measures the machine that it runs on, so nothing runs beside it
	Play    func(ctx context.Context, seed uint64) (Sample, error)
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
	Arm     string
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
	suite  *Suite
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

// Row finds a line; nil if it was not run.
func (t *Table) Row(point, arm string) *Row {
	for _, r := range t.Rows {
		if r.Point() == point && r.Arm == arm {
			return r
		}
	}
	return nil
}

// Of are the lines of an arm.
func (t *Table) Of(arm string) (rows []*Row) {
	for _, r := range t.Rows {
		if r.Arm == arm {
			rows = append(rows, r)
		}
	}
	return rows
}

// Bound checks a figure of some lines against a bound each, and names the line that is nearest to it or farthest beyond it.
func (k Kinds) Bound(text string, rows []*Row, figure string, limit float64, atLeast bool) Check {
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
	kind := k.Of(figure)
	c := Check{bad == 0, fmt.Sprintf("%s %s %s: %s at %s, %s", text, word, kind.Text(limit), kind.Text(worst.Mean(figure)), worst.Point(), worst.Arm)}
	if bad > 0 && len(rows) > 1 {
		c.Text += fmt.Sprintf("; %d of %d lines miss it", bad, len(rows))
	}
	return c
}

// Collapse is the check of a control arm: if it does not collapse, the harness is wrong.
func (k Kinds) Collapse(rows []*Row, figure string, limit float64) Check {
	return k.Bound("the control arm collapses: "+k.Of(figure).Title, rows, figure, limit, false)
}

// Only keeps the lines that f wants.
func Only(rows []*Row, f func(*Row) bool) (kept []*Row) {
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

// Kind is how a figure is written.
type Kind struct {
	Title, Unit string
	Width       int
	Decimals    int
	Divide      float64 // the figure by this is what is written
	Format      report.Format
}

// Kinds are those of all figures, by their names, which end in their units.
type Kinds map[string]Kind

// KindOf makes a Kind in one line.
func KindOf(title, unit string, width, decimals int, divide float64, format report.Format) Kind {
	return Kind{Title: title, Unit: unit, Width: width, Decimals: decimals, Divide: divide, Format: format}
}

// Of is a figure's kind; one that nobody has described is a plain number.
func (k Kinds) Of(figure string) Kind {
	if kind, found := k[figure]; found {
		return kind
	}
	return Kind{Title: figure, Width: 10, Decimals: 2, Divide: 1}
}

// Text writes a value with its unit.
func (k Kind) Text(v float64) string {
	if math.IsNaN(v) {
		return "nothing"
	}
	text := fmt.Sprintf("%.*f", k.Decimals, v/k.Divide)
	if k.Unit != "" {
		text += " " + k.Unit
	}
	return text
}
