package paper

import (
	"math"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// object is one point of one figure in JSON lines. What the run or the figure does not have is left out.
type object struct {
	Experiment string                `json:"experiment"`
	Figure     string                `json:"figure"`
	Panel      string                `json:"panel,omitempty"` // where panels are different set-ups
	Point      string                `json:"point"`
	Scheme     Scheme                `json:"scheme,omitempty"`
	Parts      string                `json:"parts,omitempty"` // where some of the law's are off
	Curve      string                `json:"published_curve,omitempty"`
	Clients    int                   `json:"clients,omitempty"`
	DemandPerS float64               `json:"demand_per_s,omitempty"`
	Service    *workload.ServiceTime `json:"service,omitempty"`

	GoodputPerS             *float64 `json:"goodput_per_s,omitempty"`
	PublishedGoodputPerS    *float64 `json:"published_goodput_per_s,omitempty"`
	ThroughputPerS          *float64 `json:"throughput_per_s,omitempty"`
	PublishedThroughputPerS *float64 `json:"published_throughput_per_s,omitempty"`
	CapacityPerS            *float64 `json:"capacity_per_s,omitempty"`
	LatencyNsP50            *float64 `json:"latency_ns_p50,omitempty"`
	PublishedLatencyNsP50   *float64 `json:"published_latency_ns_p50,omitempty"`
	LatencyNsP99            *float64 `json:"latency_ns_p99,omitempty"`
	PublishedLatencyNsP99   *float64 `json:"published_latency_ns_p99,omitempty"`
	PublishedAtLeast        bool     `json:"published_at_least,omitempty"` // the published latency is a lower bound
	SLONs                   int64    `json:"slo_ns,omitempty"`
	DropRatio               *float64 `json:"drop_ratio,omitempty"`
	PublishedDropRatio      *float64 `json:"published_drop_ratio,omitempty"`
	DropRatioClient         *float64 `json:"drop_ratio_client,omitempty"`
	RxPerS                  *float64 `json:"rx_per_s,omitempty"`
	PublishedRxPerS         *float64 `json:"published_rx_per_s,omitempty"`
	TxPerS                  *float64 `json:"tx_per_s,omitempty"`
	PublishedTxPerS         *float64 `json:"published_tx_per_s,omitempty"`
	RejectDelayNs           *float64 `json:"reject_delay_ns_avg,omitempty"`
	PublishedRejectDelayNs  *float64 `json:"published_reject_delay_ns_avg,omitempty"`

	RecoveryNs          *int64 `json:"recovery_ns,omitempty"` // of F7's whole run; left out where goodput never recovers
	PublishedRecoveryNs *int64 `json:"published_recovery_ns,omitempty"`

	Outside      []string `json:"outside,omitempty"` // metrics that are judged and not within their tolerance
	NotSimulated string   `json:"not_simulated,omitempty"`
}

// finite leaves out what JSON has no number for.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// setUps are the figures whose panels are different runs; in the others a panel is a metric of the same runs.
var setUps = []string{"F1", "F4", "F5", "F6", "F11"}

// objects prints one object per point of a figure, F7's windows among them.
func (s *show) objects(f figure, all []Comparison, results []Result) error {
	type id struct {
		panel  string
		point  int
		window time.Duration
		alone  int // index of what has no run, and so no company
	}
	var order []*object
	known := map[id]*object{}
	for i, c := range all {
		at := id{point: c.Point, window: c.Window, alone: -1}
		if slices.Contains(setUps, f.name) {
			at.panel = c.drawnPanel()
		}
		if c.Point < 0 {
			at.alone = i
		}
		o := known[at]
		if o == nil {
			o = s.object(f, c, at.panel, results)
			known[at] = o
			order = append(order, o)
		}
		o.published(c)
		if c.Judged() && !c.Within() {
			o.Outside = append(o.Outside, c.Metric.String())
		}
	}
	if f.name == "F7" {
		order = append(order, s.recoveryObjects(f, results)...)
	}
	for _, o := range order {
		if err := s.json.Write(o); err != nil {
			return err
		}
	}
	return nil
}

// object makes the object of a cell's point, or window of it, with what the run showed.
func (s *show) object(f figure, c Comparison, panel string, results []Result) *object {
	o := &object{Experiment: f.experiment, Figure: f.name, Panel: panel, Point: c.xLabel(), Scheme: c.Scheme, NotSimulated: c.Why}
	if c.Row != nil {
		o.Curve = c.Row.Scheme
	}
	if c.Parts != whole {
		o.Parts = c.Parts.String()
	}
	if c.Point < 0 {
		return o
	}
	o.setUp(s.plan.Points[c.Point])
	r := results[c.Point]
	if c.Window == 0 {
		o.result(r)
		return o
	}
	o.DemandPerS = demandAt(s.plan.Points[c.Point], c.Window)
	read := func(m Metric) *float64 {
		c.Metric = m
		return finite(c.read(r))
	}
	o.CapacityPerS = finite(r.CapacityPerS)
	o.GoodputPerS, o.LatencyNsP99, o.RejectDelayNs = read(Goodput), read(P99Latency), read(RejectDelay)
	return o
}

// setUp fills in what was run.
func (o *object) setUp(p Point) {
	o.Clients, o.DemandPerS, o.Service, o.SLONs = p.Clients, p.DemandPerS(), &p.Service, int64(p.SLO)
}

// demandAt returns the demand of the window that ends then.
func demandAt(p Point, end time.Duration) (demand float64) {
	for _, s := range p.Load {
		if s.At < end {
			demand = s.DemandPerS
		}
	}
	return demand
}

// result fills in what a whole run showed.
func (o *object) result(r Result) {
	o.GoodputPerS, o.ThroughputPerS, o.CapacityPerS = finite(r.GoodputPerS), finite(r.ThroughputPerS), finite(r.CapacityPerS)
	o.LatencyNsP50, o.LatencyNsP99 = finite(r.LatencyNsP50), finite(r.LatencyNsP99)
	o.DropRatio, o.DropRatioClient = finite(r.DropRatioServer), finite(r.DropRatioClient)
	o.RxPerS, o.TxPerS, o.RejectDelayNs = finite(r.RxPerS), finite(r.TxPerS), finite(r.RejectDelayNsAvg)
}

// published fills in a cell's published value.
func (o *object) published(c Comparison) {
	if c.Row == nil {
		return
	}
	v := finite(c.Published)
	switch c.Metric {
	case Goodput:
		o.PublishedGoodputPerS = v
	case Throughput:
		o.PublishedThroughputPerS = v
	case MedianLatency:
		o.PublishedLatencyNsP50 = v
	case P99Latency:
		o.PublishedLatencyNsP99, o.PublishedAtLeast = v, c.AtLeast()
	case DropRatio:
		o.PublishedDropRatio = v
	case RxRate:
		o.PublishedRxPerS = v
	case TxRate:
		o.PublishedTxPerS = v
	case RejectDelay:
		o.PublishedRejectDelayNs = v
	}
	if c.Panel == "27sets" { // its X is a result too
		o.PublishedThroughputPerS = finite(c.X)
	}
}

// recoveryObjects are the whole runs of F7.
func (s *show) recoveryObjects(f figure, results []Result) (objects []*object) {
	for _, p := range recoveries(s.plan, results) {
		o := &object{Experiment: f.experiment, Figure: f.name, Point: "spike", Scheme: p.Scheme}
		o.setUp(s.plan.Points[p.point])
		o.result(results[p.point])
		o.RecoveryNs = reached(p.Ours.Time)
		if p.HasPublished {
			o.PublishedRecoveryNs = reached(p.Published.Time)
		}
		objects = append(objects, o)
	}
	return objects
}

// reached leaves out what never happened.
func reached(d time.Duration) *int64 {
	if d < 0 {
		return nil
	}
	ns := int64(d)
	return &ns
}
