package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/wire"
)

// A call of a guarded session may take several attempts. Each is a request of its own, with a number, a slot and a credit, and the call has its one outcome after
// the last. A retry is the same Call, submitted again; in between the call is parked. A hedge is a second Call object, which the dispatcher lends, beside the first.

// SetGuard has the calls of a session tried again, hedged and refused as the guard says; sessions of one client at one server share it. Nil = none. It is for before the first call.
func (d *Dispatcher) SetGuard(s *Session, g *client.Guard) {
	s.guard = g
	if g != nil {
		g.CountIn(&d.stats.AttemptCounts)
	}
}

// SetAlternate has the hedges of a session sent in another one of the same dispatcher, perhaps to another server; nil = in its own. It is left out when it is closed.
func (s *Session) SetAlternate(other *Session) { s.alternate = other }

// draw is a random number from [0, 1).
func (d *Dispatcher) draw() float64 { return d.rng.Float64() }

// begin starts the attempts of a call that is submitted, and reports whether it may go on.
func (d *Dispatcher) begin(c *Call) bool {
	g := c.Session.guard
	c.attempts.Begin(g, client.CallClass{Repeatable: c.Repeatable, Deadline: c.Deadline, Left: c.AttemptsLeft})
	return d.admitAttempt(c, g)
}

// admitAttempt asks the guard for an attempt, and ends it if the guard refuses.
func (d *Dispatcher) admitAttempt(c *Call, g *client.Guard) bool {
	switch c.attempts.Admit(g, d.now, d.draw()) {
	case client.RefusalThrottled:
		d.endCall(c, OutcomeThrottled)
	case client.RefusalBreaker:
		d.endCall(c, OutcomeBreakerOpen)
	default:
		return true
	}
	return false
}

// enter has an attempt wait for a credit, and sends it if there is one.
func (d *Dispatcher) enter(c *Call) {
	s := c.Session
	if expires := s.expiry(c); expires != 0 && expires <= d.now {
		// Refused on the word of estimates, which get no sample that way: were they wrong, they would stay so.
		s.conn.service.Doubt()
		s.conn.RTT.Doubt()
		d.finishCall(c, OutcomeExpired)
		return
	}
	if d.straight(s, c) {
		return
	}
	if !d.enqueue(s, c) {
		d.finishCall(c, OutcomeQueueFull)
		return
	}
	d.pump(s)
	if c.state != callQueued {
		return
	}
	if !c.timer.Armed() { // one that is held back has its own
		d.caller.timers.Arm(&c.timer, d.wake(c, s.expires(c)))
	}
	if s.limits().Ask {
		d.ask(s)
	} else {
		d.askIfSilent(s)
	}
	if c.NoWait { // the probe that pump may have sent is for the next one
		d.finishCall(c, OutcomeExpired)
		d.armProbe(s)
	}
}

// straight sends an attempt that need not wait, as most need not, and reports whether it did. It is pump for one that is in no queue; where more is to be considered than credits
// and invitations, it leaves it to that.
func (d *Dispatcher) straight(s *Session, c *Call) bool {
	if s.closed || s.refused > 0 || s.pace != nil || s.conn.levelled || s.waiting.Len() > 0 {
		return false
	}
	s.gate.Expire(d.now)
	s.again = 0
	switch has := s.gate.CanSend(); {
	case has && !s.out.Full():
		d.send(s, c, s.gate.Take(), false)
	case !has && s.out.Len() == 0 && s.remote != 0 && max(c.rank, 1) <= s.conn.share:
		d.send(s, c, s.gate.TakeInvited(), true)
	default:
		return false
	}
	d.armProbe(s)
	return true
}

// send spends a slot on an attempt, under a running number that a credit was spent on; or unasked, by invitation.
func (d *Dispatcher) send(s *Session, c *Call, number uint64, unasked bool) {
	c.number = wire.Number(number)
	c.slot = s.out.Begin(c.number, c)
	c.state, c.transmitted, c.proven, c.unasked = callSent, d.now, 0, unasked
	if s.pace != nil {
		s.pace.policy.Sent(d.now)
	}
	d.attempting(c)
	d.transmit(c, false)
}

