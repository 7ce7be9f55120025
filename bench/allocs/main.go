//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/report"
	"github.com/stillwater-rpc/stillwater/bench/target"
)

const (
	// objectsMax is the bound for each process.
	objectsMax   = 0.001
	outstanding  = 16
	payloadBytes = 64
	// short is how long the run lasts that shows what preparing a run allocates.
	short = 50 * time.Millisecond
	// longest is how long a run may be that makes up for it.
	longest = 5 * time.Second
)

// settings are the flags.
type settings struct {
	calls  uint64
	udp    bool
	settle time.Duration
}

// run is the calls of one run and the heap objects made meanwhile.
type run struct {
	calls          uint64
	server, client uint64
}

// round is one repetition: heap objects per call.
type round struct {
	Kind        string  `json:"kind"`
	Calls       uint64  `json:"call_count"`
	ServerPer   float64 `json:"server_objects_per_call"`
	ClientPer   float64 `json:"client_objects_per_call"`
	Server      int64   `json:"server_object_count"`
	Client      int64   `json:"client_object_count"`
	Preparation run     `json:"-"`
}

func main() {
	var s settings
	prove.Command{
		Name: "allocs", Rounds: 3,
		About: "Counts heap objects per call in the server's and the client's process.",
		Flags: func(f *flag.FlagSet) {
			f.Uint64Var(&s.calls, "calls", 1_000_000, "calls to count over, in each round")
			f.BoolVar(&s.udp, "udp", false, "kernel UDP instead of AF_XDP")
			f.DurationVar(&s.settle, "settle", time.Second, "load before the first round")
		},
		Run: func(ctx context.Context, r *prove.Run) error {
			rounds, err := measure(ctx, r, s)
			if err != nil {
				return err
			}
			return show(r, rounds)
		},
	}.Main()
}

func measure(ctx context.Context, r *prove.Run, s settings) (rounds []round, err error) {
	return rounds, r.WithPair(ctx, func(p *child.Pair) error {
		transport := child.Transport{UDP: s.udp}
		server, err := p.ServeAndDial(ctx, child.ServeRequest{Transport: transport}, 1)
		if err != nil {
			return err
		}
		r.Say("%s; %d-byte echoes, %d outstanding.", server.Mode, payloadBytes, outstanding)
		// What is kept for ever is made by the first calls: request objects, slot tables, timers.
		rate := 0.0
		if _, err := once(ctx, p, s.settle, r.Seed, &rate); err != nil {
			return err
		}
		for range r.Rounds {
			one, err := compare(ctx, p, s.calls, r.Seed, &rate)
			if err != nil {
				return err
			}
			rounds = append(rounds, one)
			r.Advance()
		}
		return nil
	})
}

// compare runs a short time, and then as long as the calls take.
func compare(ctx context.Context, p *child.Pair, calls, seed uint64, rate *float64) (round, error) {
	little, err := once(ctx, p, short, seed, nil)
	if err != nil {
		return round{}, err
	}
	var much run
	for much.calls < little.calls+calls { // the rate may fall meanwhile, so once may not be enough
		// A rate out of a short run or a bad moment may be nonsense, so it may not plan for long.
		seconds := min(1.2*float64(little.calls+calls-much.calls)/max(*rate, 1), longest.Seconds())
		more, err := once(ctx, p, max(short, time.Duration(seconds*float64(time.Second))), seed, rate)
		if err != nil {
			return round{}, err
		}
		much.calls, much.server, much.client = much.calls+more.calls, much.server+more.server, much.client+more.client
	}
	one := round{
		Kind: "round", Calls: much.calls - little.calls, Preparation: little,
		Server: int64(much.server - little.server), Client: int64(much.client - little.client),
	}
	one.ServerPer, one.ClientPer = float64(one.Server)/float64(one.Calls), float64(one.Client)/float64(one.Calls)
	return one, nil
}

// once runs the closed loop for a while, and notes its rate if that is asked for.
func once(ctx context.Context, p *child.Pair, window time.Duration, seed uint64, rate *float64) (r run, err error) {
	before, err := p.ClientStats(ctx)
	if err != nil {
		return r, err
	}
	server, client, err := p.HeapObjects(ctx)
	if err != nil {
		return r, err
	}
	plan := load.Plan{PayloadBytes: payloadBytes, Duration: window, Cooldown: -1, Seed: seed}
	result, err := prove.Closed(ctx, p, target.MethodEcho, outstanding, plan)
	if err != nil {
		return r, err
	}
	serverAfter, clientAfter, err := p.HeapObjects(ctx)
	if err != nil {
		return r, err
	}
	after, err := p.ClientStats(ctx)
	if err != nil {
		return r, err
	}
	if rate != nil {
		*rate = result.ThroughputPerS
	}
	return run{after.Calls - before.Calls, serverAfter - server, clientAfter - client}, nil
}

func show(r *prove.Run, rounds []round) error {
	table := report.NewTable(r.Out, false,
		report.Column{Title: "round", Width: 5},
		report.Column{Title: "calls", Width: 10},
		report.Column{Title: "server", Unit: "objects", Width: 8},
		report.Column{Title: "client", Unit: "objects", Width: 8},
		report.Column{Title: "server", Unit: "per call", Width: 10, Decimals: 6},
		report.Column{Title: "client", Unit: "per call", Width: 10, Decimals: 6},
		report.Column{Title: "preparing", Unit: "server/client", Width: 13},
	)
	var server, client []float64
	for i, one := range rounds {
		server, client = append(server, one.ServerPer), append(client, one.ClientPer)
		err := r.Row(table, one, i+1, one.Calls, one.Server, one.Client, one.ServerPer, one.ClientPer,
			fmt.Sprintf("%d/%d", one.Preparation.server, one.Preparation.client))
		if err != nil {
			return err
		}
	}
	// The worst round counts: an allocation that comes only now and then is one as well.
	return errors.Join(
		r.AtMost("heap objects per call in the server", prove.SpreadOf(server).Max, objectsMax, ""),
		r.AtMost("heap objects per call in the client", prove.SpreadOf(client).Max, objectsMax, ""),
	)
}
