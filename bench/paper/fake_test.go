package paper

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fake stands where the simulator would be. It knows the published values of the plan's points and gives them back; what was not published
// comes from a crude model that only has to look like what such a scheme does.
type fake struct {
	known map[string]Result
	runs  atomic.Int64
	// change distorts a result before it is returned; nil leaves it.
	change func(Point, *Result)
}

// newFake returns a fake that knows the published values of all figures.
func newFake(t testing.TB, size Size) *fake {
	t.Helper()
	known, found := learned.Load(size)
	if !found {
		known = learnAll(plan(t, nil, nil, size))
		learned.Store(size, known)
	}
	return &fake{known: known.(map[string]Result)}
}

// learned keeps, per Size, what no test changes.
var learned sync.Map

func learnAll(plan *Plan) map[string]Result {
	known := map[string]Result{}
	for _, c := range plan.Cells {
		if c.Point < 0 {
			continue
		}
		p := plan.Points[c.Point]
		r, found := known[p.key()]
		if !found {
			r = model(p)
		}
		if c.Row != nil {
			learn(&r, c)
		}
		known[p.key()] = r
	}
	return known
}

// learn puts a published value into a result.
func learn(r *Result, c Cell) {
	if c.Window != 0 {
		w := &r.Series[c.Window/windowWidth-1]
		switch c.Metric {
		case Goodput:
			w.GoodputPerS = c.Published
		case P99Latency:
			w.LatencyNsP99 = c.Published
		case RejectDelay:
			w.RejectDelayNsAvg = c.Published
		}
		return
	}
	switch c.Metric {
	case Goodput:
		r.GoodputPerS = c.Published
	case Throughput:
		r.ThroughputPerS = c.Published
	case MedianLatency:
		r.LatencyNsP50 = c.Published
	case P99Latency:
		r.LatencyNsP99 = c.Published
	case DropRatio:
		r.DropRatioServer = c.Published
	case RxRate:
		r.RxPerS = c.Published
	case TxRate:
		r.TxPerS = c.Published
	}
}

// modelShares is how much of the capacity each scheme keeps as goodput in the model.
var modelShares = map[Scheme]float64{
	Stillwater: 0.97, BreakwaterArtifact: 0.95, BreakwaterPaper: 0.945, DAGOR: 0.9, SEDA: 0.91, None: 0.02, CoDel: 0.75, Window: 0.1, Protego: 0.85,
}

// model makes a result up.
func model(p Point) Result {
	const overhead = 1760 * time.Nanosecond
	capacity := float64(p.Workers) / (p.Service.Mean + overhead).Seconds()
	at := func(demand float64) (goodput, p99 float64) {
		load := demand / capacity
		unloaded := float64(p.SLO) * 0.28
		if load < 0.9 {
			return demand * 0.998, unloaded * (1 + load*load)
		}
		if p.Scheme == None {
			return 0.02 * capacity, 800e6
		}
		share := modelShares[p.Scheme]
		return math.Min(demand, capacity) * share, float64(p.SLO) * (1.9 - share)
	}
	goodput, p99 := at(p.DemandPerS())
	r := Result{
		GoodputPerS: goodput, ThroughputPerS: goodput * 1.02, CapacityPerS: capacity, LatencyNsP50: p99 / 4, LatencyNsP99: p99,
		DropRatioServer: 0.01, DropRatioClient: 1 - goodput/p.DemandPerS(), RxPerS: goodput * 1.05, TxPerS: goodput * 1.04,
	}
	if p.Scheme == SEDA {
		r.DropRatioServer = 0
	}
	if p.Window == 0 {
		return r
	}
	for end := p.Window; end <= p.Measured; end += p.Window {
		goodput, p99 := at(demandAt(p, end))
		r.Series = append(r.Series, WindowResult{End: end, GoodputPerS: goodput, LatencyNsP99: p99})
	}
	return r
}

// Run returns what is known of the point.
func (f *fake) Run(ctx context.Context, p Point, _ uint64) (Result, error) {
	f.runs.Add(1)
	r, found := f.known[p.key()]
	if !found {
		r = model(p)
	}
	r.Series = append([]WindowResult(nil), r.Series...)
	if f.change != nil {
		f.change(p, &r)
	}
	return r, ctx.Err()
}
