package published

import "math"

// Metric is what a point's Y says. The words are those of the data.
type Metric string

// The metrics.
const (
	Goodput         Metric = "goodput"    // answers within the SLO
	Throughput      Metric = "throughput" // answers
	MedianLatency   Metric = "median_latency"
	P99Latency      Metric = "p99_latency"
	DropRate        Metric = "drop_rate" // of the requests that reached the server
	MessageRate     Metric = "msg_rate"  // packets at the server
	MeanRejectDelay Metric = "mean_reject_delay"
)

// XName is what a point's X says.
type XName string

// The axes.
const (
	DemandMrps     XName = "demand_Mrps"
	DemandKrps     XName = "demand_krps"
	Clients        XName = "clients"
	ServiceShape   XName = "service_dist" // constant, exponential or bimodal
	TimeS          XName = "time_s"
	AlphaBeta      XName = "alpha/beta" // as a0.1%/b2%
	ThroughputKrps XName = "throughput_krps"
	NoX            XName = "" // a single value beside the curves
)

// Row is one point of one figure.
type Row struct {
	Line   int // in the data, 1 is the header
	Figure string
	Panel  string
	Scheme string // the word in the figure's legend
	XName  XName
	X      string  // as written; what a number cannot say is in it too
	XValue float64 // X where it is a number; else NaN
	Metric Metric
	Value  float64 // in Unit
	Unit   string
	Error  float64 // of reading, in Unit; NaN where there is none: Value is a lower bound
}

// units are the words of the data, per metric, with the factors to requests (or packets) per second, nanoseconds, and shares of 1.
var units = map[Metric]map[string]float64{
	Goodput:         {"kreqs/s": 1e3},
	Throughput:      {"kreqs/s": 1e3},
	MedianLatency:   {"us": 1e3},
	P99Latency:      {"us": 1e3, "ms": 1e6},
	DropRate:        {"%": 0.01},
	MessageRate:     {"Mpps": 1e6},
	MeanRejectDelay: {"ms": 1e6},
}

// Base returns the value in requests or packets per second, nanoseconds, or as a share of 1.
func (r Row) Base() float64 { return r.Value * units[r.Metric][r.Unit] }

// BaseError returns the reading error in the unit of Base; NaN where Value is a lower bound.
func (r Row) BaseError() float64 { return r.Error * units[r.Metric][r.Unit] }

// LowerBound reports whether the true value lies above Value, off the plot.
func (r Row) LowerBound() bool { return math.IsNaN(r.Error) }
