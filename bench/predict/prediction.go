//go:build linux

package main

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/dispatcher"
)

// predict plays the points, twice each, in the simulator.
func (s settings) predict(ctx context.Context, in inputs, all []comparison, seed uint64) error {
	scenarios := make([]simulate.Scenario, 0, 2*len(all))
	for i := range all {
		scenarios = append(scenarios, s.scenario(in, &all[i], seed), s.withAway(in, &all[i], seed))
	}
	return simulate.RunAll(ctx, scenarios, runtime.NumCPU(), func(i int, r *simulate.Result) error {
		c := &all[i/2]
		if i%2 == 0 {
			c.Predicted = figuresOf(r)
			return nil
		}
		c.WithAway = figuresOf(r)
		c.Reasons = c.reasons(s.slo)
		return nil
	})
}

// scenario is a point on this machine, as it was just before: one P that polls and serves, as many clients in one process, the same law.
func (s settings) scenario(in inputs, c *comparison, seed uint64) simulate.Scenario {
	return s.machineOf(in, c, seed, cost(c.CapacityPerS))
}

// machineOf has requests cost so much. It is split half and half between receiving and sending, since they cannot be told apart from outside; a refusal
// and a credit update are half of a reply, as simulate.PaperCosts has it.
func (s settings) machineOf(in inputs, c *comparison, seed uint64, each time.Duration) simulate.Scenario {
	half := simulate.Duration(each / 2)
	demand := []simulate.Step{{PerS: c.Load * c.CapacityPerS}}
	for _, to := range s.changes(c.point) {
		demand = append(demand, simulate.Step{At: simulate.Duration(to.at), PerS: to.times * c.CapacityPerS})
	}
	out := simulate.Scenario{
		Seed: seed, Scheme: c.Scheme, Clients: s.sessions, Hosts: 1, Service: c.Service, Demand: demand,
		Server: simulate.Server{CPUs: 1, Costs: &simulate.Costs{Receive: half, Send: half, Reject: half / 2, Credit: half / 2}},
		// What one call alone takes has its own costs in it. Nothing at all would mean the usual round trip.
		Network: simulate.Network{RTT: simulate.Duration(max(in.RoundTrip-each, 2))},
		SLO:     simulate.Duration(s.slo), Warmup: simulate.Duration(s.warmup), Measure: simulate.Duration(s.window),
	}
	if c.Spike {
		out.Window = simulate.Duration(slice)
	}
	return out
}

// withAway is the same with the CPU gone now and then: a request in so many takes longer on the CPU, by the mean time for which it was gone. What a
// request costs is then what it cost while nothing was gone.
func (s settings) withAway(in inputs, c *comparison, seed uint64) simulate.Scenario {
	out := s.machineOf(in, c, seed, cost(c.UndisturbedPerS))
	gone := c.ServerAway.and(in.Stalls)
	if gone.Mean == 0 {
		return out
	}
	served := math.Min(c.Load, 1) * c.CapacityPerS
	out.Server.Wait = &simulate.Wait{For: simulate.Duration(gone.Mean), Share: math.Min(gone.PerS/served, 1), Lock: true}
	return out
}

// figuresOf are the simulator's.
func figuresOf(r *simulate.Result) figures {
	var calls float64
	for _, n := range r.Outcomes {
		calls += float64(n)
	}
	share := func(outcomes ...dispatcher.Outcome) (sum float64) {
		for _, o := range outcomes {
			sum += float64(r.Outcomes[o.String()])
		}
		return sum / max(calls, 1)
	}
	f := figures{
		OfferedPerS: r.OfferedPerS, GoodputPerS: r.GoodputPerS, LatencyP50: r.LatencyP50, LatencyP99: r.LatencyP99,
		Rejected:   share(dispatcher.OutcomeRejected),
		Expired:    share(dispatcher.OutcomeExpired, dispatcher.OutcomeQueueFull, dispatcher.OutcomeThrottled, dispatcher.OutcomeBreakerOpen),
		Late:       share(dispatcher.OutcomeDeadline),
		PacketsOut: r.SentPerS / max(r.ThroughputPerS, 1),
	}
	for _, w := range r.Windows {
		f.Slices = append(f.Slices, w.GoodputPerS)
	}
	return f
}