// attempting is told of each attempt that is about to be sent the first time.
func (d *Dispatcher) attempting(c *Call) {
	c.attempt, c.left, c.hedgeAt, c.lateAt = 0, c.AttemptsLeft, 0, 0
	if p := c.parent; p != nil {
		c.attempt, c.left = p.attempts.Number(client.Hedged), p.attempts.Left()
		p.attempts.Sent(p.Session.guard, client.Hedged)
		return
	}
	g := c.Session.guard
	if g == nil || !c.attempts.Live(client.Primary) {
		return
	}
	c.attempt, c.left = c.attempts.Number(client.Primary), c.attempts.Left()
	c.attempts.Sent(g, client.Primary)
	if delay, ok := c.attempts.HedgeDelay(g); ok {
		c.hedgeAt = d.now.Add(delay)
	}
	if late := c.attempts.Timeout(g); late > 0 {
		c.lateAt = d.now.Add(late)
	}
}

// alarm does what is due for a call that was sent: its hedge, or its next attempt instead of this one.
func (d *Dispatcher) alarm(c *Call) {
	if c.hedgeAt != 0 && c.hedgeAt <= d.now {
		c.hedgeAt = 0
		d.sendHedge(c)
	}
	if c.lateAt != 0 && c.lateAt <= d.now {
		c.lateAt = 0
		if c.attempts.TimedOut(c.Session.guard, d.now, d.draw()) {
			c.before = OutcomeDeadline
			d.breakOff(c)
			d.tryAgain(c)
			return
		}
	}
	if c.resend <= d.now {
		d.transmit(c, true)
	} else {
		d.armTimer(c)
	}
}

// sendHedge sends a second request beside a slow one, if there is a credit that nobody waits for: where there is none, the server is busy, and that is why it is slow.
func (d *Dispatcher) sendHedge(c *Call) {
	s := c.Session
	if s.alternate != nil && !s.alternate.closed {
		s = s.alternate
	}
	s.gate.Expire(d.now)
	if c.state != callSent || s.waiting.Len() > 0 || !s.gate.CanSend() || s.out.Full() || !d.paced(s) || !c.attempts.Hedge(c.Session.guard, d.now) {
		return
	}
	h := d.caller.hedges
	if h == nil {
		h = &Call{}
	} else {
		d.caller.hedges = h.ending
	}
	*h = Call{
		Session: s, Method: c.Method, Payload: c.Payload, Deadline: c.Deadline, Criticality: c.Criticality, Priority: c.Priority, Reply: c.Reply,
		priority: c.priority, submitted: c.submitted, heard: d.now, replyBase: c.replyBase, parent: c,
	}
	h.timer.Value, h.waiter.Value = h, h
	c.hedge = h
	d.send(s, h, s.gate.Take(), false)
	d.armProbe(s)
}

// hedgeEnded is the end of a hedge, which is out of its session by now.
func (d *Dispatcher) hedgeEnded(h *Call, o Outcome) {
	c := h.parent
	if c == nil { // its call was over before it
		d.recycleHedge(h)
		return
	}
	c.hedge = nil
	end := endOf(h, o)
	end.Latency = d.now.Sub(h.transmitted)
	what, wait := c.attempts.Ended(c.Session.guard, d.now, client.Hedged, end, d.draw())
	c.remember(o, end.End)
	if what != client.Await {
		c.Reply, c.Timing, c.Reason, c.Advice, c.RetryAfter = h.Reply, h.Timing, h.Reason, h.Advice, h.RetryAfter
		c.Retransmissions += h.Retransmissions
	}
	d.recycleHedge(h)
	switch what {
	case client.Retry:
		d.unpark(c)
		d.park(c, wait)
	case client.Finish:
		if o == OutcomeClosed { // of the other session
			o = c.before
		}
		if c.state == callSent || c.state == callRefused {
			d.breakOff(c)
		}
		d.over(c, o)
	}
}

func (d *Dispatcher) recycleHedge(h *Call) {
	*h = Call{ending: d.caller.hedges}
	d.caller.hedges = h
}

// goesOn decides about a call whose primary attempt has ended, and is out of its session; false = the call is over.
func (d *Dispatcher) goesOn(c *Call, o Outcome) bool {
	end := endOf(c, o)
	end.Latency = d.now.Sub(c.transmitted)
	what, wait := c.attempts.Ended(c.Session.guard, d.now, client.Primary, end, d.draw())
	c.remember(o, end.End)
	switch what {
	case client.Await:
		d.park(c, -1)
	case client.Retry:
		d.park(c, wait)
	default:
		return false
	}
	return true
}

// park has a call wait outside of its session's queue, for so long, or for its hedge if that is below zero.
func (d *Dispatcher) park(c *Call, wait time.Duration) {
	s := c.Session
	c.state = callParked
	c.parkedNext, c.parkedBefore = s.parked, nil
	if s.parked != nil {
		s.parked.parkedBefore = c
	}
	s.parked = c
	if wait >= 0 {
		d.caller.timers.Arm(&c.timer, d.now.Add(wait))
	}
}

