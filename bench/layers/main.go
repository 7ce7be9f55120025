//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/prove"
)

// settings are the flags.
type settings struct {
	rate    float64
	attempt time.Duration // that middle waits for the leaf, before it tries again
	limit   time.Duration // within which an answer is good
	before  time.Duration
	down    time.Duration
	after   time.Duration
	cancels int
	only    string
}

// chosen are the runs that are to be made.
func (s *settings) chosen() (all []run) {
	for _, which := range runs() {
		if s.only == "" || s.only == which.trouble || s.only == which.arm || s.only == which.trouble+"/"+which.arm {
			all = append(all, which)
		}
	}
	return all
}

func main() {
	children()
	var s settings
	prove.Command{
		Name: "layers", Rounds: 3,
		About: "Three servers in a row, whose last one is killed, hangs, can do nothing or refuses: attempts at it for each user request; and calls that are cancelled.",
		Flags: func(f *flag.FlagSet) {
			f.Float64Var(&s.rate, "rate", 50, "user requests a second")
			f.DurationVar(&s.attempt, "attempt", 100*time.Millisecond, "how long middle waits for the leaf before it tries again, if it may")
			f.DurationVar(&s.limit, "limit", time.Second, "an answer within it is goodput")
			f.DurationVar(&s.before, "before", 3*time.Second, "load before the trouble")
			f.DurationVar(&s.down, "down", 10*time.Second, "length of the trouble")
			f.DurationVar(&s.after, "after", 8*time.Second, "load after the trouble")
			f.IntVar(&s.cancels, "cancels", 50, "calls that are cancelled in each round")
			f.StringVar(&s.only, "only", "", "make the runs with this `trouble, arm or trouble/arm` alone, as in killed/defaults; \"\" = all")
		},
		Run: func(ctx context.Context, r *prove.Run) error {
			if len(s.chosen()) == 0 {
				return fmt.Errorf("-only %s: there is no such run", s.only)
			}
			m, err := measure(ctx, r, s, s.chosen())
			return errors.Join(err, show(r, s, m))
		},
	}.Main()
}

// measured is what came of all rounds.
type measured struct {
	results   []result
	cancelled []cancelled
}

// measure makes all runs in each round, in a lab of its own each.
func measure(ctx context.Context, r *prove.Run, s settings, all []run) (m measured, err error) {
	for round := range r.Rounds {
		for i := range all {
			which := all[(i+round)%len(all)] // each round begins with another one
			one, err := s.play(ctx, r, which, r.Seed+uint64(round))
			if err != nil {
				return m, err
			}
			one.Round = round + 1
			m.results = append(m.results, one)
		}
		c, err := s.cancel(ctx, r)
		if err != nil {
			return m, err
		}
		c.Round = round + 1
		m.cancelled = append(m.cancelled, c)
		r.Advance()
	}
	return m, nil
}
