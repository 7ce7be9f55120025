package paper

import (
	"math"
	"strings"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/paper/published"
)

// Metric is what a cell reads of a result.
type Metric uint8

// The metrics. Rates are per second, times in nanoseconds, drops a share of 1.
const (
	Goodput Metric = iota
	Throughput
	MedianLatency
	P99Latency
	DropRatio // of the server
	RxRate
	TxRate
	RejectDelay
)

// metricNames is indexed by Metric.
var metricNames = [...]string{"goodput", "throughput", "median latency", "p99 latency", "drops", "rx", "tx", "reject delay"}

// String names the metric for people.
func (m Metric) String() string { return metricNames[m] }

// isRate, isTime: what is neither is a share.
func (m Metric) isRate() bool { return m == Goodput || m == Throughput || m == RxRate || m == TxRate }
func (m Metric) isTime() bool { return m == MedianLatency || m == P99Latency || m == RejectDelay }

// rowMetric finds the metric of a published row. Of message rates, the curve's name says the direction.
func rowMetric(r published.Row) Metric {
	switch r.Metric {
	case published.Throughput:
		return Throughput
	case published.MedianLatency:
		return MedianLatency
	case published.P99Latency:
		return P99Latency
	case published.DropRate:
		return DropRatio
	case published.MeanRejectDelay:
		return RejectDelay
	case published.MessageRate:
		if strings.HasSuffix(r.Scheme, "-TX") {
			return TxRate
		}
		return RxRate
	}
	return Goodput
}

// Cell is one place of one figure: a reading of a simulated point, beside the published row where there is one.
type Cell struct {
	Figure, Panel string
	Scheme        Scheme // "" of what is no run
	Parts         Parts
	XName         published.XName
	XText         string  // as the figure writes it
	X             float64 // in the base unit (per second, seconds); NaN where it is no number
	Metric        Metric

	Point  int           // index in Plan.Points; -1 if Why
	Window time.Duration // the end of the window that is read; 0 for the whole run
	Why    string        // why it cannot be simulated, or not compared

	Row       *published.Row // nil: the figure has no such point
	Published float64        // in the unit of Metric; NaN without a row
	Error     float64        // of reading; NaN without a row, or where Published is a lower bound
}

// AtLeast reports whether the published value is a lower bound.
func (c Cell) AtLeast() bool { return c.Row != nil && c.Row.LowerBound() }

// read returns the cell's value in a result; NaN where the result has none.
func (c Cell) read(r Result) float64 {
	if c.Window != 0 {
		return c.readWindow(r.Series)
	}
	switch c.Metric {
	case Throughput:
		return r.ThroughputPerS
	case MedianLatency:
		return r.LatencyNsP50
	case P99Latency:
		return r.LatencyNsP99
	case DropRatio:
		return r.DropRatioServer
	case RxRate:
		return r.RxPerS
	case TxRate:
		return r.TxPerS
	case RejectDelay:
		return r.RejectDelayNsAvg
	}
	return r.GoodputPerS
}

func (c Cell) readWindow(series []WindowResult) float64 {
	index := int(c.Window/windowWidth) - 1
	if index >= len(series) || series[index].End != c.Window {
		return math.NaN()
	}
	switch w := series[index]; c.Metric {
	case Goodput:
		return w.GoodputPerS
	case P99Latency:
		return w.LatencyNsP99
	case RejectDelay:
		return w.RejectDelayNsAvg
	}
	return math.NaN()
}

// curve names what the cell belongs to: the scheme, and the parts where some are off.
func (c Cell) curve() string {
	if c.Scheme == "" {
		return c.Row.Scheme
	}
	if c.Parts == (Parts{}) || c.Parts == whole {
		return string(c.Scheme)
	}
	return string(c.Scheme) + " " + c.Parts.String()
}

// drawnPanel is the panel whose plot the cell belongs to; what lies off the plot is given a panel of its own in the data.
func (c Cell) drawnPanel() string {
	panel, _, _ := strings.Cut(c.Panel, "-offchart")
	return panel
}
