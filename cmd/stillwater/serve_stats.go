package main

import (
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/report"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// statsPrinter prints a server's counters: their changes per second as a table, or as they are in JSON.
type statsPrinter struct {
	c      *cli
	srv    *sw.Server
	table  *report.Table
	start  time.Time
	lastAt time.Time
	last   sw.Stats
}

// newStatsPrinter takes the counters from which the first line counts.
func newStatsPrinter(c *cli, srv *sw.Server) (*statsPrinter, error) {
	stats, err := srv.Stats()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &statsPrinter{c: c, srv: srv, table: statsTable(c), start: now, lastAt: now, last: stats}, nil
}

func statsTable(c *cli) *report.Table {
	const microsecond = float64(time.Microsecond)
	return report.NewTable(c.stdout, c.colours(),
		report.Column{Title: "time", Unit: "s", Width: 7, Decimals: 1},
		report.Column{Title: "offered", Unit: "1/s", Width: 9},
		report.Column{Title: "completed", Unit: "1/s", Width: 9},
		report.Column{Title: "rejected", Unit: "1/s", Width: 9},
		report.Column{Title: "delay", Unit: "µs", Width: 7, Decimals: 1, Divide: microsecond},
		report.Column{Title: "target", Unit: "µs", Width: 7, Decimals: 1, Divide: microsecond},
		report.Column{Title: "service", Unit: "µs", Width: 7, Decimals: 1, Divide: microsecond},
		report.Column{Title: "queued", Width: 6},
		report.Column{Title: "running", Width: 7},
		report.Column{Title: "pool", Unit: "credits", Width: 7},
		report.Column{Title: "issued", Unit: "credits", Width: 7},
		report.Column{Title: "sessions", Width: 8},
		report.Column{Title: "dropped", Unit: "packets", Width: 8},
	)
}

// print prints one line. The last one sums up, so in text it is a sentence.
func (p *statsPrinter) print(event string) error {
	s, err := p.srv.Stats()
	if err != nil {
		return fmt.Errorf("reading the counters: %w", err)
	}
	now := time.Now()
	if !p.c.text() {
		return p.c.printLine(schemaServe, serveStats{Event: event, Uptime: now.Sub(p.start), statsData: newStatsData(s)})
	}
	if event == "stopped" {
		return p.c.print(fmt.Sprintf("stopped after %v: %d requests offered, %d answered, %d rejected, %d given up by their callers\n",
			now.Sub(p.start).Round(time.Millisecond), s.Offered, s.Completed, s.RejectedAll(), s.Abandoned))
	}
	seconds := now.Sub(p.lastAt).Seconds()
	rate := func(now, before uint64) float64 { return float64(now-before) / seconds }
	rejected := report.Cell{Value: rate(s.RejectedAll(), p.last.RejectedAll())}
	if s.RejectedAll() > p.last.RejectedAll() {
		rejected.Tone = report.Bad
	}
	err = p.table.Row(now.Sub(p.start).Seconds(),
		rate(s.Offered, p.last.Offered), rate(s.Completed, p.last.Completed), rejected,
		float64(s.Delay), float64(s.TargetDelay), float64(s.Service),
		s.Queued, s.InService, s.Pool, s.Issued, s.Sessions,
		droppedPackets(&s)-droppedPackets(&p.last))
	p.last, p.lastAt = s, now
	return err
}

// droppedPackets are those that the port or the dispatcher ended without an answer.
func droppedPackets(s *sw.Stats) uint64 {
	return s.Port.ReceiveDropped + s.Port.SendDropped + s.NoBuffer +
		s.Malformed + s.WrongPeer + s.UnknownConnection + s.TooMany + s.NotServing
}

// statsData are an endpoint's counters as JSON, with words where the runtime has the numbers of its enumerations.
type statsData struct {
	sw.Stats
	Rejected map[string]uint64 `json:"rejected_counts"` // by reason; in the place of the field of the same key
	Outcomes map[string]uint64 `json:"outcome_counts"`  // of calls
	// Admission is in the place of the field of the same key.
	Admission admissionData `json:"admission"`
}

// admissionData are the door's counters.
type admissionData struct {
	admit.Counters
	Refused map[string]uint64 `json:"refused_counts"` // by policy; in the place of the field of the same key
}

func newStatsData(s sw.Stats) statsData {
	d := statsData{Stats: s, Rejected: map[string]uint64{}, Outcomes: map[string]uint64{}}
	for reason, count := range s.Rejected {
		if count > 0 {
			d.Rejected[sw.RejectReason(reason).String()] += count
		}
	}
	for outcome, count := range s.Outcomes {
		if count > 0 {
			d.Outcomes[sw.Outcome(outcome).String()] += count
		}
	}
	d.Admission = admissionData{Counters: s.Admission, Refused: map[string]uint64{}}
	for reason, count := range s.Admission.Refused {
		if count > 0 {
			d.Admission.Refused[admit.Reason(reason).String()] += count
		}
	}
	return d
}
