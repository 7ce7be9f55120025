// Package runner simulates the points of package paper: it translates each into a scenario of package simulate, on the machine of the paper.
package runner

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/paper"
	"github.com/stillwater-rpc/stillwater/bench/simulate"
)

// Runner is a paper.Runner. It has no state.
type Runner struct{}

// Machine is the paper's server, the same for every point and every scheme. Its constants were set from what the paper shows of a server without control,
// and of low load; docs/simulator.md says how.
var Machine = simulate.Server{
	Costs:   &simulate.PaperCosts,
	Threads: true,
	Pause:   simulate.Pause{Every: simulate.Duration(2500 * time.Microsecond), For: simulate.Duration(30 * time.Microsecond)},
}

// hosts is how many connections the clients are spread over. The paper's clients have one each; more of them cost the simulator time and change nothing.
const hosts = 100

// Costs says in words what Machine is.
func Costs() string {
	c, p := Machine.Costs, Machine.Pause
	return fmt.Sprintf("%v to receive a message, %v to send a reply, %v to refuse, %v to grant; each CPU away for %v every %v",
		time.Duration(c.Receive), time.Duration(c.Send), time.Duration(c.Reject), time.Duration(c.Credit), time.Duration(p.For), time.Duration(p.Every))
}

// Run simulates a point. It returns ctx's error soon after ctx ends.
func (Runner) Run(ctx context.Context, p paper.Point, seed uint64) (paper.Result, error) {
	r, err := simulate.Run(ctx, Scenario(p, seed))
	if err != nil {
		return paper.Result{}, err
	}
	return result(r), nil
}

// Scenario is a point as a scenario, which can be written into a file and played by itself.
func Scenario(p paper.Point, seed uint64) simulate.Scenario {
	s := simulate.Scenario{
		Name: p.Name(), Seed: seed, Scheme: string(p.Scheme), Law: law(p), Server: Machine,
		Network: simulate.Network{RTT: simulate.Duration(p.RTT)}, Clients: p.Clients, Hosts: min(hosts, p.Clients), Service: p.Service,
		SLO: simulate.Duration(p.SLO), Warmup: simulate.Duration(p.Warmup), Measure: simulate.Duration(p.Measured), Window: simulate.Duration(p.Window),
	}
	s.Server.CPUs = p.Workers
	for _, step := range p.Load {
		s.Demand = append(s.Demand, simulate.Step{At: simulate.Duration(step.At), PerS: step.DemandPerS})
	}
	return s
}

// law is the point's tuning, and what of its scheme is switched off.
func law(p paper.Point) simulate.Law {
	b, d, s := p.Tuning.Breakwater, p.Tuning.DAGOR, p.Tuning.SEDA
	l := simulate.Law{
		Alpha: b.Alpha, Beta: b.Beta, Target: simulate.Duration(b.TargetDelay), DropThreshold: simulate.Duration(b.DropThreshold),
		DAGOR: simulate.DAGOR{Threshold: simulate.Duration(d.Threshold), Alpha: d.Alpha, Beta: d.Beta},
		Quiet: p.Scheme == paper.BreakwaterArtifact,
		SEDA:  simulate.SEDA{Target: simulate.Duration(s.Target), AdjI: s.AdjI, AdjD: s.AdjD, Cold: p.Scheme == paper.SEDA},
	}
	if p.Parts != (paper.Parts{}) {
		l.NoCredits, l.NoAQM = !p.Parts.Credits, !p.Parts.AQM
		l.NoSpeculation = p.Parts.Credits && !p.Parts.Speculation
	}
	return l
}

// result is a scenario's result as a point's.
func result(r *simulate.Result) paper.Result {
	out := paper.Result{
		GoodputPerS: r.GoodputPerS, ThroughputPerS: r.ThroughputPerS, CapacityPerS: r.CapacityPerS,
		LatencyNsP50: latency(r.LatencyP50), LatencyNsP99: latency(r.LatencyP99),
		DropRatioServer: r.DropRatio, DropRatioClient: r.DropRatioClient,
		RxPerS: r.ReceivedPerS, TxPerS: r.SentPerS, RejectDelayNsAvg: r.RejectMean,
	}
	for _, w := range r.Windows {
		out.Series = append(out.Series, paper.WindowResult{
			End: time.Duration(w.End), GoodputPerS: w.GoodputPerS, LatencyNsP99: latency(w.LatencyP99), RejectDelayNsAvg: w.RejectMean,
		})
	}
	return out
}

// latency is NaN where nothing was answered.
func latency(ns float64) float64 {
	if ns == 0 {
		return math.NaN()
	}
	return ns
}
