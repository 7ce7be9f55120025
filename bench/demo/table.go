package demo

import (
	"fmt"
	"io"
	"math"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// newTable is the table that grows while the experiment runs.
func newTable(w io.Writer) *report.Table {
	const us = 1e3
	return report.NewTable(w, false,
		report.Column{Title: "arm", Width: 7, Left: true},
		report.Column{Title: "load", Unit: "x cap.", Width: 6, Decimals: 1},
		report.Column{Title: "offered", Unit: "k/s", Width: 7, Decimals: 1, Divide: 1e3},
		report.Column{Title: "goodput", Unit: "k/s", Width: 7, Decimals: 1, Divide: 1e3},
		report.Column{Title: "of cap.", Unit: "%", Width: 7, Decimals: 1},
		report.Column{Title: "p50", Unit: "us", Width: 8, Decimals: 0, Divide: us},
		report.Column{Title: "p99", Unit: "us", Width: 8, Decimals: 0, Divide: us},
		report.Column{Title: "p99.9", Unit: "us", Width: 8, Decimals: 0, Divide: us},
		report.Column{Title: "reject", Unit: "p99 us", Width: 7, Decimals: 0, Divide: us},
		report.Column{Title: "delay/target", Unit: "us", Width: 12},
		report.Column{Title: "credits", Unit: "pool/issued", Width: 12},
		report.Column{Title: "rejected", Unit: "% server", Width: 8, Decimals: 1},
		report.Column{Title: "expired", Unit: "% client", Width: 8, Decimals: 1},
		report.Column{Title: "late", Unit: "% sent", Width: 6, Decimals: 1},
		report.Column{Title: "lost", Unit: "packets", Width: 7},
		report.Column{Title: "generator", Unit: "us late", Width: 9},
	)
}

// row prints one step.
func row(t *report.Table, s Step) error {
	tail := func(ns int64) any {
		if ns == 0 {
			return math.NaN()
		}
		return float64(ns)
	}
	share := func(perS float64) float64 { return 100 * perS / s.OfferedPerS }
	late := fmt.Sprintf("%d", s.LatenessNsP99/1000)
	if len(s.Failures) > 0 {
		late = "*" + late
	}
	delay, credits := fmt.Sprintf("%d/%d", s.QueueDelayNsMean/1000, s.TargetDelayNs/1000), "-"
	if s.Arm == "credits" {
		credits = fmt.Sprintf("%d/%d", s.CreditsPool, s.CreditsIssued)
	}
	return t.Row(s.Arm, s.Load, s.OfferedPerS, s.GoodputPerS, 100*s.share(),
		tail(s.LatencyNsP50), tail(s.LatencyNsP99), tail(s.LatencyNsP999), tail(s.RejectLatencyNsP99),
		delay, credits, share(s.RejectedPerS), share(s.ExpiredPerS), share(s.DeadlinePerS), float64(s.PacketsLost), late)
}
