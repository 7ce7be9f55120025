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
			"looks like overload. Poller: a further CPU handles the packets; run to completion: whichever CPU is free.",
		figures: []string{figShare, figP50, figP99, figDrops, figUnsent, figCuts},
		jobs:    e17Jobs, judge: e17Judge,
	}
}

const (
	longShare   = 1e-4
	longService = 5 * time.Millisecond
	longCalls   = 4 // times the size's calls at each point: long ones are few
	cutsMax     = 0.01
)

func e17Jobs(size Size) (all []job) {
	for _, workers := range []int{1, 8} {
		for _, poller := range []bool{true, false} {
			name := map[bool]string{true: "poller", false: "run to completion"}[poller]
			for _, scheme := range []string{baseline.Stillwater, baseline.BreakwaterPaper, baseline.BreakwaterArtifact} {
				s := simulate.Scenario{
					Scheme: scheme, Clients: 100, SLO: simulate.Duration(200 * time.Microsecond),
					Mix: []simulate.Part{
						{Share: 1 - longShare, Service: service(workload.Exponential, 10*time.Microsecond)},
						{Share: longShare, Service: service(workload.Constant, longService)},
					},
					Server: simulate.Server{CPUs: workers, Poller: poller},
				}
				all = append(all, job{
					panel: name, at: fmt.Sprintf("%d workers", workers), x: float64(workers), scheme: scheme,
					play: playing((Size{Calls: longCalls * size.Calls, Warmup: size.Warmup}).atLoad(s, 0.5)),
				})
			}
		}
	}
	return all
}

func e17Judge(t *Table) []Check {
	ours := t.of(baseline.Stillwater)
	polled := func(r *Row) bool { return r.Panel == "poller" }
	one := t.row("run to completion, 1 workers", baseline.Stillwater)
	return []Check{
		bound("ours with a poller: false cuts", only(ours, polled), figCuts, cutsMax, false),
		{one.Mean(figCuts) > cutsMax, fmt.Sprintf("the control arm, run to completion on one CPU, is misled: %s of the updates cut the pool", kindOf(figCuts).text(one.Mean(figCuts)))},
	}
}
