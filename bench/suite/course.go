package suite

import (
	"time"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// Course has the goodput over time of each point drawn, a curve an arm: for experiments whose subject is what happens after some trouble.
type Course struct {
	Every time.Duration // a window of the samples' series
	// Trouble is when it lasts, in a series so long, and what it is.
	Trouble func(r *Row, length time.Duration) (from, to time.Duration, what string)
}

// coursePoints bounds the points of a curve: more cannot be told apart, and their noise would hide the curve. Longer series are averaged.
const coursePoints = 300

// courses draws a chart for each point.
func (t *Table) courses() (all []report.LineChart) {
	if t.Course == nil {
		return nil
	}
	charts := map[string]int{}
	for _, r := range t.Rows {
		series := r.Series()
		if len(series) == 0 {
			continue
		}
		at, found := charts[r.Point()]
		if !found {
			at = len(all)
			charts[r.Point()] = at
			from, to, what := t.Course.Trouble(r, time.Duration(len(series))*t.Course.Every)
			all = append(all, report.LineChart{
				Title: "Goodput over time, " + r.Point(), XLabel: "time", YLabel: "answers/s", XFormat: report.Duration, YFormat: report.Count,
				Spans: []report.Span{{From: float64(from), To: float64(to), Label: what}},
			})
		}
		curves := &all[at].Series
		*curves = append(*curves, report.Series{Name: r.Arm, Color: len(*curves) + 1, Points: t.Course.points(series)})
	}
	return all
}

// points places the windows at their middles.
func (c *Course) points(series []float64) (points []report.Point) {
	per := (len(series) + coursePoints - 1) / coursePoints
	for from := 0; from < len(series); from += per {
		windows := series[from:min(from+per, len(series))]
		var sum float64
		for _, v := range windows {
			sum += v
		}
		n := float64(len(windows))
		points = append(points, report.Point{X: (float64(from) + n/2) * float64(c.Every), Y: sum / n})
	}
	return points
}
