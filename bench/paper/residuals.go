package paper

import (
	"fmt"
	"math"
	"slices"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// How far from 0 a residual plot goes at most. What lies beyond is in the table; with it in the picture the tolerance could not be seen.
const (
	ratesShown   = 0.3
	timesShown   = 1.0
	windowsShown = 0.5
)

// residualCharts draws how far ours is from each published point: one chart for rates, one for latencies. Drops are shares of a few
// percent whose residuals say little; they stand in the table.
func residualCharts(f figure, all []Comparison) (charts []report.LineChart) {
	if f.name == "F7" {
		return []report.LineChart{windowResiduals(all)}
	}
	rates := residualChart(f.name+" residuals of rates", ratesShown, numbered(all), Metric.isRate)
	times := residualChart(f.name+" residuals of latencies", timesShown, numbered(all), func(m Metric) bool { return m == P99Latency || m == MedianLatency })
	for _, c := range []report.LineChart{rates, times} {
		if len(c.Series) > 0 {
			charts = append(charts, c)
		}
	}
	return charts
}

func residualChart(title string, shown float64, rows []Comparison, include func(Metric) bool) report.LineChart {
	c := report.LineChart{
		Title: title, Caption: "Ours less published, of published. Points are numbered as in the table below.",
		XLabel: "number of the point", YLabel: "away from the published value", YFormat: report.Percent,
		HLines: []report.HLine{{Y: 0, Label: "published"}},
	}
	largest, allowed := 0.0, 0.0
	for _, scheme := range Schemes() {
		s := report.Series{Name: string(scheme), Color: scheme.color()}
		for i, row := range rows {
			if row.Scheme != scheme || !include(row.Metric) || math.IsNaN(row.Residual) {
				continue
			}
			s.Markers = append(s.Markers, report.Point{X: float64(i + 1), Y: row.Residual})
			largest, allowed = max(largest, math.Abs(row.Residual)), max(allowed, row.Tolerance)
		}
		if len(s.Markers) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	if allowed > 0 {
		label := fmt.Sprintf("allowed to %s: ±%s", BreakwaterArtifact, report.Percent.Text(allowed))
		c.HLines = append(c.HLines, report.HLine{Y: allowed, Label: label}, report.HLine{Y: -allowed})
	}
	if largest > shown {
		c.YMin, c.YMax = -shown, shown
		c.Caption += fmt.Sprintf(" Some are beyond ±%s and not in the picture.", report.Percent.Text(shown))
	}
	return c
}

// windowResiduals draws those of F7's goodput over time.
func windowResiduals(all []Comparison) report.LineChart {
	c := report.LineChart{
		Title: "F7 residuals of goodput", Caption: "Ours less published, of published, by window. Where the published goodput is 0 there is none.",
		XLabel: "time, s", YLabel: "away from the published value", YFormat: report.Percent, YMin: -windowsShown, YMax: windowsShown,
		HLines: []report.HLine{{Y: 0, Label: "published"}},
	}
	for _, scheme := range slices.Backward(Schemes()) { // ours in front
		s := report.Series{Name: string(scheme), Color: scheme.color()}
		for _, row := range numbered(all) {
			if row.Scheme == scheme && row.Metric == Goodput && !math.IsNaN(row.Residual) {
				s.Points = append(s.Points, report.Point{X: row.X, Y: row.Residual})
			}
		}
		if len(s.Points) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	return c
}
