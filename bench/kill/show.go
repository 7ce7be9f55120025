//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/report"
)

// The bounds, for the worst round each.
const (
	pingsLostMax = 0.01 // the kernel empties its queues when a program comes or goes
	outageMax    = 100 * time.Millisecond
	recoveryMax  = time.Second
)

func show(r *prove.Run, s settings, lives []life) error {
	if err := table(r, lives); err != nil {
		return err
	}
	var lost, outage, ready, good, attached, violations, disagreements float64
	served := float64(s.sessions)
	for i, l := range lives {
		lost = max(lost, float64(l.Pings.Lost)/float64(max(l.Pings.Sent, 1)))
		outage = max(outage, l.Pings.Outage.Seconds())
		ready = max(ready, l.KillToReady.Seconds())
		good = max(good, l.ReadyToGood.Seconds())
		if !l.Recovered {
			r.Say("Round %d: goodput did not come back in %v.", i+1, l.ReadyToGood)
			good = max(good, (2 * recoveryMax).Seconds())
		}
		if l.Attached {
			attached++
		}
		violations += float64(l.Violations)
		disagreements += float64(len(l.Disagreements))
		served = min(served, float64(l.Sessions))
		for _, text := range append(l.Examples, l.Disagreements...) {
			r.Say("Round %d: %s", i+1, text)
		}
	}
	return errors.Join(
		r.AtMost("pings lost", 100*lost, 100*pingsLostMax, "%"),
		r.AtMost("longest outage for pings", 1e3*outage, 1e3*outageMax.Seconds(), "ms"),
		r.AtMost("programs left attached", attached, 0, ""),
		r.AtMost("from the restarted server's ready to 95 % of the goodput before", good, recoveryMax.Seconds(), "s"),
		r.AtLeast("client sessions served again", served, float64(s.sessions), ""),
		r.AtMost("requests without exactly one outcome, or run against it", violations, 0, ""),
		r.AtMost("disagreements between our books and the checker's", disagreements, 0, ""),
	)
}

func table(r *prove.Run, lives []life) error {
	t := report.NewTable(r.Out, false,
		report.Column{Title: "round", Width: 5},
		report.Column{Title: "pings", Unit: "lost/sent", Width: 10},
		report.Column{Title: "outage", Unit: "ms", Width: 6, Decimals: 1},
		report.Column{Title: "program", Unit: "left", Width: 7},
		report.Column{Title: "good before", Unit: "% offered", Width: 11, Decimals: 1},
		report.Column{Title: "kill-ready", Unit: "ms", Width: 10, Decimals: 0},
		report.Column{Title: "ready-good", Unit: "ms", Width: 10, Decimals: 0},
		report.Column{Title: "kill-good", Unit: "ms", Width: 9, Decimals: 0},
		report.Column{Title: "sessions", Unit: "again", Width: 8},
		report.Column{Title: "requests", Width: 8},
		report.Column{Title: "ok", Width: 8},
		report.Column{Title: "rejected", Width: 8},
		report.Column{Title: "never sent", Width: 10},
		report.Column{Title: "unknown", Width: 8},
		report.Column{Title: "ran", Unit: "first+second", Width: 14},
		report.Column{Title: "violations", Width: 10},
	)
	for i, l := range lives {
		ms := func(d time.Duration) float64 { return 1e3 * d.Seconds() }
		err := r.Row(t, l, i+1, fmt.Sprintf("%d/%d", l.Pings.Lost, l.Pings.Sent), ms(l.Pings.Outage), map[bool]string{true: "yes", false: "no"}[l.Attached],
			100*l.GoodBefore, ms(l.KillToReady), ms(l.ReadyToGood), ms(l.KillToReady+l.ReadyToGood), l.Sessions,
			l.Requests, l.Answered, l.Rejected, l.NeverSent, l.Unknown, fmt.Sprintf("%d+%d", l.Executed[0], l.Executed[1]), l.Violations)
		if err != nil {
			return err
		}
	}
	return nil
}
