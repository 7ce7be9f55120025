//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/dispatcher/faults"
)

// settings are the flags.
type settings struct {
	sessions  int
	slo       time.Duration
	patient   time.Duration // the deadline of callers that wait for retransmissions
	window    time.Duration
	warmup    time.Duration
	calibrate time.Duration
}

// offer is one load.
type offer struct {
	times   float64 // capacity
	patient bool    // the deadline is the long one instead of the SLO
}

// offers are the loads. The last one carries the bound on goodput.
var offers = []offer{{0.9, true}, {2, true}, {2, false}}

// probabilities of each fault; the first is the control.
var probabilities = []faults.Probability{0, 0.01, 0.05, 0.10}

// The place of the arms that are compared with each other.
const (
	boundOffer = 2 // 2 times capacity, deadline = SLO
	boundFault = 1 // 1 %
)

func main() {
	var s settings
	prove.Command{
		Name: "faulty", Rounds: 3,
		About: "Offers load over a network that loses, doubles and reorders packets, and checks every request.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.sessions, "sessions", 1000, "client sessions")
			f.DurationVar(&s.slo, "slo", 200*time.Microsecond, "latency within which an answer is goodput, and the short deadline")
			f.DurationVar(&s.patient, "patient", 20*time.Millisecond, "the long deadline")
			f.DurationVar(&s.window, "window", time.Second, "measured time of each figure")
			f.DurationVar(&s.warmup, "warmup", 300*time.Millisecond, "load before it")
			f.DurationVar(&s.calibrate, "calibrate", time.Second, "how long capacity is measured, in each round")
		},
		Run: func(ctx context.Context, r *prove.Run) error {
			e, err := measure(ctx, r, s)
			if err != nil {
				return err
			}
			return e.show(r)
		},
	}.Main()
}

// experiment holds all steps by offer and probability.
type experiment struct {
	settings
	capacity []float64
	steps    [][][]step
}

// measure runs all arms in each round, beginning with another one each time.
func measure(ctx context.Context, r *prove.Run, s settings) (*experiment, error) {
	e := &experiment{settings: s, steps: make([][][]step, len(offers))}
	for o := range offers {
		e.steps[o] = make([][]step, len(probabilities))
	}
	return e, r.WithPair(ctx, func(p *child.Pair) error {
		for round := range r.Rounds {
			capacity, err := prove.Capacity(ctx, p, s.calibrate, r.Seed)
			if err != nil {
				return err
			}
			e.capacity = append(e.capacity, capacity)
			for i := range len(offers) * len(probabilities) {
				arm := (i + round) % (len(offers) * len(probabilities))
				o, f := arm/len(probabilities), arm%len(probabilities)
				one, err := s.one(ctx, p, offers[o], probabilities[f], capacity, r.Seed+uint64(round))
				if err != nil {
					return fmt.Errorf("%.1f times capacity, %v %% faults: %w", offers[o].times, 100*probabilities[f], err)
				}
				e.steps[o][f] = append(e.steps[o][f], one)
				if err := r.Emit(one); err != nil {
					return err
				}
			}
			r.Advance()
		}
		return nil
	})
}
