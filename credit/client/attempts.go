package client

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// End is what became of one attempt at a call.
type End uint8

// The ends of an attempt.
const (
	EndUnsent      End = iota // it was never sent, this time; it says nothing of the server, and nor does
	EndFinal                  // what another attempt would not change: unknown method, closed, cancelled
	EndAnswered               // its handler answered, whatever it said
	EndUnavailable            // its handler answered that it could not get what it needs from elsewhere
	EndRefused                // the server refused it for its load: it certainly did not run
	EndLost                   // no answer: it may have run
)

var endNames = [...]string{"unsent", "final", "answered", "unavailable", "refused", "lost"}

// String names the end.
func (e End) String() string {
	if int(e) < len(endNames) {
		return endNames[e]
	}
	return "unknown"
}

// Ended is how an attempt ended.
type Ended struct {
	End        End
	DoNotRetry bool          // the server says that another attempt would only add to its load
	RetryAfter time.Duration // the server says that it refuses the like for so long; 0 = it does not
	Latency    time.Duration // since the attempt was first sent
}

// Decision is what is to be done about a call one of whose attempts has ended.
type Decision uint8

// The decisions.
const (
	Finish Decision = iota // the call is over
	Await                  // its other attempt is still under way
	Retry                  // another attempt is to be made, after a wait
)

// Try names one of the two attempts of a call that can be under way at a time.
type Try uint8

// The tries.
const (
	Primary Try = iota // the first attempt, and each that takes the place of one that has failed
	Hedged             // the one beside it
)

// CallClass is what a call says of itself.
type CallClass struct {
	Repeatable bool       // running it twice does no more than running it once: it may be tried again after it may have run, and hedged
	Deadline   clock.Time // zero = none
	// Left is how many attempts whoever is above us has left to us: 1 = he repeats the call himself, so we make one of each of ours. Zero = nobody above repeats it.
	Left uint8
}

// Attempts is the state of one call over all its attempts. It lies inside the call. Its owner tells it what happens, and does what it says; it asks the guard
// that all calls to the server share.
//
// A call that may have run is tried again only if it is repeatable; one that the server refused before it ran, if it is repeatable or the guard has Refused. Neither
// if the server forbids it, when the attempts are used up, when there would be no time left, or when the budget is empty.
//
// Who may repeat a call tells the server so (Left on the wire), and then nobody below repeats any for it. So of several layers the uppermost that may repeat does, and
// the attempts at the lowest are 1 + Ratio for each call over all layers; with a budget in each layer they would be (1 + Ratio)^layers.
type Attempts struct {
	class     CallClass
	limit     uint8 // attempts in all
	made      uint8 // begun so far
	forbidden bool
	mayRun    bool // one of those that have ended may have run
	tries     [2]try
}

// try is one attempt.
type try struct {
	live   bool
	held   bool // paid from the budget, and not sent yet
	number uint8
	permit Permit
}

// Begin starts a call with its first attempt.
func (a *Attempts) Begin(g *Guard, class CallClass) {
	*a = Attempts{class: class, limit: 1, made: 1}
	if class.Repeatable || g.retry.Refused {
		a.limit = uint8(g.retry.Attempts)
		if class.Left != 0 {
			a.limit = min(a.limit, class.Left)
		}
	}
	a.tries[Primary].live = true
}

// Admit asks throttle and breaker for the attempt that Begin or Retry announced, with a random number from [0, 1). If it is refused, the caller ends it with EndUnsent.
func (a *Attempts) Admit(g *Guard, now clock.Time, draw float64) (why Refusal) {
	t := &a.tries[Primary]
	if t.permit, why = g.admit(now, draw); why == RefusalNone && t.number == 0 {
		g.budget.Deposit()
	}
	return why
}

// Sent says that an attempt was sent, the first time: what it was paid with is spent.
func (a *Attempts) Sent(g *Guard, t Try) {
	if !a.tries[t].held {
		return
	}
	a.tries[t].held = false
	if t == Hedged {
		g.counts.Hedges++
	} else {
		g.counts.Retries++
	}
}

// Made is how many attempts were begun.
func (a *Attempts) Made() int { return int(a.made) }

// Number is the attempt's number, from 0, as the request says it.
func (a *Attempts) Number(t Try) uint8 { return a.tries[t].number }

// Left is what the requests of the call say: 1 if it may be tried again here, else what was said to us.
func (a *Attempts) Left() uint8 {
	if a.class.Repeatable && a.limit > 1 {
		return 1
	}
	return a.class.Left
}

// MayHaveRun reports whether one of the attempts that have ended may have run. Then the call must not end as if it had not.
func (a *Attempts) MayHaveRun() bool { return a.mayRun }

