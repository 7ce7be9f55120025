package paper

import (
	"math"
	"strconv"
	"strings"

	"github.com/stillwater-rpc/stillwater/bench/paper/published"
)

// The units in which metrics are shown: thousands per second, microseconds, percent.
const (
	perRate  = 1e3
	perTime  = 1e3
	perShare = 0.01
)

// shown converts a value to the unit in which it is shown.
func (m Metric) shown(v float64) float64 {
	switch {
	case m.isRate():
		return v / perRate
	case m.isTime():
		return v / perTime
	}
	return v / perShare
}

// unit names that unit.
func (m Metric) unit() string {
	switch {
	case m.isRate():
		return "k/s"
	case m.isTime():
		return "µs"
	}
	return "%"
}

// dash stands for a value that there is none of.
const dash = "–"

// number writes a value in the unit in which it is shown; of none, a dash.
func (m Metric) number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return dash
	}
	decimals := 1
	if !m.isRate() && !m.isTime() {
		decimals = 2
	}
	return strconv.FormatFloat(m.shown(v), 'f', decimals, 64)
}

// text writes a value with its unit; of none, a dash.
func (m Metric) text(v float64) string {
	n := m.number(v)
	if n == dash {
		return n
	}
	return n + " " + m.unit()
}

// percent writes a share with its sign, as +1.2; of none, a dash.
func percent(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return dash
	}
	s := strconv.FormatFloat(100*v, 'f', 1, 64)
	if !strings.HasPrefix(s, "-") {
		s = "+" + s
	}
	return s
}

// xLabel writes where on its axis a cell stands.
func (c Cell) xLabel() string {
	switch c.XName {
	case published.DemandMrps, published.DemandKrps:
		return rate(c.X) + "/s"
	case published.Clients:
		return c.XText + " clients"
	case published.TimeS:
		return strconv.FormatFloat(c.X, 'f', 2, 64) + " s"
	case published.ThroughputKrps:
		return "tuned"
	}
	return c.XText
}
