package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// simFlags are the flags of sim.
type simFlags struct {
	scenario, write, html string
	service               workload.ServiceTime
	samples               string
	workers, clients      int
	rtt, slo              time.Duration
	load                  []float64
	demand                demandCurve
	schemes               []string
	duration, warmup      time.Duration
	window                time.Duration
	calls                 int
	seed                  uint64
}

func newSimFlags() *simFlags {
	return &simFlags{service: workload.ServiceTime{Shape: workload.Exponential, Mean: 10 * time.Microsecond}}
}

// simElsewhere are the flags that say nothing of what is simulated; all others are in the scenario's file.
var simElsewhere = map[string]bool{"scenario": true, "write": true, "html": true}

func (f *simFlags) register(flags *pflag.FlagSet) {
	flags.Var(&f.service, "service-time", "how long a handler computes, as `shape:mean`: constant, exponential, bimodal or lognormal")
	flags.StringVar(&f.samples, "service-samples", "", "draw service times from this `file` instead: one duration a line, as measured")
	flags.IntVar(&f.workers, "workers", 10, "CPUs that run handlers")
	flags.DurationVar(&f.rtt, "rtt", 10*time.Microsecond, "round trip of the network")
	flags.IntVar(&f.clients, "clients", 1000, "clients, which call independently of each other (open loop)")
	flags.DurationVar(&f.slo, "slo", 0, "latency that a good answer has at most, and the deadline of each call; 0 = 10 times mean service and round trip")
	flags.Float64SliceVar(&f.load, "load", []float64{0.5, 1, 1.5, 2}, "loads to run, as `multiples` of the capacity")
	flags.Lookup("load").DefValue = strings.ReplaceAll(fmt.Sprint(f.load), " ", ",") // and not with six digits each
	flags.Var(&f.demand, "demand", "demand over time instead of loads, as `time:calls/s` from each time on, like 0s:400k,2s:1.2M")
	flags.StringSliceVar(&f.schemes, "scheme", []string{"stillwater", "none"}, "schemes to compare: `names` out of "+strings.Join(sw.Schemes(), ", "))
	flags.IntVar(&f.calls, "calls", 100_000, "calls that are measured at each load; for a time instead, give --duration")
	flags.DurationVar(&f.duration, "duration", 0, "measured `time` of each run; 0 = as --calls says, or with --demand twice the time of its last step")
	flags.DurationVar(&f.warmup, "warmup", 100*time.Millisecond, "`time` under the first demand before that, not counted")
	flags.DurationVar(&f.window, "window", 0, "with --demand: width of the windows that figures over time are of; 0 = a hundredth of the duration")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of everything that is random")
	flags.StringVar(&f.html, "html", "", "write the report with the curves to this `file`")
	flags.StringVar(&f.scenario, "scenario", "", "play this `file` instead of what the flags say")
	flags.StringVar(&f.write, "write", "", "write what is played to this `file`, for --scenario")
}

// sweep is what is to be played.
func (f *simFlags) sweep(flags *pflag.FlagSet) (simulate.Sweep, error) {
	if f.scenario != "" {
		return f.read(flags)
	}
	w, err := f.build(flags.Changed("load"), flags.Changed("calls"))
	if err == nil {
		err = w.Validate()
	}
	if errors.Is(err, simulate.ErrScenario) {
		return w, usageError("%w", err)
	}
	return w, err
}

// read takes it from the scenario's file. A flag that says something else beside it would be overlooked by one of the two.
func (f *simFlags) read(flags *pflag.FlagSet) (w simulate.Sweep, err error) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && f.describes(flag.Name) && err == nil {
			err = usageError("--%s beside --scenario: the file says all of it; edit %s", flag.Name, f.scenario)
		}
	})
	if err != nil {
		return w, err
	}
	file, err := os.Open(f.scenario)
	if err != nil {
		return w, usageError("--scenario: %w", err)
	}
	defer file.Close()
	if w, err = simulate.ReadSweep(file); err != nil {
		return w, usageError("--scenario %s: %w", f.scenario, err)
	}
	return w, nil
}

// describes reports whether a flag of sim says what is simulated.
func (f *simFlags) describes(name string) bool {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	newSimFlags().register(own)
	return own.Lookup(name) != nil && !simElsewhere[name]
}

