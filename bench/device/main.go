//go:build linux

package main

import (
	"context"
	"flag"
	"log/slog"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/prove"
)

// settings are the flags.
type settings struct {
	sessions int
	rate     float64       // requests per second; 0 = half of what a closed loop gets through first
	holdMax  time.Duration // a fault lasts up to so long
	restMax  time.Duration // and so long is it quiet then
}

func main() {
	var s settings
	prove.Command{
		Name: "device", Rounds: 20,
		About: "Has device faults happen at random under half load, and checks every request. A round is one fault and takes about 1.2 s: 500 are ten minutes.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.sessions, "sessions", 100, "client sessions")
			f.Float64Var(&s.rate, "rate", 0, "requests per second; 0 = half of the capacity, which is measured first")
			f.DurationVar(&s.holdMax, "hold", 500*time.Millisecond, "longest duration of a fault")
			f.DurationVar(&s.restMax, "rest", 300*time.Millisecond, "longest quiet time after one")
		},
		Run: func(ctx context.Context, r *prove.Run) error {
			slog.SetDefault(slog.New(slog.DiscardHandler)) // what the endpoints say of each fault is in the table
			e, err := measure(ctx, r, s)
			if err != nil {
				return err
			}
			return e.show(r)
		},
	}.Main()
}
