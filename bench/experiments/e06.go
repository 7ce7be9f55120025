package experiments

import (
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// e6 is the paper's spike.
func e6() *Experiment {
	return &Experiment{
		ID: "E6", Title: "the spike",
		About: "1,000 clients, exponential 10us. The staircase is 400k, 800k, 1.2M, 800k and 400k a second; the step is 0.4, 1.4 and 0.4 times the capacity. Recovery is from the\n" +
			"beginning of the overload until goodput is, and for 10 ms stays in the mean, at least 95 % of what the stage before or the capacity gives; lowest after: of any 10 ms\n" +
			"after the overload, of what that stage settles at. A dash: not within its stage.",
		Figures: []string{figGoodput, figRecovery, figDip, figP99, figSLO, figDrops, figUnsent},
		Course:  &course{Every: spikeWindow, Trouble: e6Overload},
		Jobs:    e6Jobs, Derive: e6Derive, Judge: e6Judge,
	}
}

// e6Overload is the stage in the middle.
func e6Overload(r *Row, length time.Duration) (from, to time.Duration, what string) {
	stages := time.Duration(len(spikes[r.At]))
	from = length / stages * (stages / 2)
	return from, from + length/stages, "overload"
}

// stages of the spike: the overload is the one in the middle.
var spikes = map[string][]float64{
	"staircase": {400e3, 800e3, 1.2e6, 800e3, 400e3},
	"step":      {0.4, 1.4, 0.4}, // times the capacity
}

const (
	spikeWindow = time.Millisecond
	spikeShort  = 60 * time.Millisecond // of a stage
	spikeLong   = 500 * time.Millisecond
)

func e6Jobs(size Size) (all []job) {
	schemes, seeds, stage := rivals, 2, spikeShort
	if size.Full {
		schemes, seeds, stage = rivalsAndSEDA, 3, spikeLong
	}
	for _, name := range []string{"staircase", "step"} {
		for _, scheme := range schemes {
			s := simulate.Scenario{Scheme: scheme, Service: service(workload.Exponential, 10*time.Microsecond), Warmup: simulate.Duration(size.Warmup)}
			if scheme == baseline.SEDA {
				s.Warmup = simulate.Duration(sedaWarmup)
			}
			for i, rate := range spikes[name] {
				if rate < 100 {
					rate *= s.Capacity()
				}
				s.Demand = append(s.Demand, simulate.Step{At: simulate.Duration(stage) * simulate.Duration(i), PerS: rate})
			}
			s.Window, s.Measure = simulate.Duration(spikeWindow), simulate.Duration(stage)*simulate.Duration(len(s.Demand))
			all = append(all, job{At: name, Arm: scheme, Seeds: seeds, Play: playing(s)})
		}
	}
	return all
}

// What recovered and settled mean, in windows.
const (
	recoveredShare = 0.95
	recoveredFor   = 10
	dipWindows     = 10
)

// e6Derive reads recovery and dip off the goodput over time.
func e6Derive(r *Row) {
	series, stages := r.Series(), len(spikes[r.At])
	per := len(series) / stages
	from := per * (stages / 2)
	spike, after := series[from:from+per], series[from+per:from+2*per]
	// The stage before may offer less than the server can do: then the end of the overload says what it can.
	before := average(series[from-per/2 : from])
	if stages == 3 {
		before = r.Mean(figGoodput) / r.Mean(figShare)
	}
	r.Derived[figRecovery] = math.NaN()
	for i := 0; i+recoveredFor <= len(spike); i++ {
		if spike[i] >= recoveredShare*before && average(spike[i:i+recoveredFor]) >= recoveredShare*before {
			r.Derived[figRecovery] = float64(time.Duration(i+1) * spikeWindow)
			break
		}
	}
	settled, lowest := average(after[per/2:]), math.Inf(1)
	for i := 0; i+dipWindows <= len(after); i++ {
		lowest = min(lowest, average(after[i:i+dipWindows]))
	}
	r.Derived[figDip] = lowest / settled
}

func average(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

const (
	recoveryMax = 5 * time.Millisecond
	dipMin      = 0.95
)

func e6Judge(t *Table) []Check {
	ours, none := t.Of(baseline.Stillwater), t.Of(baseline.None)
	return []Check{
		bound("ours: recovery", ours, figRecovery, float64(recoveryMax), false),
		bound("ours: lowest goodput after the overload", ours, figDip, dipMin, true),
		bound("ours: p99 within the SLO,", ours, figTail, 1, false),
		collapse(none, figShare, 0.6),
	}
}
