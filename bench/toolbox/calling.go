package toolbox

import (
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
	"github.com/stillwater-rpc/stillwater/wire"
)

// caller makes calls of several attempts each: client.Attempts on the simulator's clock. What an attempt is sent through is its transport.
type caller struct {
	w       *sim.World
	rng     *rand.Rand
	guard   *client.Guard
	class   client.CallClass // of each call
	timeout time.Duration    // of each attempt; 0 = it is waited for
	// tells: the time-out travels with an attempt as its deadline, and one that is given up is cancelled. Else its server never learns of it.
	tells bool
	send  transport

	attempts int // that were sent
}

// transport sends one attempt, whose number is given, with a deadline if that is above zero. done is told how it ended, outside of any dispatcher's turn; never, if nobody learns.
type transport func(number int, deadline time.Duration, done func(client.Ended)) (cancel func())

// logical is one call.
type logical struct {
	*caller
	client.Attempts
	done   func(ok bool)
	over   bool
	tries  [2]attempt
	serial int
}

// attempt is one that is under way.
type attempt struct {
	serial int // of the call; what a transport or a timer says of another one is void
	sent   clock.Time
	cancel func()
}

// call makes a call; done is told once.
func (c *caller) call(done func(ok bool)) { c.callAs(c.class, done) }

// callAs is call for a call of its own class.
func (c *caller) callAs(class client.CallClass, done func(ok bool)) {
	l := &logical{caller: c, done: done}
	l.Begin(c.guard, class)
	l.primary()
}

// primary sends the first attempt, or the next.
func (l *logical) primary() {
	if why := l.Admit(l.guard, l.w.Now(), l.rng.Float64()); why != client.RefusalNone {
		l.finish(l.Ended(l.guard, l.w.Now(), client.Primary, client.Ended{End: client.EndUnsent}, l.rng.Float64()))
		return
	}
	l.transmit(client.Primary)
	if delay, hedges := l.HedgeDelay(l.guard); hedges {
		serial := l.tries[client.Primary].serial
		l.after(delay, func() {
			if l.under(client.Primary, serial) && l.Hedge(l.guard, l.w.Now()) {
				l.transmit(client.Hedged)
			}
		})
	}
}

// transmit sends an attempt.
func (l *logical) transmit(t client.Try) {
	l.serial++
	serial := l.serial
	l.attempts++
	number := int(l.Number(t))
	l.tries[t] = attempt{serial: serial, sent: l.w.Now()}
	l.Sent(l.guard, t)
	deadline := time.Duration(0)
	if l.tells {
		deadline = l.timeout
	}
	cancel := l.send(number, deadline, func(e client.Ended) { l.ended(t, serial, e) })
	if l.tries[t].serial == serial {
		l.tries[t].cancel = cancel
	}
	if l.timeout > 0 {
		l.after(l.timeout, func() { l.ended(t, serial, client.Ended{End: client.EndLost}) })
	}
}

// under reports whether an attempt is still waited for.
func (l *logical) under(t client.Try, serial int) bool {
	return !l.over && l.Live(t) && l.tries[t].serial == serial
}

// ended is the end of an attempt.
func (l *logical) ended(t client.Try, serial int, e client.Ended) {
	if !l.under(t, serial) {
		return
	}
	now := l.w.Now()
	e.Latency = now.Sub(l.tries[t].sent)
	if e.End == client.EndLost && l.tells && l.tries[t].cancel != nil {
		l.tries[t].cancel()
	}
	what, wait := l.Ended(l.guard, now, t, e, l.rng.Float64())
	if what == client.Finish && e.End == client.EndAnswered {
		l.over = true
		l.drop(1 - t)
		l.done(true)
		return
	}
	l.finish(what, wait)
}

// finish does what is decided after a failure.
func (l *logical) finish(what client.Decision, wait time.Duration) {
	switch what {
	case client.Finish:
		l.over = true
		l.done(false)
	case client.Retry:
		l.after(wait, l.primary)
	}
}

// drop breaks off the attempt that has lost.
func (l *logical) drop(t client.Try) {
	if !l.Live(t) {
		return
	}
	if l.tells && l.tries[t].cancel != nil {
		l.tries[t].cancel()
	}
	l.Drop(l.guard, l.w.Now(), t, l.w.Now().Sub(l.tries[t].sent))
}

func (l *logical) after(d time.Duration, f func()) { l.w.At(l.w.Elapsed()+d, f) }

// unlimited is a budget that pays for every attempt.
var unlimited = client.BudgetConfig{Ratio: 10, Burst: 1 << 20}

// through sends attempts by a source, from its clients in turn. Service says how long each is to take.
func through(w *sim.World, s *sim.Source, service func() time.Duration) transport {
	next := 0
	return func(_ int, deadline time.Duration, done func(client.Ended)) func() {
		next++
		cancel, _ := s.Begin(next%s.Clients(), sim.Ask{Service: service(), Deadline: deadline, Done: func(o *sim.Observation) {
			e := endOf(o.Call)
			w.At(w.Elapsed(), func() { done(e) })
		}})
		return cancel
	}
}

// endOf is what an outcome means to the attempts.
func endOf(c *dispatcher.Call) client.Ended {
	e := client.Ended{DoNotRetry: c.Advice == wire.AdviceDoNotRetry}
	switch c.Outcome {
	case dispatcher.OutcomeOK:
		e.End = client.EndAnswered
	case dispatcher.OutcomeHandlerError:
		e.End = client.EndUnavailable
	case dispatcher.OutcomeRejected:
		e.End = client.EndRefused
	case dispatcher.OutcomeDeadline, dispatcher.OutcomePeerLost:
		e.End = client.EndLost
	case dispatcher.OutcomeExpired, dispatcher.OutcomeQueueFull, dispatcher.OutcomeThrottled:
		e.End = client.EndUnsent
	default:
		e.End = client.EndFinal
	}
	return e
}
