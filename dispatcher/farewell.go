package dispatcher

import (
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

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
