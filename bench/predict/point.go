//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// The loads of E12, and of E6 before, in and after its spike; times capacity.
var (
	loads = []float64{0.5, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0}
	spike = [...]float64{0.4, 1.4, 0.4}
)

const (
	boundLoad      = 2.0
	slice          = 20 * time.Millisecond // of E6
	outstandingMax = 1 << 19
)

var schemes = []string{sw.SchemeNone, sw.SchemeStillwater}

// point is one run: a load of E12, or E6.
type point struct {
	Experiment string               `json:"experiment"`
	Scheme     string               `json:"scheme"`
	Service    workload.ServiceTime `json:"service"`
	Load       float64              `json:"load"` // times capacity, of the measured time's beginning
	Spike      bool                 `json:"spike"`
}

func (p point) describe() string {
	return fmt.Sprintf("%s, %v, %.1f times capacity, %s", p.Experiment, p.Service, p.Load, p.Scheme)
}

// plan lists the points. Both schemes at one load stand next to each other.
func (s settings) plan() (all []point) {
	shapes := []workload.Shape{workload.Constant}
	if s.exponential {
		shapes = append(shapes, workload.Exponential)
	}
	for _, shape := range shapes {
		service := workload.ServiceTime{Shape: shape, Mean: prove.Work.Mean}
		for _, times := range loads {
			for _, scheme := range schemes {
				all = append(all, point{Experiment: "E12", Scheme: scheme, Service: service, Load: times})
			}
		}
		for _, scheme := range schemes {
			all = append(all, point{Experiment: "E6", Scheme: scheme, Service: service, Load: spike[0], Spike: true})
		}
	}
	return all
}

// change is a load from some time on.
type change struct {
	at    time.Duration
	times float64
}

// changes are those after the first load: in E6 the middle third of the measured time is the spike.
func (s settings) changes(p point) []change {
	if !p.Spike {
		return nil
	}
	third := (s.window / 3).Round(slice)
	return []change{{third, spike[1]}, {2 * third, spike[2]}}
}

// figures are what came of a point, on either side. Rates are per second, shares are of the calls.
type figures struct {
	OfferedPerS float64   `json:"offered_per_s"`
	GoodputPerS float64   `json:"goodput_per_s"`
	LatencyP50  float64   `json:"latency_ns_p50"`
	LatencyP99  float64   `json:"latency_ns_p99"`
	Rejected    float64   `json:"rejected_share"`                // by the server
	Expired     float64   `json:"expired_share"`                 // at the client, never sent
	Late        float64   `json:"late_share"`                    // at the client, sent and past the deadline
	PacketsOut  float64   `json:"packets_out_per_answer"`        // of the server
	Slices      []float64 `json:"slice_goodput_per_s,omitempty"` // E6
}

// comparison is one point in one round.
type comparison struct {
	Kind string `json:"kind"`
	point
	CapacityPerS      float64  `json:"capacity_per_s"`       // just before
	CapacityAfterPerS float64  `json:"capacity_after_per_s"` // just after
	UndisturbedPerS   float64  `json:"undisturbed_per_s"`    // just before, in the best slice
	Real              figures  `json:"real"`
	Predicted         figures  `json:"predicted"`
	WithAway          figures  `json:"predicted_with_cpu_away"`
	ServerAway        away     `json:"server_away"`
	ClientAway        away     `json:"client_away"`
	Lateness          lateness `json:"generator_lateness"`
	Retransmitted     float64  `json:"retransmitted_share"`
	PacketsLost       uint64   `json:"packets_lost_count"` // by the server's port
	Failures          []string `json:"failures,omitempty"` // why the generator says that it is not to be believed
	Reasons           []reason `json:"reasons,omitempty"`
}

