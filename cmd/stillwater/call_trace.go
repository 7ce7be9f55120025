package main

import (
	"fmt"
	"time"
)

// traceRows are the parts of a call in the order in which they happen, as far as they have one.
var traceRows = []struct {
	name string
	part func(*callResult) time.Duration
}{
	{"hand over", func(r *callResult) time.Duration { return r.HandOver }},
	{"client queue", func(r *callResult) time.Duration { return r.ClientQueue }},
	{"network", func(r *callResult) time.Duration { return r.Network }},
	{"packet queue", func(r *callResult) time.Duration { return r.PacketQueue }},
	{"request queue", func(r *callResult) time.Duration { return r.RequestQueue }},
	{"service", func(r *callResult) time.Duration { return r.Service }},
}

// answeredOnly leaves failures out: they have no parts.
func answeredOnly(results []callResult) []callResult {
	var kept []callResult
	for _, r := range results {
		if r.Outcome == outcomeOK {
			kept = append(kept, r)
		}
	}
	return kept
}

// traceTable shows where the time went. The columns "first" and "mean" sum up; least and most are each of another call.
func traceTable(results []callResult) string {
	first, later := results[0], results[1:]
	t := newColumns()
	header := []string{"first call", "share"}
	if len(later) > 0 {
		header = []string{"first call", fmt.Sprintf("mean of %d", len(later)), "share", "least", "most"}
	}
	t.row("", header...)
	latency := func(r *callResult) time.Duration { return r.Latency }
	row := func(name string, part func(*callResult) time.Duration) {
		if len(later) == 0 {
			t.row(name, microseconds(part(&first)), share(part(&first), first.Latency))
			return
		}
		mean, least, most := summarize(later, part)
		whole, _, _ := summarize(later, latency)
		t.row(name, microseconds(part(&first)), microseconds(mean), share(mean, whole), microseconds(least), microseconds(most))
	}
	for _, r := range traceRows {
		row(r.name, r.part)
	}
	row("total", latency)
	return t.String()
}

func summarize(results []callResult, part func(*callResult) time.Duration) (mean, least, most time.Duration) {
	var sum time.Duration
	least = part(&results[0])
	for i := range results {
		d := part(&results[i])
		sum += d
		least, most = min(least, d), max(most, d)
	}
	return sum / time.Duration(len(results)), least, most
}

// microseconds writes a duration in the one unit of a table.
func microseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
}

func share(part, whole time.Duration) string {
	if whole <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
