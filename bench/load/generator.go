package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// turnLimit bounds what is issued on one reading of the clock. Without a bound a generator that comes back late would
// issue its whole backlog on an old reading, understate its lateness, and starve the loop that it shares a CPU with.
const turnLimit = 32

// timeSource is the real clock and scheduler, or a test's.
type timeSource struct {
	now   func() clock.Time
	yield func()
}

// orReal fills in the real clock and scheduler.
func (t timeSource) orReal() timeSource {
	if t.now == nil {
		return timeSource{now: clock.Now, yield: runtime.Gosched}
	}
	return t
}

// generator issues requests and records their outcomes. One goroutine owns it.
type generator struct {
	plan     Plan
	time     timeSource
	issuer   Issuer
	pool     *pool
	recorder *recorder
	pick     *rand.Rand
	service  *rand.Rand
	start    clock.Time
	loadEnds clock.Time // nothing is issued from here on
	stopped  atomic.Bool
}

// newGenerator prepares a run of a resolved plan that begins now.
func newGenerator(plan Plan, source timeSource, issuer Issuer, poolSize int) *generator {
	g := &generator{
		plan:    plan,
		time:    source,
		issuer:  issuer,
		pool:    newPool(poolSize, plan.PayloadBytes),
		pick:    workload.SessionRand(plan.Seed),
		service: workload.ServiceRand(plan.Seed),
	}
	runtime.GC()           // a large pool makes a collection due, and on one P that would stand in the way of the first requests for 15 ms
	g.start = g.time.now() // after the allocations, which take milliseconds for a large pool
	from := g.start.Add(plan.Warmup)
	to := from.Add(plan.Duration)
	g.loadEnds = to.Add(plan.Cooldown)
	g.recorder = newRecorder(from, to, plan.limit(), plan.BucketWidth)
	return g
}

// issue starts the request that was due. The random draws come first, so that the sequence of sessions and service
// times is the same whether or not there is a free Op.
func (g *generator) issue(due, now clock.Time) {
	session := g.pick.IntN(g.plan.Sessions)
	work := g.plan.ServiceTime.Sample(g.service)
	op := g.pool.get()
	g.recorder.offered(due, now, op != nil)
	if op == nil {
		return
	}
	_ = workload.EncodeWork(op.Payload, work) // the plan checked the payload's size, Sample the bound
	op.Due, op.Deadline = due, 0
	if g.plan.Deadline > 0 {
		op.Deadline = due.Add(g.plan.Deadline)
	}
	g.issuer.Issue(session, op)
}

// collect records every request that came back.
func (g *generator) collect() {
	for op := g.pool.takeReturned(); op != nil; {
		next := op.next
		g.recorder.finished(op)
		g.pool.put(op)
		op = next
	}
}

// run alternates between collecting, issuing and yielding until the load ends, then waits for the last outcomes. issueDue
// issues what is due and returns false when more is due than one turn may issue.
func (g *generator) run(ctx context.Context, issueDue func(now clock.Time) bool) error {
	defer context.AfterFunc(ctx, func() { g.stopped.Store(true) })() // cheaper than asking ctx every turn
	for {
		g.collect()
		now := g.time.now()
		if done := issueDue(now); done && now >= g.loadEnds {
			break
		}
		if g.stopped.Load() {
			return fmt.Errorf("generate load: %w", context.Cause(ctx))
		}
		g.time.yield()
	}
	for giveUp := g.time.now().Add(g.plan.DrainLimit); ; {
		g.collect()
		if g.pool.outstanding == 0 || g.time.now() >= giveUp {
			return nil
		}
		if g.stopped.Load() {
			return fmt.Errorf("wait for the last outcomes: %w", context.Cause(ctx))
		}
		g.time.yield()
	}
}

// result closes the books.
func (g *generator) result(kind string) *Result {
	r := &Result{
		Kind:          kind,
		Plan:          g.plan,
		ProcessCount:  1,
		Counts:        g.recorder.counts,
		Buckets:       g.recorder.buckets,
		TimedCount:    g.recorder.timed,
		TimingSumsNs:  g.recorder.partSums,
		RejectReasons: g.recorder.reasonNames(g.plan.ReasonName),
		Histograms: &Histograms{
			Latency:  Histogram{g.recorder.latency},
			Reject:   Histogram{g.recorder.rejection},
			Lateness: Histogram{g.recorder.lateness},
		},
	}
	for i, h := range g.recorder.parts {
		r.Histograms.Parts[i] = Histogram{h}
	}
	r.Counts.setOutcomes(g.recorder.outcomes)
	r.Counts.Repeated = g.pool.repeated.Load()
	return r
}

// reasonNames returns the refusals by reason.
func (r *recorder) reasonNames(name func(uint8) string) map[string]uint64 {
	named := map[string]uint64{}
	for reason, n := range r.reasons {
		if n == 0 {
			continue
		}
		key := fmt.Sprint(reason)
		if name != nil {
			key = name(uint8(reason))
		}
		named[key] += n
	}
	return named
}
