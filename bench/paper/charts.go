package paper

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stillwater-rpc/stillwater/bench/paper/published"
	"github.com/stillwater-rpc/stillwater/bench/report"
)

// color is a scheme's in all charts.
func (s Scheme) color() int { return slices.Index(Schemes(), s) + 1 }

// charts draws a figure, one chart per plot: ours as lines, the published points as markers.
func (r *Report) charts(f figure, all []Comparison) (charts []report.LineChart) {
	switch f.name {
	case "F7":
		return spikeCharts(all)
	case "F11":
		return cloudCharts(all)
	}
	for _, g := range plots(f, all) {
		charts = append(charts, r.chart(f, g))
	}
	return charts
}

// chart draws one plot.
func (r *Report) chart(f figure, g group) report.LineChart {
	c := report.LineChart{
		Title: f.name + " " + g.title(), Caption: "Lines: our runs. Markers: the published points.",
		XFormat: report.Count, YLabel: g.metric.axis(), YFormat: g.metric.format(), LogY: g.metric.isTime(),
	}
	places := g.places()
	c.XLabel, c.XNames = axisOf(places)
	for i, name := range g.curves() {
		s := report.Series{Name: g.label(name), Markers: []report.Point{}}
		for _, v := range g.cells {
			if v.curve() != name {
				continue
			}
			s.Color, s.Dashed = v.Scheme.color(), v.Parts != (Parts{}) && v.Parts != whole
			if g.scheme != "" {
				s.Color, s.Dashed = i+1, false
			}
			x := v.X
			if len(c.XNames) > 0 {
				x = float64(slices.IndexFunc(places, func(o Comparison) bool { return o.sameX(v.Cell) }))
			}
			s.Points = append(s.Points, report.Point{X: x, Y: v.Ours})
			if v.Row != nil {
				s.Markers = append(s.Markers, report.Point{X: x, Y: v.Published})
			}
		}
		slices.SortFunc(s.Points, func(a, b report.Point) int { return cmp.Compare(a.X, b.X) })
		c.Series = append(c.Series, s)
	}
	c.HLines = r.references(g)
	return focus(c, g)
}

// Where a plot ends, in published values: schemes that refuse most at the server, or that collapse, would else flatten all others. Load
// curves are not cut below, since their left end is there.
const (
	timeShown  = 3.0 // times the highest
	dropsShown = 2.5 // times the highest
	rateShown  = 0.9 // of the lowest
)

// focus cuts a plot off where nothing published is near.
func focus(c report.LineChart, g group) report.LineChart {
	var values []float64
	for _, v := range g.cells {
		if v.Row != nil {
			values = append(values, v.Published)
		}
	}
	switch {
	case len(values) == 0:
	case g.metric == DropRatio && highest(values) > 0:
		c.YMax = roundUp(dropsShown * highest(values))
		c.Caption += " What drops far more than was published leaves the picture at the top."
	case g.metric.isTime():
		c.YMax = roundUp(timeShown * highest(values))
		c.Caption += " What is far slower than was published leaves the picture at the top."
	case g.metric.isRate() && len(c.XNames) > 0 && lowest(values) > highest(values)/2:
		c.YMin = -roundUp(-rateShown * lowest(values))
		c.Caption += " What is far lower than was published leaves the picture at the bottom."
	}
	return c
}

// roundUp rounds to a multiple of half the power of ten below v, so that the axis ends at a label or near one.
func roundUp(v float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))) / 2
	return math.Ceil(v/step) * step
}

// references are the capacity or the SLO, where it is one for the whole plot.
func (r *Report) references(g group) []report.HLine {
	var values []float64
	for _, c := range g.cells {
		p := c.Point
		switch {
		case g.metric == Goodput || g.metric == Throughput:
			values = append(values, r.Results[p].CapacityPerS)
		case g.metric.isTime():
			values = append(values, float64(r.Plan.Points[p].SLO))
		}
	}
	if len(values) == 0 || !(lowest(values) > 0) || highest(values) > 1.001*lowest(values) {
		return nil
	}
	if g.metric.isTime() {
		return []report.HLine{{Y: values[0], Label: "SLO " + report.Duration.Text(values[0])}}
	}
	return []report.HLine{{Y: values[0], Label: "capacity " + report.Count.Text(values[0]) + "/s"}}
}

