package dispatcher

import (
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

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
