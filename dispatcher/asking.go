package dispatcher

import (
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/wire"
)

// armProbe keeps the probe timer running while the session has demand, nothing outstanding and no credit: the one
// state that no answer would end. A call that was refused is demand, and waits for no answer. The same timer ends what a policy holds
// back: then there is a credit, and nothing to probe for.
func (d *Dispatcher) armProbe(s *Session) {
	if s.closed {
		return
	}
	if s.again != 0 {
		d.caller.probes.Arm(&s.probe, s.again)
		return
	}
	demand, outstanding := s.wants(), s.out.Len()-int(s.refused)
	if demand == 0 || outstanding > 0 || s.gate.CanSend() {
		d.caller.probes.Disarm(&s.probe)
		return
	}
	floor := s.conn.RTT.Smoothed()
	if s.limits().Quiet {
		floor = client.ProbeTimeMax
	}
	s.gate.SetRTT(floor)
	if !s.gate.ProbeDue(d.now, demand, outstanding) {
		d.caller.probes.Arm(&s.probe, s.gate.NextProbe())
		return
	}
	if s.remote == 0 {
		d.stats.ProbesSent++
		d.registerAgain(s)
	} else {
		d.ask(s)
	}
	d.caller.probes.Arm(&s.probe, s.gate.NextProbe())
}

// askIfSilent asks for a credit beside what is outstanding. Its answers would bring one, but none has come for a lease, and one was asked for again: what runs may run for long, or stand in a
// long queue, and the calls behind it need not wait for that. It is asked when a call begins to wait, and whenever an answer is asked for again.
func (d *Dispatcher) askIfSilent(s *Session) {
	if s.gate.Silent(d.now) && !s.out.Full() && s.repeats() && s.gate.ProbeDue(d.now, s.wants(), 0) {
		d.ask(s)
	}
}

// repeats reports whether any outstanding request was sent again.
func (s *Session) repeats() (any bool) {
	s.out.Each(func(c *Call) { any = any || c.Retransmissions > 0 })
	return any
}

// ask tells the server how much the session wants to send. One that is being registered has said so in its registration.
func (d *Dispatcher) ask(s *Session) {
	if s.remote == 0 {
		return
	}
	d.stats.ProbesSent++
	m := wire.Probe{Session: s.remote, Next: wire.Number(s.gate.Next()), Seq: s.gate.Seq(), Demand: s.demand()}
	if o := d.room(s.conn.Conn, m.Length()); o != nil {
		o.buffer.Bytes = m.Append(o.buffer.Bytes)
	}
}

// registerAgain repeats a registration whose call has ended without an answer: number 0 on slot 0, with nothing left of its
// budget, so that it cannot run if the server sees it for the first time. Whatever the answer, it brings the server's handle and a limit.
func (d *Dispatcher) registerAgain(s *Session) {
	m := wire.Request{
		Register: true, Retransmission: true, Session: s.local, Next: wire.Number(s.gate.Next()), Seq: s.gate.Seq(),
		Demand: s.demand(), HasBudget: true,
	}
	if o := d.room(s.conn.Conn, m.Length()); o != nil {
		o.buffer.Bytes = m.Append(o.buffer.Bytes)
	}
}

// wants is how many calls want a credit: those that wait, and those that were sent in vain.
func (s *Session) wants() int { return s.waiting.Len() + int(s.refused) }

// demand is what the session tells the server of that.
func (s *Session) demand() uint16 { return uint16(min(s.wants(), 1<<16-1)) }
