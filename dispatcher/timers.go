package dispatcher

import (
	"github.com/stillwater-rpc/stillwater/credit/client"
)

// callTimers fires what is due: expiry at the client, deadlines, retransmissions, probes.
func (d *Dispatcher) callTimers() {
	for t := d.caller.timers.Advance(d.now); t != nil; t = d.caller.timers.Advance(d.now) {
		d.callDue(t.Value)
	}
	for t := d.caller.probes.Advance(d.now); t != nil; t = d.caller.probes.Advance(d.now) {
		switch s := t.Value; {
		case s.closed:
			d.sayFarewell(s)
		case s.again != 0:
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
		if s.heldRank != 0 {
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
		} else if c.state == callSent { // a refusal was an answer, and in time
			s.conn.late.Missed(s.conn.target)
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
