//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/target"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// inputs are what the prediction is made from, and what it could be made from if the simulator had a place for it.
type inputs struct {
	Kind            string        `json:"kind"`
	CapacityPerS    float64       `json:"capacity_per_s"`
	UndisturbedPerS float64       `json:"undisturbed_per_s"` // in the best slice of that time
	RoundTrip       time.Duration `json:"round_trip_ns"`     // of one call alone, without its work
	Cost            time.Duration `json:"request_ns"`        // 1/capacity, less the work
	ServerAway      away          `json:"server_away"`       // while capacity was measured
	Stalls          away          `json:"host_stalls"`       // of the server's CPU, when nothing of ours ran

	// For comparison alone.
	Echo       time.Duration `json:"echo_ns"`    // 1/capacity without work: a request and its reply, more of them in a packet
	Refusal    time.Duration `json:"refusal_ns"` // the same for a method that there is not: a request and its refusal
	Lateness   lateness      `json:"generator_lateness"`
	ClientAway away          `json:"client_away"`
}

// lateness is how late the generator issued, at half load.
type lateness struct {
	P50 time.Duration `json:"ns_p50"`
	P99 time.Duration `json:"ns_p99"`
	Max time.Duration `json:"ns_max"`
}

func latenessOf(r *load.Result) lateness {
	return lateness{time.Duration(r.LatenessNsP50), time.Duration(r.LatenessNsP99), time.Duration(r.LatenessNsMax)}
}

const (
	// capacityOutstanding is the demo's: the server is always busy with so many, and none of them waits for long.
	capacityOutstanding = 12
	drainLimit          = 30 * time.Second
	calibrateRounds     = 5        // of s.calibrate, for the inputs
	tries               = 10       // where a server on a busy machine answers nothing
	methodNone          = "absent" // which no server has
)

// machine measures the inputs.
func (s settings) machine(ctx context.Context, p *child.Pair, seed uint64) (in inputs, err error) {
	stalls, err := hostStalls(calibrateRounds * s.calibrate)
	if err != nil {
		return in, err
	}
	if _, err = p.ServeAndDial(ctx, child.ServeRequest{Scheme: sw.SchemeNone}, s.sessions); err != nil {
		return in, err
	}
	long := calibrateRounds * s.calibrate
	in = inputs{Kind: "inputs", Stalls: stalls}
	if in.RoundTrip, err = s.roundTrip(ctx, p, seed); err != nil {
		return in, err
	}
	before, err := usageOf(p.Lab.Server.PID())
	if err != nil {
		return in, err
	}
	for try := 0; try < tries && in.CapacityPerS == 0; try++ {
		if in.CapacityPerS, in.UndisturbedPerS, err = s.capacity(ctx, p, long, seed); err != nil {
			return in, err
		}
	}
	after, err := usageOf(p.Lab.Server.PID())
	if err != nil {
		return in, err
	}
	if in.CapacityPerS == 0 {
		return in, fmt.Errorf("the server answered nothing in %d times %v", tries, long)
	}
	in.ServerAway, in.Cost = after.since(before), cost(in.CapacityPerS)
	return in, s.compare(ctx, p, &in, seed)
}

// roundTrip is what one call alone takes beside its work: the least of a few medians, since others may have either CPU for most of a short time.
func (s settings) roundTrip(ctx context.Context, p *child.Pair, seed uint64) (least time.Duration, err error) {
	for i := range calibrateRounds {
		alone, err := s.closed(ctx, p, target.MethodSpin, 1, s.calibrate, seed)
		if err != nil {
			return 0, err
		}
		if median := time.Duration(alone.LatencyNsP50); i == 0 || median > 0 && median < least {
			least = median
		}
	}
	return max(least-prove.Work.Mean, 0), nil
}

// compare measures what no prediction is made from.
func (s settings) compare(ctx context.Context, p *child.Pair, in *inputs, seed uint64) error {
	echo, err := s.closed(ctx, p, target.MethodEcho, capacityOutstanding, s.calibrate, seed)
	if err != nil {
		return err
	}
	in.Echo = period(echo.ThroughputPerS)
	refused, err := s.closed(ctx, p, methodNone, capacityOutstanding, s.calibrate, seed)
	if err != nil {
		return err
	}
	in.Refusal = period(refused.RejectedPerS)
	before, err := usageOf(p.Lab.Client.PID())
	if err != nil {
		return err
	}
	loop := load.OpenLoop{Plan: s.plain(calibrateRounds*s.calibrate, seed), Rate: in.CapacityPerS / 2, MaxOutstanding: outstandingMax}
	r, err := p.Open(ctx, target.MethodSpin, loop)
	if err != nil {
		return err
	}
	after, err := usageOf(p.Lab.Client.PID())
	in.Lateness, in.ClientAway = latenessOf(&r), after.since(before)
	return err
}

// capacity is the most that a closed loop gets through the server that runs, per second: on average, and in the best slice of that time, in which neither
// side's CPU was away.
func (s settings) capacity(ctx context.Context, p *child.Pair, window time.Duration, seed uint64) (perS, undisturbed float64, err error) {
	plan := s.plain(window, seed)
	plan.BucketWidth = undisturbedSlice
	r, err := p.Closed(ctx, target.MethodSpin, load.ClosedLoop{Plan: plan, Outstanding: capacityOutstanding})
	for _, b := range r.Buckets {
		undisturbed = max(undisturbed, float64(b.OK)/undisturbedSlice.Seconds())
	}
	return r.ThroughputPerS, max(undisturbed, r.ThroughputPerS), err
}

// undisturbedSlice is as short as the few requests that are out at its ends allow: 12 of 400.
const undisturbedSlice = 5 * time.Millisecond

func (s settings) closed(ctx context.Context, p *child.Pair, method string, outstanding int, window time.Duration, seed uint64) (load.Result, error) {
	return p.Closed(ctx, method, load.ClosedLoop{Plan: s.plain(window, seed), Outstanding: outstanding})
}

// plain is a plan of calls without a deadline.
func (s settings) plain(window time.Duration, seed uint64) load.Plan {
	return load.Plan{
		Sessions: s.sessions, ServiceTime: prove.Work, Warmup: window / 4, Duration: window, BucketWidth: -1, DrainLimit: drainLimit, Seed: seed,
	}
}

// cost is what a request costs beside its work; never less than nothing, which only a clock could say.
func cost(capacityPerS float64) time.Duration { return max(period(capacityPerS)-prove.Work.Mean, 0) }

// period is the time for one of so many per second; zero for none.
func period(perS float64) time.Duration {
	if perS <= 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / perS)
}
