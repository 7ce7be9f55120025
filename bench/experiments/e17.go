package experiments

import (
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// e17 is one long request among short ones.
func e17() *Experiment {
	return &Experiment{
		ID: "E17", Title: "one long request",
		About: "100 clients at 0.5x; one call in 10,000 takes 5 ms, the others exponential 10us. The server is never overloaded, so a pool that is cut is cut in error: by a long request that\n" +
			"looks like overload. Poller: a further CPU handles the packets; shared ring: whichever CPU is free, before it runs the next handler; own rings: each CPU from a\n" +
			"ring of its own, as network interfaces steer packets, so that a long request lets its ring grow old: run to completion, the control arm.",
		Figures: []string{figShare, figLost, figP50, figP99, figDrops, figUnsent, figCuts},
		Jobs:    e17Jobs, Judge: e17Judge,
	}
}

const (
	longShare   = 1e-4
	longService = 5 * time.Millisecond
	longCalls   = 4 // times the size's calls at each point: long ones are few
	cutsMax     = 0.01
	polled      = "poller"
	steered     = "own rings"
	longMax     = 0.005
	misledMin   = 0.01
)

func e17Jobs(size Size) (all []job) {
	for _, workers := range []int{1, 8} {
		for _, kind := range []struct {
			name            string
			poller, steered bool
		}{{polled, true, false}, {"shared ring", false, false}, {steered, false, true}} {
			if kind.steered && workers == 1 {
				continue // it is the shared one
			}
			for _, scheme := range []string{baseline.Stillwater, baseline.BreakwaterPaper, baseline.BreakwaterArtifact} {
				s := simulate.Scenario{
					Scheme: scheme, Clients: 100, SLO: simulate.Duration(200 * time.Microsecond),
					Mix: []simulate.Part{
						{Share: 1 - longShare, Service: service(workload.Exponential, 10*time.Microsecond)},
						{Share: longShare, Service: service(workload.Constant, longService)},
					},
					Server: simulate.Server{CPUs: workers, Poller: kind.poller, Steered: kind.steered}, Hosts: 16,
				}
				all = append(all, job{
					Panel: kind.name, At: fmt.Sprintf("%d workers", workers), X: float64(workers), Arm: scheme,
					Play: playing(atLoad(Size{Calls: longCalls * size.Calls, Warmup: size.Warmup}, s, 0.5)),
				})
			}
		}
	}
	return all
}

func e17Judge(t *Table) []Check {
	ours := t.Of(baseline.Stillwater)
	many := func(panel string) func(*Row) bool {
		return func(r *Row) bool { return r.Panel == panel && r.X > 1 }
	}
	return []Check{
		bound("ours with a poller: false cuts", only(ours, func(r *Row) bool { return r.Panel == polled }), figCuts, cutsMax, false),
		bound("ours with a poller and 8 workers: lost", only(ours, many(polled)), figLost, longMax, false),
		bound("the control arm, run to completion, is misled at half of its capacity: lost", only(ours, many(steered)), figLost, misledMin, true),
	}
}
