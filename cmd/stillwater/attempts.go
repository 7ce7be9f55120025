package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// criticality is a level by its name; "" = not said.
type criticality string

// criticalities are the levels, the first to be shed first.
var criticalities = []string{"sheddable", "sheddable-plus", "critical", "critical-plus"}

// String is what Set reads.
func (c *criticality) String() string { return string(*c) }

// Type names the value in help.
func (c *criticality) Type() string { return "level" }

// Set takes a name.
func (c *criticality) Set(text string) error {
	if !slices.Contains(criticalities, text) {
		return errors.New("it must be " + strings.Join(criticalities, ", "))
	}
	*c = criticality(text)
	return nil
}

// level is what the requests say.
func (c criticality) level() sw.Criticality {
	return sw.Criticality(slices.Index(criticalities, string(c)) + 1) // none is unset
}

// attemptFlags say what is done about calls that fail or are slow, and how much they matter.
type attemptFlags struct {
	retries     int
	hedge       float64
	criticality criticality
}

func (f *attemptFlags) register(flags *pflag.FlagSet) {
	flags.IntVar(&f.retries, "retries", 0, "try a call that failed so many times more, from a budget of a tenth of all calls: for methods that may run twice")
	flags.Float64Var(&f.hedge, "hedge", 0, "send a second request after this `share` of the latencies, like 0.95, from the same budget: for methods that may run twice")
	flags.Var(&f.criticality, "criticality", "how much the calls matter when load is shed: `level` is "+strings.Join(criticalities, ", ")+"; not given = as critical")
}

// retriesMax is what the client takes beyond the first attempt.
const retriesMax = 9

func (f *attemptFlags) check() error {
	switch {
	case f.retries < 0 || f.retries > retriesMax:
		return usageError("--retries %d: give 0 to %d", f.retries, retriesMax)
	case f.hedge < 0 || f.hedge >= 1:
		return usageError("--hedge %v: give a share of the latencies below 1, like 0.95; 0 = none", f.hedge)
	}
	return nil
}

// repeatable reports whether the calls may be made more than once.
func (f *attemptFlags) repeatable() bool { return f.retries > 0 || f.hedge > 0 }

// configure puts the flags into a client's configuration. Without them each call is made once.
func (f *attemptFlags) configure(cfg *sw.ClientConfig) {
	cfg.Retry = sw.RetryConfig{Off: f.retries == 0, Attempts: f.retries + 1}
	if f.hedge > 0 {
		cfg.Hedge.Percentile = f.hedge
		cfg.Retry.Attempts = max(cfg.Retry.Attempts, 2)
	}
}

// context has calls say what the flags say.
func (f *attemptFlags) context(ctx context.Context) context.Context {
	if f.criticality != "" {
		ctx = sw.WithCriticality(ctx, f.criticality.level())
	}
	if f.repeatable() {
		ctx = sw.Repeatable(ctx)
	}
	return ctx
}
