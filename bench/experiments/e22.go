package experiments

import (
	"context"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// e22 is waking up from zero.
func e22() *Experiment {
	return &Experiment{
		ID: "E22", Title: "waking up from zero",
		About: "10,000 registered clients, exponential 10us. Wake-up: after 1.2 s of silence, in which their leases ran out, clients call at random; woken are the calls of those that hold nothing, and\n" +
			"the wake-up is how long a call waits for its credit, of those that have to. Storm: 10,000 clients that nobody knows dial and call at the same instant, without a\n" +
			"deadline, and who is refused calls again at once; served is the rate of answers until the last one, of the capacity and of what the refusals leave of it, refused how\n" +
			"many times each is, in the mean.",
		Figures: []string{figP50, figP99, figWoken, figWake, figWakeRTT, figStorm, figStormNet, figAnswered, figTurned, figCredits},
		Jobs:    e22Jobs, Judge: e22Judge,
	}
}

const (
	wakeClients = 10_000
	wakeRest    = 1200 * time.Millisecond // longer than a lease
	wakeMax     = 5                       // round trips
	// stormMin is of the capacity that the refusals leave. 136 of 10,000 requests fit under the drop threshold, so the law has each of the others refused once: at
	// 1.32 us that makes 13.06 ms of what would take 11.76 ms, and nobody who knew everything could serve more than 90.0 % of the whole capacity.
	stormMin  = 0.9
	gaveUpMax = 0.3 // of the clients
	stormTime = 500 * time.Millisecond
)

func e22Jobs(size Size) (all []job) {
	schemes := []string{baseline.Stillwater, baseline.BreakwaterPaper, baseline.BreakwaterArtifact, baseline.None}
	for _, load := range []float64{0.1, 0.5} {
		for _, scheme := range schemes {
			s := simulate.Scenario{Scheme: scheme, Clients: wakeClients, Service: service(workload.Exponential, 10*time.Microsecond)}
			demand := load * s.Capacity()
			s.Greet = simulate.Duration(wakeClients / (greetLoad * s.Capacity()) * float64(time.Second))
			s.Demand = []simulate.Step{{}, {At: simulate.Duration(wakeRest), PerS: demand}}
			s.Measure = simulate.Duration(wakeRest) + simulate.Duration(float64(size.Calls)/demand*float64(time.Second))
			all = append(all, job{Panel: "wake-up", At: fmt.Sprintf("%gx", load), X: load, Arm: scheme, Seeds: min(size.Seeds, 5), Play: playing(s)})
		}
	}
	for _, scheme := range schemes {
		s := simulate.Scenario{
			Scheme: scheme, Clients: 1, Crowd: simulate.Crowd{Dial: wakeClients, Again: true}, Service: service(workload.Exponential, 10*time.Microsecond),
			Hosts: 1, Budget: -1, Measure: simulate.Duration(stormTime), Warmup: simulate.Duration(time.Millisecond), Demand: []simulate.Step{{}},
		}
		all = append(all, job{Panel: "storm", At: "10000 dial", Arm: scheme, Seeds: min(size.Seeds, 5), Play: storm(s)})
	}
	return all
}

// storm counts answers until the last one.
func storm(s simulate.Scenario) func(context.Context, uint64) (Sample, error) {
	return func(ctx context.Context, seed uint64) (Sample, error) {
		seeded := s
		seeded.Seed = seed
		r, err := simulate.Run(ctx, seeded)
		if err != nil {
			return Sample{}, err
		}
		answers, refused, took := float64(r.Outcomes["ok"]), float64(r.Outcomes["rejected"]), time.Duration(r.LastAnswer).Seconds()
		server := r.Scenario.Server
		refusing := refused * time.Duration(server.Costs.Receive+server.Costs.Reject).Seconds() / float64(server.CPUs)
		sample := Sample{Figures: map[string]float64{
			figP50: r.LatencyP50, figP99: r.LatencyP99, figAnswered: answers / float64(s.Dial),
			figTurned: refused / float64(s.Dial), figStorm: answers / took / r.CapacityPerS, figStormNet: answers / (took - refusing) / r.CapacityPerS,
		}}
		return sample, nil
	}
}

func e22Judge(t *Table) []Check {
	ours := t.Of(baseline.Stillwater)
	storms := func(r *Row) bool { return r.Panel == "storm" }
	calm := func(r *Row) bool { return r.Panel != "storm" }
	return []Check{
		bound("ours: clients wake up that hold nothing,", only(ours, calm), figWoken, wakeClients/2, true),
		bound("ours: a wake-up takes p99", only(ours, calm), figWakeRTT, wakeMax, false),
		bound("ours: the storm is served, of the capacity that its refusals leave,", only(ours, storms), figStormNet, stormMin, true),
		bound("the control arm collapses, whose clients give up after 10 us without a credit: answered of the storm",
			only(t.Of(baseline.BreakwaterArtifact), storms), figAnswered, gaveUpMax, false),
	}
}