// axisOf names the X of a plot, and its categories where it has some.
func axisOf(places []Comparison) (label string, names []string) {
	switch places[0].XName {
	case published.ServiceShape:
		label = "distribution of the service time, mean 10 µs"
	case published.Clients:
		label = "clients"
	case published.AlphaBeta:
		label = "additive increase alpha, multiplicative decrease beta"
	default:
		return "demand, requests per second", nil
	}
	for _, p := range places {
		names = append(names, strings.ReplaceAll(p.XText, "/", " / "))
	}
	return label, names
}

// axis names a metric's axis.
func (m Metric) axis() string {
	switch m {
	case Goodput:
		return "goodput, answers within the SLO per second"
	case Throughput:
		return "throughput, answers per second"
	case MedianLatency:
		return "median latency, logarithmic"
	case P99Latency:
		return "p99 latency, logarithmic"
	case DropRatio:
		return "dropped by the server, of what reached it"
	case RxRate:
		return "packets received by the server per second"
	case TxRate:
		return "packets sent by the server per second"
	}
	return "mean delay of a reject, logarithmic"
}

// format is how its axis is written.
func (m Metric) format() report.Format {
	switch {
	case m.isRate():
		return report.Count
	case m.isTime():
		return report.Duration
	}
	return report.Percent
}

// The spike in s, and what is shown before and after it where all schemes are drawn together.
const (
	spikeFrom   = 4.0
	spikeMiddle = 5.0
	spikeMargin = 0.3
)

// spikeCharts draws F7: each published scheme beside ours of it, then all of ours together.
func spikeCharts(all []Comparison) (charts []report.LineChart) {
	for _, m := range []Metric{Goodput, P99Latency, RejectDelay} {
		together := spikeChart(m, "our runs about the spike")
		for _, scheme := range Schemes() {
			var ours, theirs []report.Point
			for _, c := range all {
				if c.Scheme != scheme || c.Metric != m || c.Point < 0 {
					continue
				}
				ours = append(ours, report.Point{X: c.X, Y: c.Ours})
				if c.Row != nil {
					theirs = append(theirs, report.Point{X: c.X, Y: c.Published})
				}
			}
			if len(ours) == 0 {
				continue
			}
			line := report.Series{Name: string(scheme), Color: scheme.color(), Points: ours}
			near := line
			near.Points = slices.DeleteFunc(slices.Clone(ours), func(p report.Point) bool {
				return math.Abs(p.X-spikeMiddle) > spikeMiddle-spikeFrom+spikeMargin
			})
			together.Series = append(together.Series, near)
			if len(theirs) > 0 {
				c := spikeChart(m, string(scheme))
				c.Series = []report.Series{{Name: "published", Reference: true, Points: theirs}, line}
				charts = append(charts, c)
			}
		}
		if len(together.Series) > 0 {
			charts = append(charts, together)
		}
	}
	return charts
}

// spikeChart is a chart over the time of F7, with the spike shaded.
func spikeChart(m Metric, who string) report.LineChart {
	c := report.LineChart{
		Title: fmt.Sprintf("F7 %s: %s", m, who), Caption: "Windows of 20 ms.", XLabel: "time, s", YLabel: m.axis(), YFormat: m.format(), LogY: m.isTime(),
		Spans: []report.Span{{From: spikeFrom, To: spikeFrom + stagePublished.Seconds(), Label: "the demand is 1.2M/s"}},
	}
	if m == RejectDelay {
		c.Caption = "Windows of 20 ms; one without a reject has no value."
	}
	return c
}

// cloudCharts draws F11, a chart per scheme.
func cloudCharts(all []Comparison) (charts []report.LineChart) {
	for _, k := range cloudsOf(all) {
		c := report.LineChart{
			Title: "F11 " + string(k.scheme), Caption: "Each marker is one of 27 settings. Right and low is better, and so is a small cloud.",
			XLabel: "throughput, answers per second", XFormat: report.Count, YLabel: P99Latency.axis(), YFormat: report.Duration, LogY: true,
		}
		if len(k.published) > 0 {
			c.Series = append(c.Series, report.Series{Name: "published", Color: publishedColor, Markers: k.published})
		}
		c.Series = append(c.Series, report.Series{Name: "our runs", Color: k.scheme.color(), Markers: k.ours})
		charts = append(charts, c)
	}
	return charts
}

// publishedColor is the slate of the palette, which None has in the charts of several schemes.
const publishedColor = 6
