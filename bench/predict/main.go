//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/prove"
)

// settings are the flags.
type settings struct {
	sessions    int
	slo         time.Duration
	window      time.Duration
	warmup      time.Duration
	calibrate   time.Duration
	exponential bool
}

func main() {
	var s settings
	prove.Command{
		Name: "predict", Rounds: 3,
		About: "Holds the simulator's prediction for this machine against this machine.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.sessions, "sessions", 1000, "client sessions")
			f.DurationVar(&s.slo, "slo", 200*time.Microsecond, "latency within which an answer is goodput, and the deadline of ours")
			f.DurationVar(&s.window, "window", 500*time.Millisecond, "measured time of each load, and of the spike")
			f.DurationVar(&s.warmup, "warmup", 200*time.Millisecond, "load before it")
			f.DurationVar(&s.calibrate, "calibrate", 100*time.Millisecond, "how long capacity is measured, before and after each point")
			f.BoolVar(&s.exponential, "exponential", false, "also exponential service times")
		},
		Run: func(ctx context.Context, r *prove.Run) error {
			e, err := measure(ctx, r, s, s.plan())
			if err != nil {
				return err
			}
			return e.show(r)
		},
	}.Main()
}

// experiment holds what was measured and predicted, by round and point.
type experiment struct {
	settings
	points []point
	inputs []inputs
	rounds [][]comparison
}

// measure runs the points for real in each round, beginning with another one each time, and then plays them in the simulator: both at once would take
// the CPU from each other.
func measure(ctx context.Context, r *prove.Run, s settings, points []point) (*experiment, error) {
	e := &experiment{settings: s, points: points}
	return e, r.WithPair(ctx, func(p *child.Pair) error {
		for round := range r.Rounds {
			seed := r.Seed + uint64(round)
			in, err := s.machine(ctx, p, seed)
			if err != nil {
				return fmt.Errorf("measuring the machine: %w", err)
			}
			e.inputs = append(e.inputs, in)
			if err := r.Emit(in); err != nil {
				return err
			}
			all := make([]comparison, len(e.points))
			for i := range e.points {
				at := (i + round) % len(e.points)
				if all[at], err = s.real(ctx, p, in, e.points[at], seed); err != nil {
					return fmt.Errorf("%s: %w", e.points[at].describe(), err)
				}
			}
			if err := p.Stop(ctx); err != nil { // which polls, and the simulator wants the CPU
				return err
			}
			if err := s.predict(ctx, in, all, seed); err != nil {
				return err
			}
			e.rounds = append(e.rounds, all)
			for _, c := range all {
				if err := r.Emit(c); err != nil {
					return err
				}
			}
			r.Advance()
		}
		return nil
	})
}
