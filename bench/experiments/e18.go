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
			"what the server would refuse; ours waits at the client.",
		Figures: []string{figShare, figP99, figDrops, figUnsent, figReject, figRejectSLO},
		Charts:  []chart{{Figure: figShare, Title: "Goodput over load", X: "load, times the capacity"}},
		Jobs:    e18Jobs, Judge: e18Judge,
	}
}

// refused are in time, not in calls: at twenty times the capacity these come fast.
const (
	refusedTime    = 10 * time.Millisecond
	refusedTimeAll = 20 * time.Millisecond
	refusedSeeds   = 3
	rejectMax      = 0.5
	shedOnlyMax    = 0.7 // goodput of shed-only at ten times the capacity, where a refusal costs half a service
	floodMin       = 0.90
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

func e18Judge(t *Table) []Check {
	dear := func(r *Row) bool { return r.Panel == "a refusal costs 50 %" && r.X >= 10 }
	ours := t.Of(baseline.Stillwater)
	return []Check{
		bound("ours: reject latency p99, of the SLO,", only(ours, func(r *Row) bool { return r.Mean(figReject) > 0 }), figRejectSLO, rejectMax, false),
		bound("ours: goodput of the capacity", ours, figShare, floodMin, true),
		bound("the control arm, shed only, saturates on its refusals: goodput of the capacity", only(t.Of(baseline.CoDel), dear), figShare, shedOnlyMax, false),
		collapse(t.Of(baseline.None), figShare, collapsedMax),
	}
}
