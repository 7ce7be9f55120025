package callers

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// Run makes the calls over the sessions, from one to the next at random. What is still under way at the end is left to whoever closes them. The error is a bad plan or the end of ctx.
func (p Plan) Run(ctx context.Context, sessions []*sw.Session) (*Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Begin == 0 {
		p.Begin = clock.Now()
	}
	pick := workload.SessionRand(p.Seed)
	r := newRun(p, func(a *attempt) { sessions[pick.IntN(len(sessions))].Start(&a.Call) })
	if err := r.loop(ctx); err != nil {
		return nil, err
	}
	r.result.Pending = r.pending
	r.result.LatencyP50, r.result.LatencyP99 = quantile(r.latency, 50), quantile(r.latency, 99)
	r.result.LatenessP99, r.result.LatenessMax = quantile(r.lateness, 99), quantile(r.lateness, 100)
	return &r.result, nil
}

// streamCallers is of the levels and of the waits between attempts; package workload has the other streams of a seed.
const streamCallers = 100

// run is a plan under way. One goroutine owns it, but for what is ended.
type run struct {
	plan     Plan
	contexts [len(Levels)]context.Context // what calls of a level say of themselves
	issue    func(*attempt)               // hands it to the runtime
	method   sw.MethodID
	end      clock.Time
	arrivals *workload.Arrivals
	service  *rand.Rand
	rng      *rand.Rand
	guard    *client.Guard // of the callers' own loop; nil = none
	alarms   alarms
	pending  int
	result   Result
	latency  []time.Duration
	lateness []time.Duration

	mu    sync.Mutex
	ended []*attempt
	woken chan struct{}
}

func newRun(p Plan, issue func(*attempt)) *run {
	r := &run{
		plan: p, issue: issue, method: sw.MethodOf(p.Method), end: p.Begin.Add(p.Length + p.Drain),
		arrivals: workload.NewArrivals(p.Arrivals, p.Begin, p.PerS, p.Seed),
		service:  workload.ServiceRand(p.Seed), rng: rand.New(rand.NewPCG(p.Seed, streamCallers)), woken: make(chan struct{}, 1),
	}
	r.result.Outcomes = make(map[string]int)
	r.result.Seconds = make([]Second, (p.Length+p.Drain)/time.Second)
	for i, level := range Levels {
		r.contexts[i] = context.Background()
		if p.Repeatable {
			r.contexts[i] = sw.Repeatable(r.contexts[i])
		}
		if p.Told {
			r.contexts[i] = sw.WithCriticality(r.contexts[i], level)
		}
	}
	if p.Loop != nil {
		r.guard = client.NewGuard(client.GuardConfig{Retry: client.RetryConfig{Attempts: p.Loop.Attempts, Budget: p.Loop.Budget}})
	}
	return r
}

// loop does what is due, and sleeps until more is.
func (r *run) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r.collect()
		now := clock.Now()
		next := clock.Earliest(r.end, r.arrive(now))
		next = clock.Earliest(next, r.ring(now))
		if now >= r.end {
			return nil
		}
		timer.Reset(next.Sub(now))
		select {
		case <-timer.C:
		case <-r.woken:
		case <-ctx.Done():
			return fmt.Errorf("make calls: %w", context.Cause(ctx))
		}
	}
}

// arrive makes the calls that are due, and returns when the next is; zero = none will be.
func (r *run) arrive(now clock.Time) clock.Time {
	for {
		due := r.arrivals.Due()
		if due >= r.plan.Begin.Add(r.plan.Length) {
			return 0
		}
		if due > now {
			return due
		}
		r.arrivals.Advance()
		r.lateness = append(r.lateness, now.Sub(due))
		r.make(due)
	}
}

// ring does what waited until now, and returns until when the next waits; zero = nothing does.
func (r *run) ring(now clock.Time) clock.Time {
	for len(r.alarms) > 0 {
		if at := r.alarms[0].at; at > now {
			return at
		}
		heap.Pop(&r.alarms).(alarm).do()
	}
	return 0
}

func (r *run) after(d time.Duration, do func()) { heap.Push(&r.alarms, alarm{clock.Now().Add(d), do}) }

// alarm is something that waits for its time.
type alarm struct {
	at clock.Time
	do func()
}

// alarms are a heap, the earliest first.
type alarms []alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at < a[j].at }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)        { *a = append(*a, x.(alarm)) }
func (a *alarms) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// attempt is one call of the runtime.
type attempt struct {
	sw.Call
	of       *call
	serial   int // of the caller's loop
	finished clock.Time
}

// start has the runtime make a call, with a deadline if that is above zero.
func (r *run) start(c *call, deadline clock.Time) {
	a := &attempt{of: c, serial: c.serial}
	a.Inherit(r.contexts[c.level])
	a.Method, a.Deadline, a.Payload = r.method, deadline, make([]byte, workload.WorkBytes)
	_ = workload.EncodeWork(a.Payload, r.plan.Service.Sample(r.service)) // Sample keeps to the bound
	a.Done = func(*sw.Call) {
		a.finished = clock.Now()
		r.mu.Lock()
		r.ended = append(r.ended, a)
		r.mu.Unlock()
		select {
		case r.woken <- struct{}{}:
		default: // it is going to look already
		}
	}
	r.pending++
	r.issue(a)
}

// collect takes what the runtime has ended.
func (r *run) collect() {
	r.mu.Lock()
	all := r.ended
	r.ended = nil
	r.mu.Unlock()
	for _, a := range all {
		r.pending--
		r.result.Outcomes[a.Outcome().String()]++
		if a.Outcome() == sw.OutcomeOK {
			if s := r.result.second(a.finished.Sub(r.plan.Begin)); s != nil {
				s.Answered++
			}
		}
		if r.guard != nil {
			r.attempted(a)
			continue
		}
		r.tally(a.of, max(a.Attempts(), 1))
		r.over(a.of, a.Outcome(), a.finished)
	}
}

// outcomeOf is what an attempt's end means to the loop of its caller.
func outcomeOf(c *sw.Call) (e client.Ended) {
	switch c.Outcome() {
	case sw.OutcomeOK, sw.OutcomeHandlerError, sw.OutcomePanic, sw.OutcomeReplyTooLarge:
		e.End = client.EndAnswered
	case sw.OutcomeUnavailable:
		e.End = client.EndUnavailable
	case sw.OutcomeRejected:
		e.End = client.EndRefused
		if rejected, ok := errors.AsType[*sw.RejectedError](c.Err()); ok {
			e.DoNotRetry = rejected.DoNotRetry
		}
	case sw.OutcomeDeadline, sw.OutcomePeerLost:
		e.End = client.EndLost
	case sw.OutcomeExpired, sw.OutcomeQueueFull, sw.OutcomeThrottled, sw.OutcomeBreakerOpen:
		e.End = client.EndUnsent
	default:
		e.End = client.EndFinal
	}
	return e
}
