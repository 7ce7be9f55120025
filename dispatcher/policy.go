package dispatcher

import (
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// pace is the client's half of a scheme of overload control, as a session has it. Nil is none: credits alone decide.
type pace struct {
	policy client.Policy
	limits client.Limits
}

// limits are those of the session's policy; none without one.
func (s *Session) limits() client.Limits {
	if s.pace == nil {
		return client.Limits{}
	}
	return s.pace.limits
}

// OpenWith is Open with a policy of the session's own, whatever the configuration says; nil = none.
func (d *Dispatcher) OpenWith(now clock.Time, to wire.Addr, policy client.Policy) (*Session, error) {
	s, err := d.open(now, to)
	if err != nil {
		return nil, err
	}
	waiting := d.cfg.WaitingMax
	if policy != nil {
		s.pace = &pace{policy, policy.Limits()}
		if s.pace.limits.Waiting > 0 {
			waiting = min(waiting, s.pace.limits.Waiting)
		}
	}
	s.waiting = *client.NewQueue[Call](waiting)
	return s, nil
}

// admits asks the policy for a call that is submitted.
func (s *Session) admits(now clock.Time, c *Call) (ok bool) {
	c.priority = c.Priority
	if s.pace == nil {
		return true
	}
	c.priority, ok = s.pace.policy.Admit(now, c.Priority)
	return ok
}

// enqueue makes a call wait, and reports whether there was room. Its timer is for the one who finds that it could not be sent at once. Whom it pushed out of the queue ends when the new one is in it, since a
// Done may submit.
func (d *Dispatcher) enqueue(s *Session, c *Call) bool {
	var pushed *Call
	if s.limits().DropOldest && s.waiting.Len() == s.waiting.Capacity() {
		oldest := s.waiting.Oldest()
		s.waiting.Remove(oldest)
		pushed = d.endLater(nil, oldest.Value, OutcomeQueueFull)
	}
	if s.waiting.PushLevel(&c.waiter, uint8(c.level-wire.Sheddable), c.Deadline) != nil {
		return false
	}
	c.state = callQueued
	d.caller.timers.Disarm(&c.timer)
	d.endAll(pushed)
	return true
}

// expires is when a waiting call is over: by its deadline, or because the policy lets none wait for longer.
func (s *Session) expires(c *Call) clock.Time {
	at := s.expiry(c)
	if longest := s.limits().Expiry; longest > 0 {
		at = clock.Earliest(at, c.submitted.Add(longest))
	}
	return at
}

// tooLate reports whether a call has waited for longer than it may.
func (s *Session) tooLate(c *Call, now clock.Time) bool {
	at := s.expires(c)
	return at != 0 && at <= now
}

// paced asks the policy whether one more request may be sent now, and notes when to ask again.
func (d *Dispatcher) paced(s *Session) bool {
	if s.pace == nil {
		return true
	}
	ok, again := s.pace.policy.CanSend(d.now, s.out.Len())
	if !ok && again != 0 {
		s.again = max(again, d.now+1) // never in this turn, or it would not end
	}
	return ok
}

// tell has the policy learn what became of a call that was sent.
func (d *Dispatcher) tell(s *Session, c *Call, a client.Answer) {
	if s.pace != nil {
		a.Latency = d.now.Sub(c.transmitted)
		s.pace.policy.Answered(d.now, a)
	}
}
