//go:build linux

package overload

import (
	"fmt"
	"strconv"

	"github.com/stillwater-rpc/stillwater/bench/callers"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/report"
)

// The figures' names, as they stand in JSON: those that the simulator has as well are its own.
const (
	figServed    = "throughput_per_s"
	figGoodput   = "goodput_per_s"
	figShare     = "goodput_of_capacity_ratio"
	figBacklog   = "backlog_count"
	figP99       = "latency_ns_p99"
	figRefused   = "refused_ratio" // of the calls: by the server, or held back at the client
	figRejected  = "rejected_ratio"
	figAfter     = "goodput_after_ratio"
	figRecovered = "recovery_ns"
	figAttempts  = "attempts_per_call"
	figPlus      = "critical_plus_answered_ratio"
	figCritical  = "critical_answered_ratio"
	figSheddable = "sheddable_plus_answered_ratio"
	figBatch     = "sheddable_answered_ratio"
	figLeast     = "least_level_of_goodput_ratio"
	figLateness  = "lateness_ns_p99" // of the callers themselves
)

// column is a figure, and beside it the simulator's if that has it.
type column struct {
	figure      string
	title, unit string
	decimals    int
	divide      float64
	width       int  // of a figure without spread
	apart       bool // the simulator's is of another length of time, and is not shown
}

// text is a figure with its spread, if there is any.
func (c column) text(s prove.Spread) any {
	switch s.Count {
	case 0:
		return nil
	case 1:
		return strconv.FormatFloat(s.Median/c.divide, 'f', c.decimals, 64)
	}
	return s.Text(c.divide, c.decimals)
}

// spreadWidth is what the least and the greatest take beside the median.
const spreadWidth = 2

func (t *table) show() error {
	t.Say("%s. Capacity, as measured: %s/s. Beside each figure: that of the simulator, size %s, seed %d.", t.id, prove.SpreadOf(t.capacity).Text(1, 0), t.size.Name, t.Seed)
	if t.JSON() {
		return nil // the rows are there already
	}
	columns := []report.Column{{Title: "point", Left: true, Width: 8}, {Title: "arm", Left: true, Width: 13}}
	for _, c := range t.columns {
		width := c.width
		if t.Rounds > 1 {
			width += spreadWidth * (c.width + 1)
		}
		columns = append(columns, report.Column{Title: c.title, Unit: c.unit, Width: width})
		if t.hasSimulated(c) {
			columns = append(columns, report.Column{Title: "simulated", Width: 9})
		}
	}
	for i := range t.arms {
		columns[0].Width = max(columns[0].Width, len(t.arms[i].point))
	}
	out := report.NewTable(t.Out, false, columns...)
	for i := range t.arms {
		if err := out.Row(t.cells(i)...); err != nil {
			return err
		}
	}
	return nil
}

// cells is one line of the table.
func (t *table) cells(arm int) []any {
	cells := []any{t.arms[arm].point, t.arms[arm].name}
	for _, c := range t.columns {
		cells = append(cells, c.text(t.spread(arm, c.figure)))
		if !t.hasSimulated(c) {
			continue
		}
		if v, found := t.simulated[arm].Figures[c.figure]; found {
			cells = append(cells, c.text(prove.SpreadOf([]float64{v})))
		} else {
			cells = append(cells, nil)
		}
	}
	return cells
}

// hasSimulated reports whether the simulator has the figure to show beside ours, of any arm.
func (t *table) hasSimulated(c column) bool {
	for _, s := range t.simulated {
		if _, found := s.Figures[c.figure]; found && !c.apart {
			return true
		}
	}
	return false
}

// bound checks the median of a figure in each of some arms, and says the one that is nearest to the bound or farthest beyond it.
func (t *table) bound(name string, arms func(*arm) bool, c column, limit float64, atLeast bool) error {
	worst, found := 0.0, false
	for i := range t.arms {
		if !arms(&t.arms[i]) {
			continue
		}
		v := t.spread(i, c.figure).Median
		if !found || atLeast && v < worst || !atLeast && v > worst {
			worst, found = v, true
		}
	}
	if !found {
		return fmt.Errorf("%s %s: no arm that it is about was run", t.id, name)
	}
	name = t.id + " " + name
	if atLeast {
		return t.AtLeast(name, worst/c.divide, limit/c.divide, c.unit)
	}
	return t.AtMost(name, worst/c.divide, limit/c.divide, c.unit)
}

// named are the arms of a name.
func named(name string) func(*arm) bool { return func(a *arm) bool { return a.name == name } }

// ratio is a part of a whole; of nothing it is zero.
func ratio(part, whole int) float64 { return float64(part) / float64(max(whole, 1)) }

// served is how many attempts a second were answered, whoever still waited for them.
func served(seconds []callers.Second) float64 {
	answered := 0
	for _, s := range seconds {
		answered += s.Answered
	}
	return ratio(answered, len(seconds))
}
