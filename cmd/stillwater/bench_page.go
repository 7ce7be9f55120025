package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/report"
)

// writeBenchPage writes the page of a run.
func writeBenchPage(path string, d *benchData) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return errors.Join(benchPage(d).WriteHTML(file), file.Close())
}

func benchPage(d *benchData) report.Page {
	r := d.Result
	page := report.Page{
		Title:   "Stillwater: " + benchTitle(d),
		Verdict: benchVerdict(r),
		Passed:  len(r.Failures) == 0,
		Command: d.Command,
		Sections: []report.Section{
			{Title: "Requests", Tables: []report.DataTable{countsData(r)}},
			{Title: "Latency", Text: "Counted from the instant a request was due.", Tables: []report.DataTable{latencyData(r)}},
		},
		Facts: append([]report.Fact{
			{Name: "server", Value: d.Address}, {Name: "port", Value: d.Mode},
			{Name: "sessions", Value: fmt.Sprint(r.Sessions)}, {Name: "payload", Value: fmt.Sprintf("%d bytes", r.PayloadBytes)},
			{Name: "deadline", Value: orNone(r.Deadline)}, {Name: "SLO", Value: orNone(r.SLO)},
			{Name: "measured", Value: fmt.Sprintf("%v after %v of warm-up", r.Duration, r.Warmup)},
			{Name: "seed", Value: fmt.Sprint(r.Seed)},
		}, report.MachineFacts()...),
	}
	if charts := bucketCharts(r); charts != nil {
		page.Sections = append(page.Sections, report.Section{Title: "Over time", Charts: charts})
	}
	return page
}

func benchVerdict(r *load.Result) string {
	if len(r.Failures) > 0 {
		return "This run is not to be believed: " + r.Failures[0]
	}
	return fmt.Sprintf("Of %.0f requests per second, %.0f were answered within %s; p99 latency %s, %.0f rejected per second.",
		r.OfferedPerS, r.GoodputPerS, orNone(r.SLO), us(r.LatencyNsP99), r.RejectedPerS)
}

func countsData(r *load.Result) report.DataTable {
	t := report.DataTable{Columns: []string{"", "requests", "per second", "note"}}
	for _, row := range outcomeRows(r) {
		t.Rows = append(t.Rows, []string{
			row.name, fmt.Sprint(row.count), fmt.Sprintf("%.0f", float64(row.count)/r.Duration.Seconds()), row.note,
		})
	}
	return t
}

func latencyData(r *load.Result) report.DataTable {
	t := report.DataTable{Columns: []string{"", "mean", "p50", "p90", "p99", "p99.9", "most"}, Rows: [][]string{
		{"latency", us(int64(r.LatencyNsMean)), us(r.LatencyNsP50), us(r.LatencyNsP90), us(r.LatencyNsP99), us(r.LatencyNsP999), us(r.LatencyNsMax)},
		{"of rejections", "", us(r.RejectLatencyNsP50), "", us(r.RejectLatencyNsP99), "", ""},
		{"the generator's own lateness", "", us(r.LatenessNsP50), "", us(r.LatenessNsP99), "", us(r.LatenessNsMax)},
	}}
	if r.Split != nil {
		for _, row := range splitRows(r.Split) {
			t.Rows = append(t.Rows, []string{row.name, us(int64(row.part.MeanNs)), "", "", us(row.part.P99Ns), "", ""})
		}
	}
	return t
}

// bucketCharts draw the time series; a run without buckets has none.
func bucketCharts(r *load.Result) []report.LineChart {
	if len(r.Buckets) == 0 || r.BucketWidth <= 0 {
		return nil
	}
	curve := func(name string, y func(load.Bucket) float64) report.Series {
		s := report.Series{Name: name}
		for _, b := range r.Buckets {
			middle := time.Duration(b.StartNs) + r.BucketWidth/2
			s.Points = append(s.Points, report.Point{X: middle.Seconds(), Y: y(b)})
		}
		return s
	}
	rate := func(count func(load.Bucket) uint64) func(load.Bucket) float64 {
		return func(b load.Bucket) float64 { return float64(count(b)) / r.BucketWidth.Seconds() }
	}
	series := []report.Series{
		curve("offered", rate(func(b load.Bucket) uint64 { return b.Offered })),
		curve("within the SLO", rate(func(b load.Bucket) uint64 { return b.Good })),
	}
	if r.Counts.Rejected > 0 {
		series = append(series, curve("rejected", rate(func(b load.Bucket) uint64 { return b.Rejected })))
	}
	if r.Counts.Expired > 0 {
		series = append(series, curve("expired at the client", rate(func(b load.Bucket) uint64 { return b.Expired })))
	}
	return []report.LineChart{{
		Title:   "Where did the requests end?",
		Caption: fmt.Sprintf("By the instant they were due, in buckets of %v.", r.BucketWidth),
		XLabel:  "time, s", YLabel: "requests per second", YFormat: report.Count, Series: series,
	}, {
		Title:   "Share of the requests answered within the SLO",
		Caption: "Higher is better.",
		XLabel:  "time, s", YLabel: "answered within the SLO", YFormat: report.Percent,
		YMin: 1e-9, YMax: 1.05, // from zero on: zero itself would let the data decide
		Series: []report.Series{curve("share", load.Bucket.Share)},
	}}
}