// build makes it of the flags.
func (f *simFlags) build(load, calls bool) (simulate.Sweep, error) {
	w := simulate.Sweep{Schemes: f.schemes}
	w.Service, w.SLO, w.Seed, w.Clients = f.service, simulate.Duration(f.slo), f.seed, f.clients
	w.Server.CPUs, w.Network.RTT = f.workers, simulate.Duration(f.rtt)
	w.Warmup, w.Measure, w.Window = simulate.Duration(f.warmup), simulate.Duration(f.duration), simulate.Duration(f.window)
	if f.samples != "" {
		file, err := os.Open(f.samples)
		if err != nil {
			return w, usageError("--service-samples: %w", err)
		}
		defer file.Close()
		if w.Samples, err = simulate.ReadSamples(file); err != nil {
			return w, usageError("--service-samples %s: %w", f.samples, err)
		}
	}
	switch {
	case f.workers < 1 || f.clients < 1 || len(f.schemes) == 0 || f.calls < 1: // zero is the file's word for the paper's set-up
		return w, usageError("--workers %d, --clients %d, --calls %d, %d times --scheme: at least 1", f.workers, f.clients, f.calls, len(f.schemes))
	case f.rtt <= 0:
		return w, usageError("--rtt %v: it must be above 0, like 10us", f.rtt)
	case f.samples == "" && f.service.Mean == 0:
		return w, usageError("--service-time %v: handlers must take some time, like exponential:10us", f.service)
	case f.duration < 0 || f.warmup < 0 || f.window < 0 || f.slo < 0:
		return w, usageError("--duration, --warmup, --window and --slo cannot be negative")
	case f.duration > 0 && calls:
		return w, usageError("--duration and --calls contradict each other: give one of them")
	case len(f.demand) > 0:
		return w, f.curve(&w, load || calls)
	case f.window > 0:
		return w, usageError("--window is for figures over time: give a --demand, like 0s:400k,2s:1.2M")
	case len(f.load) == 0:
		return w, usageError("--load: give at least one multiple of the capacity, like 0.5,1,2")
	case f.duration == 0:
		w.Calls = f.calls
	}
	w.Loads = f.load
	return w, nil
}

// curve puts in a demand over time.
func (f *simFlags) curve(w *simulate.Sweep, load bool) error {
	if load {
		return usageError("--demand says how much is asked and when: leave --load and --calls out")
	}
	w.Demand = f.demand
	last := w.Demand[len(w.Demand)-1].At
	if w.Measure == 0 {
		w.Measure = 2 * last
	}
	if w.Measure <= last {
		return usageError("--duration %v ends before the last step of --demand at %v: make it longer", time.Duration(w.Measure), time.Duration(last))
	}
	if w.Window == 0 {
		w.Window = max(w.Measure/curvePoints, 1)
	}
	if w.Measure/w.Window > windowsMax {
		return usageError("--window %v: more than %d of them in %v: make it longer", time.Duration(w.Window), windowsMax, time.Duration(w.Measure))
	}
	return nil
}

const (
	curvePoints = 100
	windowsMax  = 10_000 // each with a histogram of its own
)

// demandCurve is a demand over time.
type demandCurve []simulate.Step

// String is what Set reads.
func (d *demandCurve) String() string {
	words := make([]string, len(*d))
	for i, s := range *d {
		words[i] = fmt.Sprintf("%v:%s", time.Duration(s.At), strconv.FormatFloat(s.PerS, 'f', -1, 64))
	}
	return strings.Join(words, ",")
}

// Type names the value in help.
func (d *demandCurve) Type() string { return "curve" }

// Set reads steps like 0s:400k,2s:1.2M.
func (d *demandCurve) Set(text string) error {
	var steps []simulate.Step
	for part := range strings.SplitSeq(text, ",") {
		when, rate, found := strings.Cut(part, ":")
		at, err := time.ParseDuration(when)
		perS, err2 := parseRate(rate)
		if !found || errors.Join(err, err2) != nil {
			return fmt.Errorf("%q is no step: write time:calls/s, like 0s:400k,2s:1.2M", part)
		}
		steps = append(steps, simulate.Step{At: simulate.Duration(at), PerS: perS})
	}
	if len(steps) == 1 && steps[0].At == 0 {
		return errors.New("one step is no curve: add the next, like 0s:400k,2s:1.2M, or give a --load")
	}
	*d = steps
	return nil
}

// parseRate reads 400k as 400,000.
func parseRate(text string) (float64, error) {
	factor := 1.0
	if n := len(text); n > 0 {
		if f, found := map[byte]float64{'k': 1e3, 'M': 1e6}[text[n-1]]; found {
			text, factor = text[:n-1], f
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	return v * factor, err
}
