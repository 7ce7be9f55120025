package experiments

import (
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// e21 sweeps the aggressiveness of the law.
func e21() *Experiment {
	return &Experiment{
		ID: "E21", Title: "sparse against dense",
		About: "The published law with other settings of alpha, the increase a client and update, and beta, the decrease. Exponential 10us at 1.2x. Sparse: 10,000 clients, each call of another.\n" +
			"Dense: 200 clients, of which 20 wake up at the same instant and make a call each. Bursts: 200 clients, which wake up 5 at a time and make 10 calls each: these gain or\n" +
			"lose nothing by either setting, since what is lost there is lost at clients while the server idles between the bursts.",
		Figures: []string{figShare, figP50, figP99, figDrops, figUnsent, figCuts},
		Charts: []chart{
			{Figure: figShare, Title: "Goodput over alpha", Named: true},
			{Figure: figDrops, Title: "Drops over alpha", Named: true},
		},
		Jobs: e21Jobs, Judge: e21Judge,
	}
}

var demands = []struct {
	name    string
	clients int
	crowd   simulate.Crowd
}{
	{"sparse", 10_000, simulate.Crowd{}},
	{"dense", 200, simulate.Crowd{Together: 20}},
	{"bursts", 200, simulate.Crowd{Together: 5, Burst: 10}},
}

const sweptCalls = 2 // times the size's at each point

func e21Jobs(size Size) (all []job) {
	alphas, betas := []float64{0.001, 0.01, 0.1}, []float64{0.02, 0.1}
	if size.Full {
		alphas, betas = []float64{0.0005, 0.001, 0.005, 0.01, 0.05, 0.1}, []float64{0.01, 0.02, 0.05, 0.1}
	}
	add := func(name string, clients int, crowd simulate.Crowd, scheme string, law simulate.Law, label string) {
		s := simulate.Scenario{Scheme: scheme, Law: law, Clients: clients, Crowd: crowd, Service: service(workload.Exponential, 10*time.Microsecond)}
		j := job{Panel: name, At: label, X: law.Alpha * 1000, Arm: scheme, Seeds: min(size.Seeds, 3)}
		j.Play = playing(atLoad(Size{Calls: sweptCalls * size.Calls, Warmup: size.Warmup}, s, 1.2))
		if law.Beta > 0 {
			j.Arm = sweptLaw(law.Beta)
		}
		all = append(all, j)
	}
	for _, d := range demands {
		for _, alpha := range alphas {
			for _, beta := range betas {
				add(d.name, d.clients, d.crowd, baseline.BreakwaterPaper, simulate.Law{Alpha: alpha, Beta: beta}, fmt.Sprintf("alpha %g", alpha))
			}
		}
		add(d.name, d.clients, d.crowd, baseline.Stillwater, simulate.Law{}, "its own")
		add(d.name, d.clients, d.crowd, baseline.None, simulate.Law{}, "no law")
	}
	return all
}

// Where each setting wins is told by the two ends of the sweep, with the published decrease.
const (
	gentle, eager = "alpha 0.001", "alpha 0.1"
	betaPublished = 0.02
)

// hindsightMax is how far ours, which has one setting, may be below the best of the twenty settings of the published law, which is another one in each demand.
const hindsightMax = 0.015

// e21Judge compares ours with the best setting of the published law in each demand, and finds where each setting wins.
func e21Judge(t *Table) (checks []Check) {
	for _, d := range demands {
		rows := only(t.Rows, func(r *Row) bool { return r.Panel == d.name })
		var ours, best *Row
		for _, r := range rows {
			switch {
			case r.Arm == baseline.Stillwater:
				ours = r
			case r.Arm != baseline.None && (best == nil || r.Mean(figGoodput) > best.Mean(figGoodput)):
				best = r
			}
		}
		lead := ours.Mean(figGoodput)/best.Mean(figGoodput) - 1
		checks = append(checks, Check{Met: lead >= -hindsightMax, Text: fmt.Sprintf("ours, with one setting, is not below the best setting of the published law by more than %.1f %%: %+.2f %% in demand %s, against %s, %s",
			100*hindsightMax, 100*lead, d.name, best.At, best.Arm)})
	}
	law := sweptLaw(betaPublished)
	gain := func(demand string) float64 {
		return t.Row(demand+", "+eager, law).Mean(figGoodput)/t.Row(demand+", "+gentle, law).Mean(figGoodput) - 1
	}
	sparse, dense := gain("sparse"), gain("dense")
	checks = append(checks, Check{Met: sparse > 0 && dense < 0, Text: fmt.Sprintf(
		"sparse demand wants the eager increase, and dense demand the gentle one: alpha 0.1 instead of 0.001 gains %+.2f %% and %+.2f %% of the goodput (bursts %+.2f %%)",
		100*sparse, 100*dense, 100*gain("bursts"))})
	return append(checks, collapse(t.Of(baseline.None), figShare, collapsedMax))
}

// sweptLaw names a line of the sweep.
func sweptLaw(beta float64) string { return fmt.Sprintf("%s beta %g", baseline.BreakwaterPaper, beta) }
