package demo

import (
	"context"
	"errors"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/target"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// The arms, by their schemes of control.
const (
	controlled   = sw.SchemeStillwater
	uncontrolled = sw.SchemeNone
)

// label is what tables and results call an arm.
func label(scheme string) string {
	if scheme == controlled {
		return "credits"
	}
	return scheme
}

// arm is one scheme of control in a lab of its own: fresh namespaces, a fresh server, a fresh client.
type arm struct {
	cfg    Config
	scheme string
	slo    time.Duration
	pair   *child.Pair
	server child.Opened
}

// startArm starts both processes and opens the sessions.
func startArm(ctx context.Context, cfg Config, scheme string, slo time.Duration) (*arm, error) {
	pair, err := child.Start(ctx, child.Config{
		Executable: cfg.Executable, ServerArgs: cfg.ServerArgs, ClientArgs: cfg.ClientArgs, Stderr: cfg.Err, Loopback: cfg.Loopback,
		IPv6: cfg.IPv6,
	})
	if err != nil {
		return nil, err
	}
	a := &arm{cfg: cfg, scheme: scheme, slo: slo, pair: pair}
	a.server, err = pair.ServeAndDial(ctx, child.ServeRequest{Scheme: scheme, SLO: slo, Transport: child.Transport{Mode: cfg.Mode}}, cfg.Sessions)
	if err != nil {
		return nil, errors.Join(err, pair.Close())
	}
	return a, nil
}

func (a *arm) close() error { return a.pair.Close() }

func (a *arm) plan(window, warmup time.Duration) load.Plan {
	return load.Plan{
		Sessions: a.cfg.Sessions, ServiceTime: a.cfg.Service, SLO: a.slo, Warmup: warmup, Duration: window,
		DrainLimit: drainLimit, Seed: a.cfg.Seed,
	}
}

// closedLoop runs a closed loop of the spinning handler.
func (a *arm) closedLoop(ctx context.Context, outstanding int, window, warmup time.Duration) (load.Result, error) {
	return a.pair.Closed(ctx, target.MethodSpin, load.ClosedLoop{Plan: a.plan(window, warmup), Outstanding: outstanding})
}

// openRun is an open loop, and the server's state before, near the end of, and after the measured window.
type openRun struct {
	load.Result
	before, during, after sw.Stats
	elapsed               time.Duration // from before to after: warm-up and the last answers are in it
}

func (a *arm) openLoop(ctx context.Context, loop load.OpenLoop) (r openRun, err error) {
	loop.MaxOutstanding = outstandingMax
	if a.scheme == controlled {
		// With control a call is worth nothing after the SLO, and says so. Without, nobody says anything: callers wait.
		loop.Deadline = a.slo
	}
	if r.before, err = a.pair.ServerStats(ctx); err != nil {
		return r, err
	}
	start := time.Now()
	peeked := make(chan error, 1)
	peek := time.AfterFunc(loop.Warmup+loop.Duration*9/10, func() {
		var err error
		r.during, err = a.pair.ServerStats(ctx)
		peeked <- err
	})
	r.Result, err = a.pair.Open(ctx, target.MethodSpin, loop)
	if !peek.Stop() {
		err = errors.Join(err, <-peeked)
	}
	if err != nil {
		return r, err
	}
	r.after, err = a.pair.ServerStats(ctx)
	r.elapsed = time.Since(start)
	return r, err
}
