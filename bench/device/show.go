//go:build linux

package main

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/report"
)

// recoveredMax is the bound on each recovery.
const recoveredMax = time.Second

func (e *experiment) show(r *prove.Run) error {
	byFault, frames := map[string][]float64{}, 0
	var all []float64
	for _, one := range e.rounds {
		byFault[one.Fault] = append(byFault[one.Fault], one.Recovered.Seconds())
		all = append(all, one.Recovered.Seconds())
		if one.Frames != "" {
			frames++
			r.Say("After %q: %s", one.Fault, one.Frames)
		}
	}
	if !r.JSON() {
		t := report.NewTable(r.Out, false,
			report.Column{Title: "fault", Width: 24, Left: true},
			report.Column{Title: "times", Width: 5, Decimals: 0},
			report.Column{Title: "recovered", Unit: "ms after its end", Width: 24},
		)
		for _, name := range slices.Sorted(maps.Keys(byFault)) {
			if err := t.Row(name, float64(len(byFault[name])), prove.SpreadOf(byFault[name]).Text(1e-3, 0)); err != nil {
				return err
			}
		}
	}
	r.Say("%d requests, %d of them answered.", e.requests, e.answered)
	if e.violations > 0 {
		r.Say("For example, %s", e.example)
	}
	return errors.Join(
		r.AtMost("slowest recovery", prove.SpreadOf(all).Max, recoveredMax.Seconds(), "s"),
		r.AtMost("requests without exactly one outcome, or run twice or against it", float64(e.violations), 0, ""),
		r.AtMost("rounds after which a frame or a credit was missing", float64(frames), 0, ""),
	)
}
