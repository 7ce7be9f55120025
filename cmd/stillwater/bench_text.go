package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/report"
)

// progressInterval is how often the bar is moved; the process is measuring meanwhile.
const progressInterval = 250 * time.Millisecond

// progress shows how much of a duration has passed, on standard error and only if that is a terminal.
func (c *cli) progress(name string, total time.Duration) (stop func()) {
	file, ok := c.stderr.(*os.File)
	if !ok || !isTerminal(file) {
		return func() {}
	}
	bar := report.NewProgress(file, total.Milliseconds(), name)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for started := time.Now(); ; {
			select {
			case <-ticker.C:
				bar.Set(min(time.Since(started), total).Milliseconds())
			case <-done:
				bar.Close()
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// benchText is the result for a person.
func benchText(d *benchData) string {
	r := d.Result
	var text strings.Builder
	fmt.Fprintf(&text, "%s against %s over %s\n", benchTitle(d), d.Address, d.Mode)
	fmt.Fprintf(&text, "%v after %v of warm-up, %d sessions, payload %d bytes, deadline %s, SLO %s, seed %d\n\n",
		r.Duration, r.Warmup, r.Sessions, r.PayloadBytes, orNone(r.Deadline), orNone(r.SLO), r.Seed)
	text.WriteString(countsTable(r) + "\n" + latencyTable(r) + "\n")
	if r.Split != nil {
		text.WriteString(splitTable(r.Split) + "\n")
	}
	s := &d.Client
	fmt.Fprintf(&text, "this client: %d retransmissions, packets dropped on reception %d, on sending %d\n",
		s.Retransmissions, s.Port.ReceiveDropped, s.Port.SendDropped+s.Port.NoBuffer)
	fmt.Fprintf(&text, "machine: %v\n", d.Machine)
	return text.String()
}

// benchTitle says in words what load it was.
func benchTitle(d *benchData) string {
	r := d.Result
	work := d.Method
	if r.ServiceTime.Mean > 0 {
		work += " " + r.ServiceTime.String()
	}
	if r.Kind == load.KindClosedLoop {
		return fmt.Sprintf("closed loop: %s with %d outstanding", work, r.Outstanding)
	}
	title := fmt.Sprintf("open loop: %s at %.0f/s, %s arrivals", work, r.RatePerS, r.Arrivals)
	if d.Load > 0 {
		title += fmt.Sprintf(" (%.2f times a capacity of %.0f/s)", d.Load, d.Capacity)
	}
	return title
}

func orNone(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

// outcome is one row of the counts.
type outcomeRow struct {
	name  string
	count uint64
	note  string
}

// outcomeRows are the books of a run; each request is in exactly one of those after "offered", but for "within SLO".
func outcomeRows(r *load.Result) []outcomeRow {
	n := r.Counts
	return []outcomeRow{
		{"offered", n.Offered, ""},
		{"answered", n.OK, ""},
		{"within SLO", n.Good, "goodput"},
		{"rejected", n.Rejected, reasons(r.RejectReasons)},
		{"expired", n.Expired, "never sent: no credit in time"},
		{"deadline", n.Deadline, "sent, no answer in time"},
		{"peer lost", n.PeerLost, ""},
		{"failed", n.Failed, ""},
		{"not issued", n.Unissued, ""},
		{"no outcome", n.Unanswered, ""},
	}
}

func countsTable(r *load.Result) string {
	t := newColumns()
	t.row("", "requests", "per second", "share")
	notes := []string{""}
	for i, row := range outcomeRows(r) {
		if i > 3 && row.count == 0 {
			continue // what did not happen takes no line
		}
		part := 0.0
		if r.Counts.Offered > 0 {
			part = 100 * float64(row.count) / float64(r.Counts.Offered)
		}
		t.row(row.name, fmt.Sprint(row.count), fmt.Sprintf("%.0f", float64(row.count)/r.Duration.Seconds()),
			fmt.Sprintf("%.2f %%", part))
		note := ""
		if row.note != "" && row.count > 0 {
			note = "  " + row.note
		}
		notes = append(notes, note)
	}
	lines := strings.Split(strings.TrimSuffix(t.String(), "\n"), "\n")
	for i := range lines {
		lines[i] += notes[i]
	}
	return strings.Join(lines, "\n") + "\n"
}

// reasons lists the refusals by reason, the most frequent first.
func reasons(counts map[string]uint64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return int(counts[b]) - int(counts[a])
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	return strings.Join(names, ", ")
}

func latencyTable(r *load.Result) string {
	t := newColumns()
	t.row("", "p50", "p90", "p99", "p99.9", "most")
	t.row("latency", us(r.LatencyNsP50), us(r.LatencyNsP90), us(r.LatencyNsP99), us(r.LatencyNsP999), us(r.LatencyNsMax))
	if r.Counts.Rejected > 0 {
		t.row("of rejections", us(r.RejectLatencyNsP50), "", us(r.RejectLatencyNsP99), "", "")
	}
	t.row("our own lateness", us(r.LatenessNsP50), "", us(r.LatenessNsP99), "", us(r.LatenessNsMax))
	return t.String()
}

// splitRow is one part of the latency.
type splitRow struct {
	name string
	part load.Quantiles
}

func splitRows(s *load.Split) []splitRow {
	return []splitRow{
		{"client queue", s.ClientQueue}, {"network", s.Network}, {"packet queue", s.PacketQueue},
		{"request queue", s.RequestQueue}, {"service", s.Service},
	}
}

func splitTable(s *load.Split) string {
	t := newColumns()
	t.row("of which", "mean", "p99")
	for _, row := range splitRows(s) {
		t.row(row.name, us(int64(row.part.MeanNs)), us(row.part.P99Ns))
	}
	return t.String()
}

func us(ns int64) string { return microseconds(time.Duration(ns)) }
