//go:build linux

package main

import (
	"context"
	"flag"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/prove"
)

// settings are the flags.
type settings struct {
	sessions  int
	load      float64 // times capacity
	deadline  time.Duration
	before    time.Duration // load before the kill, after the warm-up
	after     time.Duration // load after the kill
	calibrate time.Duration
}

const warmup = 300 * time.Millisecond

func main() {
	var s settings
	prove.Command{
		Name: "kill", Rounds: 5,
		About: "Kills the server under open-loop load, restarts it, and checks every request.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.sessions, "sessions", 1000, "client sessions")
			f.Float64Var(&s.load, "load", 0.5, "offered load, times capacity")
			f.DurationVar(&s.deadline, "deadline", 5*time.Millisecond, "of each request; an answer within it is goodput")
			f.DurationVar(&s.before, "before", 700*time.Millisecond, "load before the kill")
			f.DurationVar(&s.after, "after", 2500*time.Millisecond, "load after the kill")
			f.DurationVar(&s.calibrate, "calibrate", time.Second, "how long capacity is measured")
		},
		Run: func(ctx context.Context, r *prove.Run) error {
			lives, err := measure(ctx, r, s)
			if err != nil {
				return err
			}
			return show(r, s, lives)
		},
	}.Main()
}

// measure kills one server in each round, in a lab of its own: the second life of one must not be the first of the next.
func measure(ctx context.Context, r *prove.Run, s settings) (lives []life, err error) {
	capacity := 0.0
	err = r.WithPair(ctx, func(p *child.Pair) error {
		capacity, err = prove.Capacity(ctx, p, s.calibrate, r.Seed)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.Say("Capacity %.0f/s; %d sessions offer %.1f times that, with a deadline of %v.", capacity, s.sessions, s.load, s.deadline)
	for round := range r.Rounds {
		err := r.WithPair(ctx, func(p *child.Pair) error {
			one, err := s.kill(ctx, p, s.load*capacity, r.Seed+uint64(round))
			lives = append(lives, one)
			return err
		})
		if err != nil {
			return nil, err
		}
		r.Advance()
	}
	return lives, nil
}
