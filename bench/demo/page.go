package demo

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// page is the report: what happens to goodput and tail as the load grows, why, and how fast it is over.
func (e *experiment) page() report.Page {
	r := e.result
	sweep := report.Sweep{
		Arms: []report.Arm{r.arm(controlled), r.arm(uncontrolled)}, CapacityPerS: r.Calibration.capacityPerS,
		SLO: r.Calibration.slo, TargetDelay: time.Duration(r.highest(controlled).TargetDelayNs),
	}
	median, _ := r.recovery()
	timeline := report.Timeline{Name: "credits, median of " + strconv.Itoa(len(r.Falls)), BucketWidth: bucketWidth, Shares: median}
	label := fmt.Sprintf("%.0fx capacity, %.1fx around it", overloadAt, recoveredAt)
	return report.Page{
		Title:   "A server at and beyond its capacity",
		Verdict: r.Verdict,
		Passed:  r.Passed,
		Command: e.cfg.Command,
		Facts: append([]report.Fact{
			{Name: "path", Value: r.Mode},
			{Name: "clients", Value: strconv.Itoa(e.cfg.Sessions)},
			{Name: "work", Value: e.cfg.Service.String()},
			{Name: "seed", Value: strconv.FormatUint(e.cfg.Seed, 10)},
		}, report.MachineFacts()...),
		Sections: []report.Section{
			{
				Title: "What a user sees",
				Text: "Requests arrive whether or not earlier ones were answered (open loop, Poisson). Good is what was answered within the SLO, " +
					"counted from the moment it arose at the client.",
				Charts: []report.LineChart{sweep.Goodput(), sweep.Latency()},
			},
			{
				Title:  "Where the rest went",
				Text:   "With credits the excess waits at the clients and expires there; few requests travel only to be refused.",
				Charts: []report.LineChart{sweep.Refusals(), sweep.QueueDelay(), sweep.Credits()},
			},
			{
				Title:  "After the overload",
				Text:   "Share of the requests of each 10 ms that were answered within the SLO.",
				Charts: []report.LineChart{report.StepChart([]report.Timeline{timeline}, calmTime, calmTime+overloadTime, label)},
			},
			{Title: "All numbers", Tables: []report.DataTable{r.numbers()}},
		},
	}
}

func (r *Result) arm(scheme string) report.Arm {
	a := report.Arm{Name: label(scheme)}
	for _, s := range r.Steps {
		if s.Arm != a.Name {
			continue
		}
		p := report.LoadPoint{
			OfferedPerS: s.OfferedPerS, GoodputPerS: s.GoodputPerS, RejectedPerS: s.RejectedPerS, ExpiredPerS: s.ExpiredPerS,
			LatencyNsP99: float64(s.LatencyNsP99), LatencyNsP999: float64(s.LatencyNsP999), QueueDelayNs: float64(s.QueueDelayNsMean),
			CreditsPool: float64(s.CreditsPool), CreditsIssued: float64(s.CreditsIssued),
		}
		if scheme == uncontrolled {
			p.CreditsPool, p.CreditsIssued = math.NaN(), math.NaN()
		}
		a.Points = append(a.Points, p)
	}
	return a
}

// numbers is the table behind the curves.
func (r *Result) numbers() report.DataTable {
	t := report.DataTable{Title: "Steps", Columns: []string{
		"arm", "load", "offered/s", "goodput/s", "p50", "p99", "p99.9", "rejected/s", "reject p99", "expired/s", "late/s", "queue delay",
		"pool", "issued", "retransmitted/s", "packets lost",
	}}
	whole := func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }
	for _, s := range r.Steps {
		t.Rows = append(t.Rows, []string{
			s.Arm, strconv.FormatFloat(s.Load, 'f', 1, 64), whole(s.OfferedPerS), whole(s.GoodputPerS),
			round(s.LatencyNsP50).String(), round(s.LatencyNsP99).String(), round(s.LatencyNsP999).String(),
			whole(s.RejectedPerS), round(s.RejectLatencyNsP99).String(), whole(s.ExpiredPerS), whole(s.DeadlinePerS),
			round(s.QueueDelayNsMean).String(), strconv.FormatUint(s.CreditsPool, 10), strconv.FormatUint(s.CreditsIssued, 10),
			whole(s.RetransmittedPerS), strconv.FormatUint(s.PacketsLost, 10),
		})
	}
	return t
}
