//go:build linux

package main

import (
	"errors"
	"fmt"

	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/report"
)

// row is one line of the results.
type row struct {
	Kind    string       `json:"kind"`
	Measure string       `json:"measure"`
	Rings   string       `json:"rings"`
	Unit    string       `json:"unit"`
	Figure  prove.Spread `json:"figure"`
	Gain    prove.Spread `json:"own_times_better"` // round by round; above 1 is better, of a time as well
	Lost    uint64       `json:"lost_count"`       // of all measures of these rings
}

// gain is how many times better ours is than an arm, round by round.
func (e *experiment) gain(arm, at int) prove.Spread {
	var ratios []float64
	for round, own := range e.got[0][at] {
		ratio := own / e.got[arm][at][round]
		if measures[at].slow {
			ratio = 1 / ratio
		}
		ratios = append(ratios, ratio)
	}
	return prove.SpreadOf(ratios)
}

func (e *experiment) show(r *prove.Run) error {
	table := report.NewTable(r.Out, false,
		report.Column{Title: "measure", Width: 25, Left: true},
		report.Column{Title: "rings", Width: 18, Left: true},
		report.Column{Title: "figure", Unit: "k/s or us", Width: 22},
		report.Column{Title: "ours better", Unit: "times", Width: 18},
		report.Column{Title: "lost", Unit: "all measures", Width: 12},
	)
	var errs []error
	for at, m := range measures {
		for arm, name := range arms {
			line := row{"rings", m.name, name, m.unit, prove.SpreadOf(e.got[arm][at]), e.gain(arm, at), e.lost[arm]}
			errs = append(errs, r.Row(table, line, m.name, name, line.Figure.Text(1e3, m.decimals), line.Gain.Text(1, 2), line.Lost))
		}
	}
	for arm, name := range arms[1:] {
		for at, m := range measures {
			// Ours is below another one beyond the spread when it is so in every round.
			errs = append(errs, r.AtLeast(fmt.Sprintf("ours over %s in the best round, %s", name, m.name), e.gain(arm+1, at).Max, 1, "times"))
		}
	}
	errs = append(errs, r.AtLeast("ours over asavie/xdp as its examples use it, "+measures[sendBurst].name,
		e.gain(exampleArm, sendBurst).Median, transmitMin, "times"))
	return errors.Join(errs...)
}
