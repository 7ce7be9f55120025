//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/report"
)

// The bounds. All but the last are for the worst step.
const (
	latestMax  = 10 * time.Millisecond
	goodputMin = 0.9 // of that without faults, within a round
)

func (e *experiment) show(r *prove.Run) error {
	r.Say("Capacity %s k/s; %d sessions; goodput is what is answered within %v.", prove.SpreadOf(e.capacity).Text(1e3, 1), e.sessions, e.slo)
	if err := e.table(r); err != nil {
		return err
	}
	latest, violations, disagreements := -time.Hour, 0.0, 0.0
	beside := int64(0) // how late the generator was then: no loop can tell an outcome while its CPU is away
	for _, arms := range e.steps {
		for _, rounds := range arms {
			for _, st := range rounds {
				if st.Latest > latest {
					latest, beside = st.Latest, st.Lateness
				}
				violations += float64(st.Violations)
				disagreements += float64(len(st.Disagreements))
				for _, text := range append(st.Examples, st.Disagreements...) {
					r.Say("%.1f times capacity, deadline %v, %v %% faults: %s", st.Load, st.Deadline, 100*st.Fault, text)
				}
			}
		}
	}
	kept := e.kept(boundOffer, boundFault)
	return errors.Join(
		r.AtMost(fmt.Sprintf("latest outcome after its deadline, where the generator itself was up to %.1f ms late,", float64(beside)/1e6), 1e3*latest.Seconds(), 1e3*latestMax.Seconds(), "ms"),
		r.AtMost("requests without exactly one outcome, or run twice or against it", violations, 0, ""),
		r.AtMost("books that do not balance when all is quiet", disagreements, 0, ""),
		r.AtLeast("goodput at 2 times capacity with 1 % of each fault, of that without", kept.Median, goodputMin, ""),
	)
}

// kept is goodput with faults over goodput without, round by round.
func (e *experiment) kept(offer, fault int) prove.Spread {
	var shares []float64
	for round, st := range e.steps[offer][fault] {
		shares = append(shares, st.GoodputPerS/max(e.steps[offer][0][round].GoodputPerS, 1))
	}
	return prove.SpreadOf(shares)
}

// spread is one figure over all rounds of an arm.
func spread(rounds []step, figure func(step) float64) prove.Spread {
	var figures []float64
	for _, st := range rounds {
		figures = append(figures, figure(st))
	}
	return prove.SpreadOf(figures)
}

func (e *experiment) table(r *prove.Run) error {
	if r.JSON() {
		return nil // the steps are there already
	}
	t := report.NewTable(r.Out, false,
		report.Column{Title: "load", Unit: "x cap.", Width: 6, Decimals: 1},
		report.Column{Title: "deadline", Width: 8},
		report.Column{Title: "faults", Unit: "% each", Width: 6, Decimals: 0},
		report.Column{Title: "goodput", Unit: "k/s", Width: 20},
		report.Column{Title: "kept", Unit: "of no faults", Width: 18},
		report.Column{Title: "answered", Unit: "k/s", Width: 20},
		report.Column{Title: "sent again", Unit: "per call", Width: 10, Decimals: 3},
		report.Column{Title: "latest", Unit: "ms after", Width: 8, Decimals: 1},
		report.Column{Title: "generator", Unit: "ms late", Width: 9, Decimals: 1},
		report.Column{Title: "violations", Width: 10},
		report.Column{Title: "unused", Unit: "client/server", Width: 13},
	)
	for o, arms := range e.steps {
		for f, rounds := range arms {
			last := rounds[len(rounds)-1]
			violations := spread(rounds, func(s step) float64 { return float64(s.Violations) })
			err := t.Row(last.Load, last.Deadline, 100*float64(last.Fault),
				spread(rounds, func(s step) float64 { return s.GoodputPerS }).Text(1e3, 1),
				e.kept(o, f).Text(1, 2),
				spread(rounds, func(s step) float64 { return s.AnsweredPerS }).Text(1e3, 1),
				spread(rounds, func(s step) float64 { return s.Retransmits }).Median,
				spread(rounds, func(s step) float64 { return 1e3 * s.Latest.Seconds() }).Max,
				spread(rounds, func(s step) float64 { return float64(s.Lateness) / 1e6 }).Max,
				violations.Max, fmt.Sprintf("%d/%d", last.ClientUnused, last.ServerUnused))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
