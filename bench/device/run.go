//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/target"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

const (
	queuesMax = 4 // receive queues of each end
	slo       = 5 * time.Millisecond
	deadline  = 50 * time.Millisecond
	// perRound bounds a round, for the room of the ledger.
	perRound = 15 * time.Second
	// outstandingMax is what a deadline's worth of half load comes to, many times.
	outstandingMax = 1 << 16
	// ratesMax is above half of what this path can do.
	rateMax = 60_000
)

// round is one fault.
type round struct {
	Kind      string        `json:"kind"`
	Fault     string        `json:"fault"`
	Held      time.Duration `json:"held_ns"`
	Recovered time.Duration `json:"recovered_ns"` // from the fault's end until calls are answered again
	Frames    string        `json:"frames,omitempty"`
}

// experiment is a server, a client, and what became of them.
type experiment struct {
	settings
	pair   *lab.Pair
	srv    *sw.Server
	cli    *sw.Client
	ledger *ledger
	rounds []round

	requests, answered, violations uint64
	example                        string
}

func measure(ctx context.Context, r *prove.Run, s settings) (e *experiment, err error) {
	e = &experiment{settings: s, ledger: newLedger(int(rateMax * (time.Duration(r.Rounds+1) * perRound).Seconds() / 8))}
	if e.pair, err = lab.NewPair(lab.PairConfig{RxQueueCount: queuesMax}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.pair.Close()) }()
	end, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	err = e.run(ctx, r)
	return e, errors.Join(err, end())
}

// open starts both ends. The returned function ends them.
func (e *experiment) open(ctx context.Context) (end func() error, err error) {
	err = e.pair.A.Do(func() error {
		e.srv, err = sw.NewServer(sw.ServerConfig{
			Endpoint: sw.EndpointConfig{Interface: e.pair.A.Interface, RequireXDP: true, TrustedNetwork: true}, SLO: slo,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := target.RegisterLogged(e.srv, e.ledger, 1); err != nil {
		return nil, errors.Join(err, e.srv.Endpoint().Close())
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- e.srv.Serve(serving) }()
	err = e.pair.B.Do(func() error {
		e.cli, err = sw.Dial(ctx, e.srv.Addr(), sw.ClientConfig{
			Endpoint: sw.EndpointConfig{Interface: e.pair.B.Interface, RequireXDP: true, TrustedNetwork: true},
		})
		return err
	})
	if err != nil {
		stop()
		return nil, errors.Join(err, <-served)
	}
	return func() error {
		err := e.cli.Close()
		stop()
		return errors.Join(err, <-served)
	}, nil
}

// run strikes while the load goes on.
func (e *experiment) run(ctx context.Context, r *prove.Run) error {
	issuer, err := target.NewIssuer(e.cli, e.sessions, target.MethodSpin)
	if err != nil {
		return err
	}
	issuer.SetLog(e.ledger)
	if e.rate == 0 {
		if e.rate, err = e.half(ctx, issuer, r.Seed); err != nil {
			return err
		}
	}
	r.Say("%d sessions offer %.0f requests/s of %v, with a deadline of %v, to %s.", e.sessions, e.rate, prove.Work, deadline, e.srv.Endpoint().Mode())
	loading, stop := context.WithCancel(ctx)
	loaded := make(chan error, 1)
	go func() {
		_, err := load.OpenLoop{
			Plan: load.Plan{
				Sessions: e.sessions, ServiceTime: prove.Work, SLO: slo, Deadline: deadline, Duration: time.Duration(r.Rounds+1) * perRound,
				BucketWidth: -1, Seed: r.Seed,
			},
			Rate: e.rate, MaxOutstanding: outstandingMax,
		}.Run(loading, issuer)
		loaded <- err
	}()
	err = e.strikes(ctx, r)
	stop()
	if ended := <-loaded; !errors.Is(ended, context.Canceled) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return err
	}
	return e.settle(issuer)
}

// half is half of what a closed loop gets through.
func (e *experiment) half(ctx context.Context, issuer *target.Issuer, seed uint64) (float64, error) {
	result, err := load.ClosedLoop{
		Plan:        load.Plan{Sessions: e.sessions, ServiceTime: prove.Work, Duration: time.Second, Warmup: 200 * time.Millisecond, BucketWidth: -1, Seed: seed},
		Outstanding: 8,
	}.Run(ctx, issuer)
	if err != nil {
		return 0, err
	}
	return min(result.ThroughputPerS/2, rateMax), nil
}

// strikes has one fault after the other.
func (e *experiment) strikes(ctx context.Context, r *prove.Run) error {
	random := rand.New(rand.NewPCG(r.Seed, 0x646576))
	faults := append([]lab.DeviceFault{{Name: "queues changed", Strike: e.queues(random), Mend: e.queues(random)}}, lab.DeviceFaults...)
	for range r.Rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := faults[random.IntN(len(faults))]
		one := round{Kind: "round", Fault: f.Name, Held: time.Duration(random.Int64N(int64(e.holdMax) + 1))}
		if err := f.Strike(e.pair); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		time.Sleep(one.Held)
		if err := f.Mend(e.pair); err != nil {
			return fmt.Errorf("the end of %s: %w", f.Name, err)
		}
		var err error
		if one.Recovered, err = e.recovery(ctx); err != nil {
			return fmt.Errorf("after %s: %w", f.Name, err)
		}
		if err := errors.Join(e.srv.Endpoint().Audit(), e.cli.Endpoint().Audit()); err != nil {
			one.Frames = err.Error()
		}
		e.rounds = append(e.rounds, one)
		if err := r.Emit(one); err != nil {
			return err
		}
		r.Advance()
		time.Sleep(time.Duration(random.Int64N(int64(e.restMax) + 1)))
	}
	return nil
}

// queues gives the endpoint another number of queues.
func (e *experiment) queues(random *rand.Rand) func(*lab.Pair) error {
	return func(*lab.Pair) error { return e.srv.Endpoint().SetQueues(1 + random.IntN(queuesMax)) }
}

// recovery is how long it takes from now until calls are answered, one after the other.
func (e *experiment) recovery(ctx context.Context) (time.Duration, error) {
	const enough, patience = 20, 30 * time.Second
	from := time.Now()
	first, row := from, 0
	for row < enough {
		if time.Since(from) > patience {
			return 0, fmt.Errorf("no %d calls in a row are answered for %v: %s", enough, patience, e.srv.Endpoint().Trouble())
		}
		at := time.Now()
		within, cancel := context.WithTimeout(ctx, deadline)
		_, err := e.cli.Call(within, target.MethodEcho, nil, nil)
		cancel()
		switch {
		case err != nil:
			row = 0
		case row == 0:
			first = at
			fallthrough
		default:
			row++
		}
	}
	return first.Sub(from), nil
}

// settle waits for the last outcomes and closes the books.
func (e *experiment) settle(issuer *target.Issuer) error {
	for until := time.Now().Add(perRound); ; time.Sleep(10 * time.Millisecond) {
		open := 0
		for _, s := range issuer.Sessions() {
			c, err := s.Credit()
			if err != nil {
				return err
			}
			open += c.Waiting + c.Outstanding
		}
		if open == 0 {
			break
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d calls have no outcome %v after the load", open, perRound)
		}
	}
	e.requests, e.answered, e.violations, e.example = e.ledger.check()
	return nil
}
