package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// page is the report with the curves.
func (s *simulation) page(command string) report.Page {
	page := report.Page{Title: "What overload control does for this server", Command: command, Verdict: s.verdict()}
	first := s.points[0]
	page.Passed = first.share() >= goodShare && first.LatencyNsP99 <= float64(first.SLONs)
	charts := []report.LineChart{}
	if len(s.Loads) > 0 {
		sweep := s.curves()
		charts = append(charts, sweep.Goodput(), sweep.Latency(), sweep.Refusals())
		last := s.points[len(s.points)-max(len(s.Schemes), 1)]
		page.Passed = last.share() >= goodShare && last.LatencyNsP99 <= float64(last.SLONs)
	} else if len(first.Windows) > 0 {
		charts = s.timelines()
	}
	facts := []report.Fact{
		{Name: "simulated", Value: s.setup()}, {Name: "capacity", Value: fmt.Sprintf("%.0f/s", first.CapacityPerS)},
		{Name: "SLO", Value: time.Duration(first.SLONs).String()}, {Name: "seed", Value: strconv.FormatUint(first.Seed, 10)},
	}
	page.Facts = append(facts, report.MachineFacts()...)
	page.Sections = []report.Section{
		{Title: "What a user sees", Text: "Calls are made whether or not earlier ones were answered (open loop, Poisson).", Charts: charts},
		{Title: "All numbers", Tables: []report.DataTable{s.numbers()}},
	}
	return page
}

// verdict says what was seen under the highest load.
func (s *simulation) verdict() string {
	schemes := max(len(s.Schemes), 1)
	last := s.points[len(s.points)-schemes:]
	text := "Under this demand"
	if len(s.Loads) > 0 {
		text = fmt.Sprintf("At %v times its capacity", s.Loads[len(s.Loads)-1])
	}
	for i, p := range last {
		if i > 0 {
			text += ";"
		}
		text += fmt.Sprintf(" %s keeps %.0f %% of what can be had within %v (p99 %v)",
			p.Scheme, 100*min(p.share(), 1), time.Duration(p.SLONs), round(p.LatencyNsP99))
	}
	return text + "."
}

// round leaves three digits or so.
func round(ns float64) time.Duration {
	d := time.Duration(ns)
	return d.Round(max(time.Duration(math.Pow(10, math.Floor(math.Log10(max(ns, 1)))-2)), 1))
}

// arms are the results by scheme, in the order of the schemes.
func (s *simulation) arms() (names []string, of map[string][]simPoint) {
	of = make(map[string][]simPoint)
	for _, p := range s.points {
		if of[p.Scheme] == nil {
			names = append(names, p.Scheme)
		}
		of[p.Scheme] = append(of[p.Scheme], p)
	}
	return names, of
}

// curves are over the load.
func (s *simulation) curves() report.Sweep {
	sweep := report.Sweep{CapacityPerS: s.points[0].CapacityPerS, SLO: time.Duration(s.points[0].SLONs)}
	names, of := s.arms()
	for _, name := range names {
		arm := report.Arm{Name: name}
		for _, p := range of[name] {
			var calls uint64
			for _, n := range p.Outcomes {
				calls += n
			}
			arm.Points = append(arm.Points, report.LoadPoint{
				OfferedPerS: p.OfferedPerS, GoodputPerS: p.GoodputPerS, LatencyNsP99: p.LatencyNsP99, LatencyNsP999: math.NaN(),
				RejectedPerS: p.OfferedPerS * float64(p.Outcomes["rejected"]) / float64(max(calls, 1)), ExpiredPerS: p.OfferedPerS * p.DropRatioClient,
			})
		}
		sweep.Arms = append(sweep.Arms, arm)
	}
	return sweep
}

// timelines are over the time.
func (s *simulation) timelines() []report.LineChart {
	first := s.points[0]
	goodput := report.LineChart{
		Title: "Goodput over time", Caption: fmt.Sprintf("Answers within the SLO of %v, by windows of %v. Higher is better.", time.Duration(first.SLONs), time.Duration(s.Window)),
		XLabel: "time, s", YLabel: "goodput, answers per second", YFormat: report.Count,
		Series: []report.Series{s.asked()},
		HLines: []report.HLine{{Y: first.CapacityPerS, Label: "capacity " + report.Count.Text(first.CapacityPerS) + "/s"}},
	}
	latency := report.LineChart{
		Title: "Tail latency over time", Caption: "Of the answers of each window, the wait at the client included. Logarithmic; lower is better.",
		XLabel: "time, s", YLabel: "p99", YFormat: report.Duration, LogY: true,
		HLines: []report.HLine{{Y: float64(first.SLONs), Label: "SLO " + report.Duration.Text(float64(first.SLONs))}},
	}
	for i, p := range s.points {
		good, tail := report.Series{Name: p.Scheme, Color: i + 1}, report.Series{Name: p.Scheme, Color: i + 1}
		for _, w := range p.Windows {
			x := time.Duration(w.End - s.Window/2).Seconds()
			good.Points = append(good.Points, report.Point{X: x, Y: w.GoodputPerS})
			tail.Points = append(tail.Points, report.Point{X: x, Y: w.LatencyP99})
		}
		goodput.Series, latency.Series = append(goodput.Series, good), append(latency.Series, tail)
	}
	return []report.LineChart{goodput, latency}
}

// asked is the demand as a staircase.
func (s *simulation) asked() report.Series {
	line := report.Series{Name: "demand", Reference: true}
	for i, step := range s.Demand {
		end := s.Measure
		if i+1 < len(s.Demand) {
			end = s.Demand[i+1].At
		}
		line.Points = append(line.Points, report.Point{X: time.Duration(step.At).Seconds(), Y: step.PerS}, report.Point{X: time.Duration(end).Seconds(), Y: step.PerS})
	}
	return line
}

// numbers is the table behind the curves.
func (s *simulation) numbers() report.DataTable {
	t := report.DataTable{Columns: []string{"scheme", "load", "offered/s", "goodput/s", "of capacity", "p50", "p99", "dropped at the server", "unsent at the client", "reject p99"}}
	percent := func(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }
	for _, p := range s.points {
		load := "curve"
		if p.Load > 0 {
			load = strconv.FormatFloat(p.Load, 'f', 2, 64)
		}
		t.Rows = append(t.Rows, []string{
			p.Scheme, load, fmt.Sprintf("%.0f", p.OfferedPerS), fmt.Sprintf("%.0f", p.GoodputPerS), percent(p.GoodputPerS / p.CapacityPerS),
			round(p.LatencyNsP50).String(), round(p.LatencyNsP99).String(), percent(p.DropRatio), percent(p.DropRatioClient), round(p.RejectLatencyNsP99).String(),
		})
	}
	return t
}
