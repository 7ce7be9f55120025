package dispatcher

import (
	"errors"

	"github.com/stillwater-rpc/stillwater/credit/client"
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
	if call.Deadline != 0 {
		s.conn.late.Met(s.conn.target)
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
