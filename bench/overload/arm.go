//go:build linux

package overload

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/callers"
	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// arm is one configuration at one point.
type arm struct {
	point, name string
	server      child.ServeRequest
	retry       sw.RetryConfig // of the client
	sessions    int
	slots       int // of each
	slow        span
	locked      *target.Locked // what the server waits for; nil = target.Single
	calls       callers.Plan
}

// span is a time in which everything takes longer, from the first call on; its zero value is none.
type span struct {
	from, to time.Duration
	times    int
}

// The names of the arms, which are those of the simulator.
const (
	armNone = "none"
	armOurs = "ours"
)

const (
	serviceMean = time.Millisecond // so the capacity is 1,000 a second
	slotsUsual  = 256              // the runtime's own
	// What is without control may have all of what the server's queue can hold at the server: 128 times 1,024.
	slotsMost    = 1024
	sessionsMost = 128
	// head is how long both ends may take to get ready.
	head = 500 * time.Millisecond
)

// uncontrolled is a server without control behind callers that nothing holds back.
func uncontrolled() arm {
	return arm{name: armNone, server: child.ServeRequest{Scheme: sw.SchemeNone}, sessions: sessionsMost, slots: slotsMost}
}

// controlled is the runtime as it is by itself, for a promised latency.
func controlled(slo time.Duration, sessions int) arm {
	return arm{name: armOurs, server: child.ServeRequest{SLO: slo}, sessions: sessions, slots: slotsUsual}
}

// run plays an arm in a lab of its own.
func (a arm) run(ctx context.Context, r *prove.Run, seed uint64) (result callers.Result, err error) {
	p, err := r.PairOf(ctx, child.Config{Shared: true})
	if err != nil {
		return result, fmt.Errorf("starting the lab: %w", err)
	}
	result, err = a.play(ctx, p, seed)
	// What still waits there is of no interest any more, and a server would answer all of it before it ends.
	return result, errors.Join(err, p.Lab.Server.Kill(syscall.SIGKILL), p.Lab.Client.Kill(syscall.SIGKILL), p.Close())
}

func (a arm) play(ctx context.Context, p *child.Pair, seed uint64) (result callers.Result, err error) {
	begin := clock.Now().Add(head)
	serve := a.server
	method := target.MethodSingle
	if serve.Locked = a.locked; serve.Locked != nil {
		method = target.MethodLocked
	} else {
		serve.Single = &target.Slow{From: begin.Add(a.slow.from), To: begin.Add(a.slow.to), Times: a.slow.times}
	}
	serve.Transport = child.Transport{Sleep: true, Slots: a.slots}
	opened, err := p.Serve(ctx, serve)
	if err != nil {
		return result, err
	}
	dial := child.DialRequest{Address: opened.Address, Sessions: a.sessions, Scheme: serve.Scheme, Retry: a.retry, Transport: serve.Transport}
	if _, err = p.Dial(ctx, dial); err != nil {
		return result, err
	}
	plan := a.calls
	plan.Method, plan.Begin, plan.Seed = method, begin, seed
	if result, err = p.Callers(ctx, plan); err != nil {
		return result, err
	}
	if err := p.Audit(ctx); err != nil {
		return result, fmt.Errorf("the books at the end: %w", err)
	}
	return result, nil
}

// probe has twice as many calls as the server can do, which take the mean of all.
func probe() arm {
	a := uncontrolled()
	a.calls = callers.Plan{Arrivals: workload.Fixed, PerS: 2 / serviceMean.Seconds(), Service: workload.ServiceTime{Shape: workload.Constant, Mean: serviceMean}}
	return a
}

// capacity is what the server does per second when it always has something to do.
func capacity(ctx context.Context, r *prove.Run, a arm, length time.Duration, seed uint64) (perS float64, err error) {
	a.calls.Length = length.Truncate(time.Second) + time.Second
	result, err := a.run(ctx, r, seed)
	if err != nil {
		return 0, fmt.Errorf("measuring the capacity: %w", err)
	}
	answered := 0
	for _, s := range result.Seconds[1:] {
		answered += s.Answered
	}
	if answered == 0 {
		return 0, errors.New("measuring the capacity: the server answered nothing")
	}
	return float64(answered) / float64(len(result.Seconds)-1), nil
}
