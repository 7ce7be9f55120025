//go:build linux

package main

import (
	"fmt"

	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/report"
)

// row is one line of the results.
type row struct {
	Kind        string       `json:"kind"`
	Server      string       `json:"server"`
	Outstanding int          `json:"outstanding"`
	PerS        prove.Spread `json:"per_s"`
	NsP99       prove.Spread `json:"latency_ns_p99"`
	OverRoot    prove.Spread `json:"times_root"`
}

// ratio is the spread of what a variant serves over what root does, round by round.
func (e *experiment) ratio(v, at int) prove.Spread {
	var ratios []float64
	for round, perS := range e.perS[v][at] {
		ratios = append(ratios, perS/e.perS[root][at][round])
	}
	return prove.SpreadOf(ratios)
}

func (e *experiment) show(r *prove.Run) error {
	r.Say("Both serve by %s.", e.mode)
	table := report.NewTable(r.Out, false,
		report.Column{Title: "server", Width: 36, Left: true},
		report.Column{Title: "outstanding", Width: 11},
		report.Column{Title: "echoes", Unit: "k/s", Width: 18},
		report.Column{Title: "of root's", Unit: "times", Width: 18},
		report.Column{Title: "p99", Unit: "us", Width: 18},
	)
	for i, n := range outstanding {
		for v := range names {
			line := row{"privileges", names[v], n, prove.SpreadOf(e.perS[v][i]), prove.SpreadOf(e.p99[v][i]), e.ratio(v, i)}
			err := r.Row(table, line, line.Server, n, line.PerS.Text(1e3, 0), line.OverRoot.Text(1, 2), line.NsP99.Text(1e3, 0))
			if err != nil {
				return err
			}
		}
	}
	for i, n := range outstanding {
		if n == boundAt {
			return r.AtLeast(fmt.Sprintf("echoes of nobody's server over root's at %d outstanding", n), e.ratio(nobody, i).Median, speedMin, "times")
		}
	}
	return nil
}
