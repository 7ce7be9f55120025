package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bench/load"
)

// openFlags are the flags of bench open.
type openFlags struct {
	benchFlags
	open     load.OpenLoop
	load     float64
	deadline time.Duration
}

const benchOpenLong = `Generate an open load: requests come due at the instants of an arrival process, whether or not earlier ones were
answered, and latency counts from the instant a request was due. So a server that stalls shows as its callers would see it.

The load is --rate in requests per second, or --load in times the server's capacity. The capacity is that of
--capacity, or it is measured first: a closed loop with 32 requests outstanding, for a second.

The generator reports how late it was itself. A run whose schedule it could not keep says so and exits with 3.`

func newBenchOpen(c *cli) *cobra.Command {
	f := &openFlags{}
	cmd := &cobra.Command{
		Use:   "open ADDRESS",
		Short: "Open loop: arrivals do not wait for answers; measures latency under load",
		Long:  benchOpenLong,
		Example: "  stillwater bench open 10.0.0.1 --rate 50000 --sessions 100 --method spin --service-time exponential:10us\n" +
			"  stillwater bench open 10.0.0.1 --load 2 --sessions 1000 --method spin --service-time exponential:10us --html run.html",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Deadline = f.deadline
			if !cmd.Flags().Changed("deadline") {
				f.Deadline = f.SLO // an answer after the SLO is worth nothing to an open load
			}
			return benchOpen(c, f, args[0])
		},
	}
	flags := cmd.Flags()
	f.register(flags)
	flags.Float64Var(&f.open.Rate, "rate", 0, "requests per second")
	flags.Float64Var(&f.load, "load", 0, "requests per second as a multiple of the capacity, instead of --rate")
	flags.Float64Var(&f.capacity, "capacity", 0, "the server's capacity in requests per second, for --load; 0 = measure it first")
	flags.Var(&f.open.Arrivals, "arrivals", "arrival `process`: poisson or fixed")
	flags.DurationVar(&f.deadline, "deadline", 0, "deadline of each request, from the instant it was due; 0 = none; not given = the SLO")
	flags.DurationVar(&f.open.LatenessLimit, "lateness-limit", 0,
		"p99 of the generator's own lateness above which the run fails; 0 = 20 % of the SLO")
	return cmd
}

func benchOpen(c *cli, f *openFlags, address string) (err error) {
	switch {
	case f.open.Rate < 0 || f.load < 0 || f.capacity < 0 || f.open.LatenessLimit < 0:
		return usageError("--rate, --load, --capacity and --lateness-limit cannot be negative")
	case (f.open.Rate == 0) == (f.load == 0):
		return usageError("give either --rate in requests per second, or --load in times the capacity")
	case f.capacity > 0 && f.load == 0:
		return usageError("--capacity is for --load: with --rate it would mean nothing")
	}
	b, err := newBencher(c, &f.benchFlags, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end()) }()
	if f.load > 0 {
		if f.capacity == 0 {
			if f.capacity, err = b.measureCapacity(c.ctx); err != nil {
				return err
			}
		}
		f.open.Rate = f.load * f.capacity
	}
	f.open.Plan = f.Plan
	return b.run("open loop", f.load, f.open.Run)
}

// How a capacity is measured: enough outstanding to keep a server of a few CPUs busy, and few enough to wait in no
// queue for long.
const (
	capacityOutstanding = 32
	capacityWarmup      = 200 * time.Millisecond
	capacityDuration    = time.Second
)

// measureCapacity runs a short closed loop with the same requests.
func (b *bencher) measureCapacity(ctx context.Context) (float64, error) {
	loop := load.ClosedLoop{Plan: b.f.Plan, Outstanding: capacityOutstanding}
	loop.Warmup, loop.Duration = capacityWarmup, capacityDuration
	loop.SLO, loop.Deadline = 0, 0
	stop := b.c.progress("measuring the capacity", loop.Warmup+loop.Duration)
	defer stop()
	result, err := loop.Run(ctx, b.issuer)
	if err != nil {
		return 0, err
	}
	if result.ThroughputPerS == 0 {
		return 0, checkError(errors.New("measuring the capacity: no request was answered: give --capacity or --rate"))
	}
	return result.ThroughputPerS, nil
}
