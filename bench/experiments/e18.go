package experiments

import (
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// e18 is the cost of refusing.
func e18() *Experiment {
	return &Experiment{
		ID: "E18", Title: "the cost of refusing",
		About: "1,000 clients, exponential 10us. A refusal costs the server 1 to 50 % of a service, besides receiving what it refuses. CoDel sheds at the server alone; DAGOR's clients shed\n" +
			"what the server would refuse; ours waits at the client, and gives up there. Reject p99 is until a caller learns that the server refused its call (0 = it refused\n" +
			"none), gave up p99 until it learns that its call was never sent.",
		Figures: []string{figShare, figP99, figDrops, figUnsent, figReject, figRejectSLO, figExpire, figExpireSLO},
		Charts:  []chart{{Figure: figShare, Title: "Goodput over load", X: "load, times the capacity"}},
		Jobs:    e18Jobs, Derive: e18Derive, Judge: e18Judge,
	}
}

// refused are in time, not in calls: at twenty times the capacity these come fast.
const (
	refusedTime    = 10 * time.Millisecond
	refusedTimeAll = 20 * time.Millisecond
	refusedSeeds   = 3
	rejectMax      = 0.5
	shedOnlyMax    = 0.7 // goodput of shed-only at ten times the capacity, where a refusal costs half a service
	floodMin       = 0.98
)

func e18Jobs(size Size) (all []job) {
	loads, shares, measure, seeds := []float64{2, 10}, []float64{0.01, 0.5}, refusedTime, 1
	if size.Full {
		loads, shares, measure, seeds = []float64{2, 5, 10, 20}, []float64{0.01, 0.05, 0.2, 0.5}, refusedTimeAll, refusedSeeds
	}
	for _, share := range shares {
		for _, load := range loads {
			for _, scheme := range []string{baseline.Stillwater, baseline.DAGOR, baseline.CoDel, baseline.None} {
				s := simulate.Scenario{
					Scheme: scheme, Service: service(workload.Exponential, 10*time.Microsecond),
					Warmup: simulate.Duration(2 * measure), Measure: simulate.Duration(measure),
				}
				costs := simulate.PaperCosts
				costs.Reject = simulate.Duration(share * float64(s.Service.Mean))
				s.Server.Costs = &costs
				all = append(all, job{
					Panel: fmt.Sprintf("a refusal costs %g %%", 100*share), At: fmt.Sprintf("%gx", load), X: load, Arm: scheme, Seeds: seeds,
					Play: playing(atLoad(size, s, load)),
				})
			}
		}
	}
	return all
}

// e18Derive leaves the runs in which nobody was refused out of the time that it takes to learn of it.
func e18Derive(r *Row) {
	for _, figure := range []string{figReject, figRejectSLO, figExpire, figExpireSLO} {
		sum, runs := 0.0, 0
		for _, s := range r.Samples {
			if v := s.Figures[figure]; v > 0 {
				sum, runs = sum+v, runs+1
			}
		}
		r.Derived[figure] = sum / float64(max(runs, 1))
	}
}

func e18Judge(t *Table) []Check {
	dear := func(r *Row) bool { return r.Panel == "a refusal costs 50 %" && r.X >= 10 }
	ours := t.Of(baseline.Stillwater)
	return []Check{
		bound("ours: reject latency p99, of the SLO,", ours, figRejectSLO, rejectMax, false),
		bound("ours: until a client gives up, p99, of the SLO,", ours, figExpireSLO, rejectMax, false),
		bound("ours: goodput of the capacity", ours, figShare, floodMin, true),
		bound("the control arm, shed only, saturates on its refusals: goodput of the capacity", only(t.Of(baseline.CoDel), dear), figShare, shedOnlyMax, false),
		collapse(t.Of(baseline.None), figShare, collapsedMax),
	}
}
