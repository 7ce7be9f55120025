package callers

import (
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// call is what one caller wants.
type call struct {
	made  clock.Time
	level int // of Levels

	// Of a caller who repeats it by himself. An attempt whose serial is another one is waited for no more.
	attempts client.Attempts
	serial   int
	sent     clock.Time
}

// counts reports whether a call is one of the sums.
func (r *run) counts(c *call) bool { return c.made.Sub(r.plan.Begin) >= r.plan.Warmup }

// make makes a call that was due.
func (r *run) make(due clock.Time) {
	c := &call{made: due}
	if r.plan.Levels {
		c.level = r.rng.IntN(len(Levels))
	}
	if r.counts(c) {
		r.result.Made++
		r.result.Levels[c.level].Made++
	}
	if s := r.result.second(due.Sub(r.plan.Begin)); s != nil {
		s.Made++
	}
	if r.guard == nil {
		r.start(c, r.until(due))
		return
	}
	c.attempts.Begin(r.guard, client.CallClass{Repeatable: true})
	_ = c.attempts.Admit(r.guard, clock.Now(), 0) // which pays into the budget; there is neither throttle nor breaker to refuse it
	r.try(c)
}

// until is the deadline that the runtime is told; zero = none.
func (r *run) until(from clock.Time) clock.Time {
	if r.plan.Deadline == 0 {
		return 0
	}
	return from.Add(r.plan.Deadline)
}

// try makes the next attempt of a caller's loop.
func (r *run) try(c *call) {
	c.serial++
	c.sent = clock.Now()
	serial := c.serial
	c.attempts.Sent(r.guard, client.Primary)
	r.tally(c, 1)
	r.start(c, r.until(c.sent))
	r.after(r.plan.Loop.Timeout, func() { r.decide(c, serial, client.Ended{End: client.EndLost}, sw.OutcomeDeadline, clock.Now()) })
}

// attempted is told that the runtime has ended an attempt, perhaps long after its caller gave it up.
func (r *run) attempted(a *attempt) {
	r.decide(a.of, a.serial, outcomeOf(&a.Call), a.Outcome(), a.finished)
}

// decide is what a caller's loop does about the end of an attempt.
func (r *run) decide(c *call, serial int, e client.Ended, o sw.Outcome, at clock.Time) {
	if c.serial != serial || !c.attempts.Live(client.Primary) {
		return
	}
	e.Latency = at.Sub(c.sent)
	what, wait := c.attempts.Ended(r.guard, at, client.Primary, e, r.rng.Float64())
	if what != client.Retry {
		r.over(c, o, at)
		return
	}
	r.after(wait, func() { r.try(c) })
}

func (r *run) tally(c *call, attempts int) {
	if r.counts(c) {
		r.result.Attempts += attempts
	}
}

// over counts the end of a call.
func (r *run) over(c *call, o sw.Outcome, at clock.Time) {
	took := at.Sub(c.made)
	good := o == sw.OutcomeOK && (r.plan.Within == 0 || took <= r.plan.Within)
	if s := r.result.second(at.Sub(r.plan.Begin)); s != nil && good {
		s.Good++
	}
	if !r.counts(c) {
		return
	}
	level := &r.result.Levels[c.level]
	if good {
		r.result.Good++
		level.Good++
	}
	switch o {
	case sw.OutcomeOK:
		r.result.Answered++
		r.latency = append(r.latency, took)
	case sw.OutcomeRejected, sw.OutcomeUnavailable:
		r.result.Rejected++
		level.Rejected++
	case sw.OutcomeExpired, sw.OutcomeQueueFull, sw.OutcomeThrottled, sw.OutcomeBreakerOpen:
		r.result.Unsent++
		level.Unsent++
	default:
		r.result.Lost++
		level.Lost++
	}
}