// Live reports whether the attempt is under way.
func (a *Attempts) Live(t Try) bool { return a.tries[t].live }

// HedgeDelay is how long after the first request a second one is due; false = never.
func (a *Attempts) HedgeDelay(g *Guard) (time.Duration, bool) {
	if !a.class.Repeatable || a.made >= a.limit {
		return 0, false
	}
	return g.hedge.Delay()
}

// Timeout is how long an attempt may go unanswered before TimedOut is asked; zero = for ever.
func (a *Attempts) Timeout(g *Guard) time.Duration {
	if !a.class.Repeatable || a.made >= a.limit || g.retry.Off {
		return 0
	}
	return g.retry.Timeout
}

// Hedge begins a second attempt beside the first one, if the budget has it. The caller sends it at once.
func (a *Attempts) Hedge(g *Guard, now clock.Time) bool {
	if a.tries[Hedged].live || a.made >= a.limit || a.forbidden || !a.take(g, now) {
		return false
	}
	a.tries[Hedged] = try{live: true, held: true, number: a.made}
	a.made++
	return true
}

// TimedOut asks whether the primary attempt, which is late, is to be given up for another one. If so, the caller breaks it off and sends the next; if not, it goes on.
func (a *Attempts) TimedOut(g *Guard, now clock.Time, draw float64) bool {
	if a.tries[Hedged].live || a.forbidden || a.made >= a.limit || !a.take(g, now) {
		return false
	}
	g.learn(now, a.tries[Primary].permit, Ended{End: EndLost}, draw)
	a.mayRun = true
	a.again()
	return true
}

// Ended says that an attempt has ended, with a random number from [0, 1), and returns what follows; wait is with Retry. One that has ended already changes nothing.
// When the call is over, its other attempt, if it is Live, is to be broken off and told of to Drop.
func (a *Attempts) Ended(g *Guard, now clock.Time, t Try, e Ended, draw float64) (what Decision, wait time.Duration) {
	ended := &a.tries[t]
	if !ended.live {
		return Await, 0
	}
	a.release(g, ended)
	g.learn(now, ended.permit, e, draw)
	a.mayRun = a.mayRun || e.End == EndLost || e.End == EndUnavailable
	a.forbidden = a.forbidden || e.DoNotRetry
	switch {
	case e.End == EndAnswered:
		if t == Hedged {
			g.counts.HedgesWon++
		}
		return Finish, 0
	case a.tries[Primary].live || a.tries[Hedged].live:
		return Await, 0
	case !a.repeats(g, e.End) || a.made >= a.limit:
		return Finish, 0
	case a.forbidden:
		g.counts.RetriesForbidden++
		return Finish, 0
	}
	wait = g.retry.Backoff.Wait(int(a.made), e.RetryAfter, draw)
	if a.class.Deadline != 0 && now.Add(wait) >= a.class.Deadline || !a.take(g, now) {
		return Finish, 0
	}
	a.again()
	return Retry, wait
}

// repeats reports whether an attempt with this end may be made again.
func (a *Attempts) repeats(g *Guard, e End) bool {
	switch {
	case g.retry.Off:
		return false
	case e == EndRefused && !a.mayRun:
		return a.class.Repeatable || g.retry.Refused
	case e == EndRefused, e == EndLost, e == EndUnavailable:
		return a.class.Repeatable
	default:
		return false
	}
}

// take pays for one more attempt.
func (a *Attempts) take(g *Guard, now clock.Time) bool {
	if g.budget.Take(now) {
		return true
	}
	g.counts.BudgetRefused++
	return false
}

// again begins the next primary attempt, which is paid for.
func (a *Attempts) again() {
	a.tries[Primary] = try{live: true, held: true, number: a.made}
	a.made++
}

// Drop says that an attempt was broken off, because the call is over: the other one won, or its caller cancelled it. One that was under way for so long and has no answer
// is slow, for the hedge; zero = it was not sent, or that is not to be counted.
func (a *Attempts) Drop(g *Guard, now clock.Time, t Try, unanswered time.Duration) {
	dropped := &a.tries[t]
	if !dropped.live {
		return
	}
	a.release(g, dropped)
	g.breaker.Report(now, dropped.permit, ReportNothing, 0)
	if unanswered > 0 {
		g.hedge.Sample(unanswered)
	}
}

// release ends an attempt: what it was paid with goes back if it was not sent, once.
func (a *Attempts) release(g *Guard, t *try) {
	t.live = false
	if t.held {
		t.held = false
		g.budget.Return()
	}
}