// real runs one point against a fresh server, between two measurements of its capacity: the speed of a shared machine changes within seconds.
func (s settings) real(ctx context.Context, p *child.Pair, in inputs, at point, seed uint64) (c comparison, err error) {
	c = comparison{Kind: "point", point: at}
	if _, err = p.ServeAndDial(ctx, child.ServeRequest{Scheme: at.Scheme, SLO: s.slo}, s.sessions); err != nil {
		return c, err
	}
	if c.CapacityPerS, c.UndisturbedPerS, err = s.capacity(ctx, p, s.calibrate, seed); err != nil {
		return c, err
	}
	if c.CapacityPerS == 0 { // the machine stood still, and what it could do before is the better guess
		c.CapacityPerS, c.UndisturbedPerS = in.CapacityPerS, in.UndisturbedPerS
	}
	before, err := watch(ctx, p)
	if err != nil {
		return c, err
	}
	r, err := p.Open(ctx, target.MethodSpin, s.loop(at, c.CapacityPerS, seed))
	if err != nil {
		return c, err
	}
	after, err := watch(ctx, p)
	if err != nil {
		return c, err
	}
	c.observe(&r, before, after)
	c.CapacityAfterPerS, _, err = s.capacity(ctx, p, s.calibrate, seed)
	return c, err
}

// loop is the point as load. With control a call is worth nothing after the SLO, and says so; without, callers wait. So it is in the demo and in the
// simulator.
func (s settings) loop(at point, capacityPerS float64, seed uint64) load.OpenLoop {
	loop := load.OpenLoop{Plan: s.plain(s.window, seed), Rate: at.Load * capacityPerS, MaxOutstanding: outstandingMax}
	loop.Warmup, loop.SLO, loop.ServiceTime = s.warmup, s.slo, at.Service
	if at.Scheme == sw.SchemeStillwater {
		loop.Deadline = s.slo
	}
	if at.Spike {
		loop.BucketWidth = slice
	}
	for _, to := range s.changes(at) {
		loop.Steps = append(loop.Steps, load.Step{At: to.at, RatePerS: to.times * capacityPerS})
	}
	return loop
}

// watched is the state of both processes at one instant.
type watched struct {
	server, client usage
	stats          sw.Stats
}

func watch(ctx context.Context, p *child.Pair) (w watched, err error) {
	if w.stats, err = p.ServerStats(ctx); err != nil {
		return w, err
	}
	if w.server, err = usageOf(p.Lab.Server.PID()); err != nil {
		return w, err
	}
	w.client, err = usageOf(p.Lab.Client.PID())
	return w, err
}

// observe fills in what the point was for real.
func (c *comparison) observe(r *load.Result, before, after watched) {
	offered := max(float64(r.Counts.Offered), 1)
	c.Real = figures{
		OfferedPerS: r.OfferedPerS, GoodputPerS: r.GoodputPerS, LatencyP50: float64(r.LatencyNsP50), LatencyP99: float64(r.LatencyNsP99),
		Rejected: float64(r.Counts.Rejected) / offered, Expired: float64(r.Counts.Expired) / offered, Late: float64(r.Counts.Deadline) / offered,
		PacketsOut: float64(after.stats.PacketsSent-before.stats.PacketsSent) / max(float64(after.stats.Completed-before.stats.Completed), 1),
	}
	for _, b := range r.Buckets {
		c.Real.Slices = append(c.Real.Slices, float64(b.Good)/slice.Seconds())
	}
	c.ServerAway, c.ClientAway = after.server.since(before.server), after.client.since(before.client)
	c.Lateness, c.Failures = latenessOf(r), r.Failures
	c.Retransmitted = float64(after.stats.Retransmitted-before.stats.Retransmitted) / max(float64(after.stats.Offered-before.stats.Offered), 1)
	c.PacketsLost = lost(&after.stats) - lost(&before.stats)
}

// lost is what the server's port lost on either way.
func lost(s *sw.Stats) uint64 { return s.Port.ReceiveDropped + s.Port.SendDropped + s.NoBuffer }
