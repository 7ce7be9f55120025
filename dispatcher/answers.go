package dispatcher

import (
	"errors"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// fromServer handles one message of a dialed connection.
func (d *Dispatcher) fromServer(c *session.Conn, in inbound, m wire.Message) error {
	if !c.Established() && m.Type != wire.TypeAccept && m.Type != wire.TypeRetry {
		return errOtherBoot // or of this one, and it will say it again, behind an acceptance
	}
	switch m.Type {
	case wire.TypeReply:
		r, err := wire.ParseReply(m.Raw)
		if err != nil {
			return err
		}
		d.listen(c, in, r.Level)
		d.onReply(c, &r)
		d.release(c)
	case wire.TypeReject:
		r, err := wire.ParseReject(m.Raw)
		if err != nil {
			return err
		}
		d.listen(c, in, r.Level)
		d.onReject(c, r)
	case wire.TypeBusy:
		b, err := wire.ParseBusy(m.Raw)
		if err != nil {
			return err
		}
		d.onBusy(c, b)
	case wire.TypeCreditUpdate:
		u, err := wire.ParseCreditUpdate(m.Raw)
		if err != nil {
			return err
		}
		if s := d.byHandle(c, u.Session); s != nil {
			s.gate.Apply(d.now, uint64(u.Limit), u.Seq)
			d.pump(s)
		}
	case wire.TypeRegistered:
		r, err := wire.ParseRegistered(m.Raw)
		if err != nil {
			return err
		}
		d.onRegistered(c, r)
	case wire.TypeAccept, wire.TypeRetry:
		return d.onOpened(c, m)
	case wire.TypeGone:
		g, err := wire.ParseGone(m.Raw)
		if err != nil {
			return err
		}
		if in.newer { // one that was overtaken may speak of an earlier session with this handle
			d.onSessionGone(c, g)
		}
	default:
		d.stats.UnknownMessages++
	}
	return nil
}

// errOtherBoot says that a packet does not accept our connection, or under another name than the one that we know. It may have been said by a server that has
// died since, and so may what stands behind it.
var errOtherBoot = errors.New("perhaps of another boot of the server")

// onOpened handles the answers to an open: accepted, or asked to prove the address first.
func (d *Dispatcher) onOpened(c *session.Conn, m wire.Message) error {
	at := d.caller.conns[c.Peer]
	if m.Type == wire.TypeAccept {
		a, err := wire.ParseAccept(m.Raw)
		if err != nil {
			return err
		}
		if c.Established() && a.Connection != c.Remote {
			return errOtherBoot
		}
		if !c.Established() && a.Connection != 0 {
			c.Remote, c.Token, c.HasToken = a.Connection, a.Token, true
			at.doubtful = false
		}
		return nil
	}
	r, err := wire.ParseRetry(m.Raw)
	if err != nil {
		return err
	}
	if c.Established() || (c.HasToken && c.Token == r.Token) {
		return nil
	}
	d.abandon(c) // begun without this token: what is in it is sent again, too
	if c.HasToken {
		// The old one was good for another boot, of which answers may be under way: they would give our sessions handles and outcomes of
		// that boot. A connection of another name does not hear them.
		at.Reset(d.conns.NextID(c))
	}
	c.Token, c.HasToken = r.Token, true
	var lost *Call
	d.eachSession(c, func(s *Session) {
		s.out.Each(func(call *Call) {
			if call.state == callSent && call.mayHaveRun(at.doubtful) {
				s.out.End(call.slot)
				lost = d.endLater(lost, call, OutcomePeerLost)
				return
			}
			d.transmit(call, true)
		})
	})
	at.doubtful = false
	d.endAll(lost)
	d.eachSession(c, d.pump) // what waits behind a registration that ended must register itself
	return nil
}

// mayHaveRun reports whether a server that asks for another token may be the successor of one that ran the call: a token that was good
// is refused only by another boot (or after ten minutes). A doubtful token is one of which the peer that gave it knows nothing any
// more; it has been refused now, and so was the only packet that went out with it.
func (c *Call) mayHaveRun(doubtful bool) bool { return c.proven > 1 || c.proven == 1 && !doubtful }

// eachSession calls f for the live sessions of a dialed connection.
func (d *Dispatcher) eachSession(c *session.Conn, f func(*Session)) {
	for _, s := range d.caller.sessions {
		if s != nil && !s.closed && s.conn.Conn == c {
			f(s)
		}
	}
}

func (d *Dispatcher) onRegistered(c *session.Conn, r wire.Registered) {
	s := d.bySession(c, r.Session)
	if s == nil {
		return
	}
	known := s.remote == r.ServerSession
	s.remote = r.ServerSession
	if s.closed { // before it was registered
		if !known { // or each copy of the answer would double the wait
			s.farewell = 0
			d.sayFarewell(s)
		}
		return
	}
	if s.owesCancel {
		s.owesCancel = false
		d.tellCancel(s, s.untold)
	}
	s.out.SetLimit(min(int(r.Slots), d.cfg.SlotsMax))
	s.conn.target, s.conn.threshold = r.TargetDelay, r.DropThreshold
}

func (d *Dispatcher) onReply(c *session.Conn, r *wire.Reply) {
	s := d.byHandle(c, r.Session)
	if s == nil {
		d.stats.LateAnswers++
		return
	}
	s.gate.Apply(d.now, uint64(r.Limit), r.Seq)
	s.conn.service.Sample(r.Service)
	s.conn.residence.Sample(r.PacketQueue + r.RequestQueue + r.Service)
	s.conn.standing.Sample(r.PacketQueue+r.RequestQueue, s.conn.target)
	call := s.out.Find(r.Number, r.Slot)
	if call == nil {
		d.stats.LateAnswers++ // a second answer, or one whose call has ended
		d.pump(s)
		return
	}
	call.Reply = append(call.Reply[:call.replyBase], r.Payload...) // an earlier attempt may have left a text there
	call.Timing = Timing{
		ClientQueue: call.transmitted.Sub(call.submitted), PacketQueue: r.PacketQueue,
		RequestQueue: r.RequestQueue, Service: r.Service,
	}
	stay := r.PacketQueue + r.RequestQueue + r.Service
	call.Timing.Network = max(d.now.Sub(call.transmitted)-stay, 0)
	if !s.gate.CanSend() && s.out.Len() == 1 {
		s.gate.Overloaded(d.now) // this answer is the last, and leaves nothing: the server has too much to do
	}
	d.tell(s, call, client.Answer{Level: r.Level})
	d.finishCall(call, outcomeOf(r.Status))
	d.pump(s)
}

func outcomeOf(status wire.Status) Outcome {
	switch status {
	case wire.StatusOK:
		return OutcomeOK
	case wire.StatusPanic:
		return OutcomePanic
	case wire.StatusTooLarge:
		return OutcomeReplyTooLarge
	case wire.StatusUnavailable:
		return OutcomeUnavailable
	default:
		return OutcomeHandlerError
	}
}

func (d *Dispatcher) onReject(c *session.Conn, r wire.Reject) {
	s := d.byHandle(c, r.Session)
	if s == nil {
		d.stats.LateAnswers++
		return
	}
	s.gate.Apply(d.now, uint64(r.Limit), r.Seq)
	call := s.out.Find(r.Number, r.Slot)
	switch {
	case call == nil:
		d.stats.LateAnswers++
	case r.Reason == wire.RejectOverLimit:
		if call.state == callSent { // no outcome yet: it waits for a limit above its number
			call.state, call.heard = callRefused, d.now
			s.refused++
			d.stats.OverLimit++
			if call.unasked {
				s.gate.Overloaded(d.now) // it is listed now
			}
			d.armCall(call)
		}
	default:
		switch r.Reason {
		case wire.RejectOverloaded, wire.RejectExpired, wire.RejectRateLimited:
			if !s.gate.CanSend() {
				s.gate.Overloaded(d.now)
			}
		}
		call.Reason, call.Advice, call.RetryAfter = r.Reason, r.Advice, r.RetryAfter
		d.tell(s, call, client.Answer{Level: r.Level, Rejected: true})
		d.finishCall(call, OutcomeRejected)
	}
	d.pump(s)
}

// onBusy slows the retransmission of a call down that is only queued.
func (d *Dispatcher) onBusy(c *session.Conn, b wire.Busy) {
	s := d.byHandle(c, b.Session)
	if s == nil {
		return
	}
	if call := s.out.Find(b.Number, b.Slot); call != nil && call.state == callSent {
		call.heard = d.now
		d.armCall(call)
	}
}

// onSessionGone handles a server that has forgotten one session of a connection it knows, or confirms the end of one.
func (d *Dispatcher) onSessionGone(c *session.Conn, g wire.Gone) {
	if g.Session == 0 || g.Connection != c.Remote {
		return
	}
	for _, s := range d.caller.sessions {
		switch {
		case s == nil || s.conn.Conn != c || s.remote != g.Session:
		case s.closed:
			d.bury(s)
		default:
			// The connection stays, so the handle must not: a late answer would be taken for that of another call.
			d.nextHandle(s)
			d.loseSession(s)
		}
	}
}

// lost ends a connection whose server does not know it any more: what was sent has an unknown outcome, what waits is
// sent to the new boot.
func (d *Dispatcher) lost(at *dialed) {
	d.stats.PeersLost++
	d.abandon(at.Conn)
	at.Reset(d.conns.NextID(at.Conn))
	at.doubtful = at.HasToken
	at.share = 0
	for _, s := range d.caller.sessions {
		switch {
		case s == nil || s.conn != at:
		case s.closed: // nothing is left there to say farewell to
			d.bury(s)
		default:
			d.loseSession(s)
		}
	}
}

// loseSession ends what is outstanding and makes the session register anew. Also what was last refused for want of a credit has
// an unknown outcome: another copy of it may have run before the server went.
func (d *Dispatcher) loseSession(s *Session) {
	d.endAll(d.loseCalls(nil, s))
	d.pump(s)
}

// loseCalls takes what is outstanding out of a session that starts anew, and adds it to a list for endAll.
func (d *Dispatcher) loseCalls(lost *Call, s *Session) *Call {
	s.out.Each(func(call *Call) { lost = d.endLater(lost, call, OutcomePeerLost) })
	s.reset(d)
	return lost
}

// endLater notes a call that has left its session and will be ended by endAll. What a Done does (cancel another call, submit
// more, close the session) must find all of them out of the way.
func (d *Dispatcher) endLater(list, c *Call, o Outcome) *Call {
	d.caller.timers.Disarm(&c.timer)
	c.state, c.Outcome, c.ending = callIdle, o, list
	return c
}

func (d *Dispatcher) endAll(list *Call) {
	for c := list; c != nil; {
		next := c.ending // read first: the call may be submitted again
		c.ending = nil
		d.endCall(c, c.Outcome)
		c = next
	}
}

// finishCall ends an attempt at a call and takes it out of whatever it is in.
func (d *Dispatcher) finishCall(c *Call, o Outcome) {
	d.takeOut(c)
	d.endCall(c, o)
}

// takeOut takes an attempt out of its session.
func (d *Dispatcher) takeOut(c *Call) {
	s := c.Session
	switch c.state {
	case callQueued:
		s.waiting.Remove(&c.waiter)
	case callRefused:
		s.refused--
		s.out.End(c.slot)
	case callSent:
		s.out.End(c.slot)
	}
}

// endCall ends an attempt that is out of its session, and its call if that has no other.
func (d *Dispatcher) endCall(c *Call, o Outcome) {
	d.caller.timers.Disarm(&c.timer)
	c.state = callIdle
	switch {
	case c.Done == nil:
		d.hedgeEnded(c, o)
	case c.attempts.Live(client.Primary) && d.goesOn(c, o):
	default:
		d.over(c, o)
	}
}

// Cancel ends a call at its caller's wish, if it has not ended. If it was sent, the server is told, so that it does not start, or stops.
func (d *Dispatcher) Cancel(now clock.Time, c *Call) {
	d.now = now
	s := c.Session
	if c.state == callIdle {
		return
	}
	if c.state == callSent {
		d.tellCancelled(c)
	}
	if c.state != callParked {
		d.takeOut(c)
	}
	d.over(c, OutcomeCancelled)
	d.pump(s)
}

// tellCancelled tells the server that nobody waits for an attempt any more.
func (d *Dispatcher) tellCancelled(c *Call) {
	s, m := c.Session, wire.Cancel{Number: c.number, Slot: c.slot}
	if s.remote != 0 {
		d.tellCancel(s, m)
		return
	}
	s.untold, s.owesCancel = m, true // the server's handle is on its way here: it is told when that arrives
}

func (d *Dispatcher) tellCancel(s *Session, m wire.Cancel) {
	m.Session = s.remote
	if o := d.room(s.conn.Conn, m.Length()); o != nil {
		o.buffer.Bytes = m.Append(o.buffer.Bytes)
	}
}

// CloseSession ends all calls of a session and hands its credits back.
func (d *Dispatcher) CloseSession(now clock.Time, s *Session) {
	d.now = now
	if s.closed {
		return
	}
	s.closed = true
	s.conn.letGo(s)
	for s.waiting.Len() > 0 {
		c := s.waiting.Pop().Value
		c.state = callIdle
		d.over(c, OutcomeClosed)
	}
	s.out.Each(func(c *Call) {
		d.takeOut(c)
		if c.Done == nil {
			d.endCall(c, OutcomeClosed)
		} else {
			d.over(c, OutcomeClosed)
		}
	})
	for s.parked != nil {
		d.over(s.parked, OutcomeClosed)
	}
	if s.gate.Next() == 0 { // the server never heard of it
		d.bury(s)
		return
	}
	d.sayFarewell(s)
}

// sayFarewell tells the server that a session has ended, until it confirms that or seems to be dead: each time after twice the wait, so that it costs
// few packets to outlast what any call does. A server that is not told keeps the session for as long as the connection lives. A registration that was not
// answered is repeated first: only the answer says under which handle the server knows the session, if it does.
func (d *Dispatcher) sayFarewell(s *Session) {
	if s.farewell *= 2; s.farewell == 0 {
		s.farewell = s.conn.rto(d.cfg.RTOInitial)
	}
	if s.farewell > d.cfg.GiveUp {
		d.bury(s)
		return
	}
	d.caller.probes.Arm(&s.probe, d.now.Add(s.farewell))
	if s.remote == 0 {
		d.registerAgain(s)
		return
	}
	m := wire.Deregister{Session: s.remote, Next: wire.Number(s.gate.Next()), Seq: s.gate.Seq()}
	if o := d.room(s.conn.Conn, m.Length()); o != nil {
		o.buffer.Bytes = m.Append(o.buffer.Bytes)
	}
}

// bury frees the place of a closed session.
func (d *Dispatcher) bury(s *Session) {
	k := &d.caller
	k.probes.Disarm(&s.probe)
	index := uint32(s.local & handleIndexMask)
	k.sessions[index] = nil
	k.spare = append(k.spare, sparePlace{index, d.now})
	if s.conn.users--; s.conn.users == 0 {
		s.conn.unusedSince = d.now
	}
}

// callTimers fires what is due: expiry at the client, deadlines, retransmissions, probes.
func (d *Dispatcher) callTimers() {
	for t := d.caller.timers.Advance(d.now); t != nil; t = d.caller.timers.Advance(d.now) {
		d.callDue(t.Value)
	}
	for t := d.caller.probes.Advance(d.now); t != nil; t = d.caller.probes.Advance(d.now) {
		switch s := t.Value; {
		case s.closed:
			d.sayFarewell(s)
		case s.pace.again != 0:
			d.pump(s)
		default:
			d.armProbe(s)
		}
	}
}

func (d *Dispatcher) callDue(c *Call) {
	s := c.Session
	switch {
	case c.state == callQueued:
		// What the server tells may have moved the expiry since it was set.
		at := s.expires(c)
		if s.held.rank != 0 {
			at = s.lastChance(c)
		}
		if at = d.wake(c, at); at > d.now {
			d.caller.timers.Arm(&c.timer, at)
			return
		}
		d.finishCall(c, OutcomeExpired)
		d.pump(s)
	case c.state == callParked:
		d.unpark(c)
		d.tryAgain(c)
	case d.end(c) <= d.now:
		// One that was refused for want of a credit is no different: another copy of it may have arrived since.
		outcome := OutcomeDeadline
		if c.Deadline == 0 {
			outcome = OutcomePeerLost
		}
		d.tell(s, c, client.Answer{Lost: true})
		d.finishCall(c, outcome)
		d.pump(s)
	case c.hedgeAt != 0 && c.hedgeAt <= d.now, c.lateAt != 0 && c.lateAt <= d.now:
		d.alarm(c)
	default: // a refused one asks again, too: the limit that came with its refusal may have been lost
		d.transmit(c, true)
	}
}
