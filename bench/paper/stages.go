package paper

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// stage is what one scheme did in one stage of F7, ours and published.
type stage struct {
	scheme          Scheme
	index           int
	ours, published windows
}

// windows are values of windows, one after the other.
type windows struct{ goodput, p99 []float64 }

// stagesOf gathers the windows of each scheme and stage.
func stagesOf(all []Comparison) (list []*stage) {
	for _, scheme := range Schemes() {
		stages := make([]*stage, len(spikeDemand))
		for i := range stages {
			stages[i] = &stage{scheme: scheme, index: i}
		}
		found := false
		for _, c := range all {
			if c.Scheme != scheme || c.Point < 0 || c.Window == 0 {
				continue
			}
			found = true
			s := stages[min(int((c.X-windowWidth.Seconds()/2)/stagePublished.Seconds()), len(stages)-1)]
			s.add(c)
		}
		if found {
			list = append(list, stages...)
		}
	}
	return list
}

// add takes a window's value, ours and published.
func (s *stage) add(c Comparison) {
	s.ours.add(c.Metric, c.Ours)
	if c.Row != nil {
		s.published.add(c.Metric, c.Published)
	}
}

func (w *windows) add(m Metric, v float64) {
	switch {
	case math.IsNaN(v): // the p99 of a window without an answer
	case m == Goodput:
		w.goodput = append(w.goodput, v)
	case m == P99Latency:
		w.p99 = append(w.p99, v)
	}
}

// lowest and highest of no values are NaN.
func lowest(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Min(values)
}

func highest(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Max(values)
}

// stageColumns are the columns of stage.cells.
var stageColumns = []report.Column{
	{Title: "scheme", Width: 19, Left: true}, {Title: "from", Unit: "s", Width: 4}, {Title: "demand", Unit: "k/s", Width: 6},
	{Title: "goodput", Unit: "published", Width: 9}, {Title: "goodput", Unit: "ours, k/s", Width: 9}, {Title: "off", Unit: "%", Width: 7},
	{Title: "lowest", Unit: "published", Width: 9}, {Title: "lowest", Unit: "ours, k/s", Width: 9},
	{Title: "worst p99", Unit: "published", Width: 10}, {Title: "worst p99", Unit: "ours, µs", Width: 10},
}

// cells are the cells of a stage's line.
func (s *stage) cells() []string {
	ours, published := mean(s.ours.goodput), mean(s.published.goodput)
	return []string{
		string(s.scheme), fmt.Sprint(s.index * int(stagePublished/time.Second)), fmt.Sprintf("%.0f", spikeDemand[s.index]/perRate),
		Goodput.number(published), Goodput.number(ours), percent((ours - published) / published),
		Goodput.number(lowest(s.published.goodput)), Goodput.number(lowest(s.ours.goodput)),
		P99Latency.number(highest(s.published.p99)), P99Latency.number(highest(s.ours.p99)),
	}
}

// stages prints F7 by its stages.
func (s *show) stages(all []Comparison) error {
	t := report.NewTable(s.out, s.options.Colour, stageColumns...)
	for _, st := range stagesOf(all) {
		if err := t.Row(anys(st.cells())...); err != nil {
			return err
		}
	}
	for _, why := range reasons(all) {
		if err := t.Line(why); err != nil {
			return err
		}
	}
	return nil
}

// anys is for Table.Row.
func anys(texts []string) []any {
	cells := make([]any, len(texts))
	for i, text := range texts {
		cells[i] = text
	}
	return cells
}

// cloud is the range of one scheme's 27 settings in F11.
type cloud struct {
	scheme          Scheme
	ours, published []report.Point // throughput and p99
}

// cloudsOf gathers the settings of each scheme.
func cloudsOf(all []Comparison) (clouds []cloud) {
	for _, scheme := range Schemes() {
		k := cloud{scheme: scheme}
		throughput := math.NaN()
		for _, c := range all {
			switch {
			case c.Scheme != scheme || c.Row != nil && c.Metric != P99Latency: // the tuned point once
			case c.Row != nil:
				k.published = append(k.published, report.Point{X: c.X, Y: c.Published})
			case c.Metric == Throughput:
				throughput = c.Ours
			default:
				k.ours = append(k.ours, report.Point{X: throughput, Y: c.Ours})
			}
		}
		if len(k.ours) > 0 {
			clouds = append(clouds, k)
		}
	}
	return clouds
}

// cells are the cells of a cloud's line.
func (k cloud) cells() []string {
	span := func(points []report.Point, m Metric) string {
		if len(points) == 0 {
			return dash
		}
		var values []float64
		for _, p := range points {
			v := p.X
			if m.isTime() {
				v = p.Y
			}
			values = append(values, v)
		}
		return m.number(slices.Min(values)) + " to " + m.number(slices.Max(values))
	}
	return []string{string(k.scheme), span(k.published, Throughput), span(k.ours, Throughput), span(k.published, P99Latency), span(k.ours, P99Latency)}
}

// cloudColumns are the columns of cloud.cells.
var cloudColumns = []report.Column{
	{Title: "scheme", Width: 19, Left: true}, {Title: "throughput", Unit: "published", Width: 16}, {Title: "throughput", Unit: "ours, k/s", Width: 16},
	{Title: "p99", Unit: "published", Width: 16}, {Title: "p99", Unit: "ours, µs", Width: 16},
}

// clouds prints F11 by the ranges of its settings.
func (s *show) clouds(all []Comparison) error {
	t := report.NewTable(s.out, s.options.Colour, cloudColumns...)
	for _, k := range cloudsOf(all) {
		if err := t.Row(anys(k.cells())...); err != nil {
			return err
		}
	}
	return nil
}