// unpark takes a call from where it waits, if it does.
func (d *Dispatcher) unpark(c *Call) {
	if c.state != callParked {
		return
	}
	d.caller.timers.Disarm(&c.timer)
	if c.parkedBefore != nil {
		c.parkedBefore.parkedNext = c.parkedNext
	} else {
		c.Session.parked = c.parkedNext
	}
	if c.parkedNext != nil {
		c.parkedNext.parkedBefore = c.parkedBefore
	}
	c.parkedNext, c.parkedBefore, c.state = nil, nil, callIdle
}

// tryAgain submits the next attempt of a call.
func (d *Dispatcher) tryAgain(c *Call) {
	c.transmitted, c.heard, c.proven = 0, d.now, 0
	if d.admitAttempt(c, c.Session.guard) {
		d.enter(c)
	}
}

// breakOff takes an attempt out of its session before it has ended, and tells the server if it was sent.
func (d *Dispatcher) breakOff(c *Call) {
	d.caller.timers.Disarm(&c.timer)
	if c.state == callSent {
		d.tellCancelled(c)
	}
	d.takeOut(c)
	c.state = callIdle
	if !c.Session.closed {
		d.pump(c.Session)
	}
}

// dropHedge breaks the hedge of a call off that is over.
func (d *Dispatcher) dropHedge(c *Call) {
	h := c.hedge
	if h == nil {
		return
	}
	c.hedge, h.parent = nil, nil
	if h.state == callIdle { // its session was lost in this turn, and endAll comes to it
		return
	}
	d.breakOff(h)
	d.recycleHedge(h)
}

// over gives a call back to its caller, with the outcome of its last attempt, or of an earlier one if that says more.
func (d *Dispatcher) over(c *Call, o Outcome) {
	d.unpark(c)
	if g := c.Session.guard; g != nil {
		unanswered := time.Duration(0)
		if o.answered() && c.transmitted != 0 { // the hedge won, if the primary is still live
			unanswered = d.now.Sub(c.transmitted)
		}
		c.attempts.Drop(g, d.now, client.Primary, unanswered)
		d.dropHedge(c)
		c.attempts.Drop(g, d.now, client.Hedged, 0)
	}
	d.caller.timers.Disarm(&c.timer)
	c.state, c.Outcome = callIdle, c.verdict(o)
	d.stats.Outcomes[c.Outcome]++
	d.endedCount++
	c.Done(c)
}

// remember keeps the outcome of an attempt that failed, for a call whose later attempts are never sent. That it may have run must not be forgotten.
func (c *Call) remember(o Outcome, end client.End) {
	if end == client.EndLost || end == client.EndUnavailable || end == client.EndRefused && !c.attempts.MayHaveRun() {
		c.before = o
	}
}

// verdict is the outcome of a call whose last attempt had this one: what was not sent, or not run, this time may have been before.
func (c *Call) verdict(o Outcome) Outcome {
	switch o {
	case OutcomeExpired, OutcomeQueueFull, OutcomeThrottled, OutcomeBreakerOpen:
		if c.before != OutcomeNone {
			return c.before
		}
	case OutcomeRejected:
		if c.attempts.MayHaveRun() {
			return c.before
		}
	}
	return o
}

// answered reports whether a handler has answered.
func (o Outcome) answered() bool {
	return o == OutcomeOK || o == OutcomeHandlerError || o == OutcomePanic || o == OutcomeReplyTooLarge || o == OutcomeUnavailable
}

// endOf says what an attempt's outcome means for others.
func endOf(c *Call, o Outcome) client.Ended {
	switch o {
	case OutcomeOK, OutcomeHandlerError, OutcomePanic, OutcomeReplyTooLarge:
		return client.Ended{End: client.EndAnswered}
	case OutcomeUnavailable:
		return client.Ended{End: client.EndUnavailable}
	case OutcomeDeadline, OutcomePeerLost:
		return client.Ended{End: client.EndLost}
	case OutcomeExpired, OutcomeQueueFull, OutcomeThrottled, OutcomeBreakerOpen:
		return client.Ended{End: client.EndUnsent}
	case OutcomeRejected:
		switch c.Reason {
		case wire.RejectOverloaded, wire.RejectDraining, wire.RejectRateLimited:
			return client.Ended{End: client.EndRefused, DoNotRetry: c.Advice == wire.AdviceDoNotRetry, RetryAfter: c.RetryAfter}
		case wire.RejectExpired: // it is too late for this one, and would be for another
			return client.Ended{End: client.EndRefused, DoNotRetry: true}
		}
	}
	return client.Ended{End: client.EndFinal}
}
