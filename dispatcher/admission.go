package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// Admission is what stands at the server's door and at its queue besides the scheme of overload control: see package admit. Zero values mean the documented
// defaults, with which a client that says neither criticality nor attempt notices nothing of it.
type Admission struct {
	// Levels are the shares of the drop threshold from which the sheddable levels are refused, and what each level keeps. What is Critical, or says
	// nothing, is the scheme's to refuse; CriticalPlus it sees with a shorter delay.
	Levels admit.LevelsConfig
	// Tail refuses what leaves no room for its method's p99, not only what leaves none for the mean: see admit.Age.
	Tail bool
	// Order is the order of the request queue; it is of no effect in a shell that says itself which request to Start.
	Order admit.OrderConfig
	// CoDelTarget and CoDelInterval refuse from a standing queue; an interval of 0 = not.
	CoDelTarget, CoDelInterval time.Duration
	// ClientRate and ClientBurst bound the units a second that each connection may have let in; a rate of 0 = any, a burst of 0 = a tenth of a second of it.
	ClientRate, ClientBurst int
	// Warmup is how long it takes to be warm, from the first request; 0 = it is.
	Warmup time.Duration
	// Headroom is the share of the CPUs that is kept free, 0 to 1.
	Headroom float64
	// Seed decides who is refused where a share is.
	Seed uint64
}

// admission is the state of it.
type admission struct {
	door    admit.Door
	order   admit.Order
	codel   admit.CoDel
	parked  int // requests that wait for a bound of their methods
	clients []clientBucket
}

// clientBucket is of the connection that has this index now.
type clientBucket struct {
	of     wire.ConnectionID
	bucket admit.Bucket
}

func newAdmission(cfg *ServeConfig) admission {
	a := cfg.Admission
	all := admission{
		door: admit.NewDoor(admit.DoorConfig{
			Target: cfg.TargetDelay, Threshold: cfg.DropThreshold, Levels: a.Levels, Scheme: true, NoAge: true, Warmup: a.Warmup, CPUs: cfg.Parallel, Seed: a.Seed,
		}),
		order: admit.NewOrder(a.Order), codel: admit.NewCoDel(a.CoDelTarget, a.CoDelInterval),
	}
	all.door.Headroom(a.Headroom)
	return all
}

// refusal is what a reject says that is none of the door's.
func (d *Dispatcher) refusal(reason wire.RejectReason) session.Refusal {
	advice := wire.AdviceNone
	switch reason {
	case wire.RejectOverloaded:
		advice = wire.AdviceDoNotRetry
	case wire.RejectExpired, wire.RejectDraining:
		advice = wire.Advice(d.server.door.Advice(admit.ReasonExpired))
	}
	return session.Refusal{Reason: reason, Advice: advice}
}

// verdict is the door's, as a reject says it.
func verdict(v admit.Verdict) session.Refusal {
	reason := wire.RejectOverloaded
	switch v.Reason {
	case admit.ReasonDraining:
		reason = wire.RejectDraining
	case admit.ReasonExpired:
		reason = wire.RejectExpired
	case admit.ReasonClientRate, admit.ReasonMethodRate:
		reason = wire.RejectRateLimited
	}
	return session.Refusal{Reason: reason, Advice: wire.Advice(v.Advice), RetryAfter: v.RetryAfter}
}

// admits asks the door, and behind it the scheme and the bound of the queue, for a request that can be answered in time.
func (d *Dispatcher) admits(c *session.Conn, m *Method, r *wire.Request, deadline clock.Time, delay time.Duration, invited bool) (no session.Refusal, ok bool) {
	s := &d.server
	a := admit.Arrival{
		Delay: max(delay, m.parkedDelay(d.now)), Deadline: deadline, Level: admit.Level(r.Criticality), Attempt: r.Attempt,
		Method: &m.admit, Client: d.clientBucket(c),
	}
	if v := s.door.Decide(d.now, &a); !v.OK {
		return verdict(v), false
	}
	seen := s.door.Seen(&a)
	scheme := invited || s.ledger.Admit(credit.Arrival{Now: d.now, Delay: seen, Priority: r.Priority}) // which was asked before it invited
	if scheme && s.queue.live+s.parked < s.QueueMax {
		return session.Refusal{}, true
	}
	s.door.Return(&a)
	no = d.refusal(wire.RejectOverloaded)
	no.RetryAfter = max(a.Delay-s.TargetDelay, 0)
	return no, false
}

// inTime reports whether a request that arrives now can be answered by its deadline; zero = it has none.
func (d *Dispatcher) inTime(m *Method, deadline clock.Time) bool {
	if deadline == 0 {
		return true
	}
	wait := max(d.mayWait(), m.parkedWork())
	if d.server.Admission.Tail {
		return m.admit.Age.Admit(d.now, deadline.Add(-d.rtt.Smoothed()), wait)
	}
	if deadline.Sub(d.now) <= wait+d.needs(m) {
		m.admit.Age.Refused()
		return false
	}
	return true
}

// stillInTime reports whether a request that was taken from the queue can be answered by its deadline.
func (d *Dispatcher) stillInTime(req *Request) bool {
	if req.Deadline == 0 {
		return true
	}
	if d.server.Admission.Tail {
		return req.Method.admit.Age.Start(d.now, req.arrival, req.Deadline.Add(-d.rtt.Smoothed()), d.server.queue.live > 0)
	}
	if req.Deadline.Sub(d.now) < d.needs(req.Method) {
		req.Method.admit.Age.Refused()
		return false
	}
	return true
}

// clientBucket is the bucket of a connection; nil = it may send at any rate. One whose index another had before begins with a full one.
func (d *Dispatcher) clientBucket(c *session.Conn) *admit.Bucket {
	s := &d.server
	if s.Admission.ClientRate <= 0 {
		return nil
	}
	for int(c.Index()) >= len(s.clients) {
		s.clients = append(s.clients, clientBucket{})
	}
	b := &s.clients[c.Index()]
	if b.of != c.Local {
		burst := s.Admission.ClientBurst
		if burst <= 0 {
			burst = s.Admission.ClientRate / 10
		}
		*b = clientBucket{c.Local, admit.NewBucket(s.Admission.ClientRate, burst)}
	}
	return &b.bucket
}

// take takes the next request to start from the queues, or nil. What finds as many of its method in service as may be waits in the method's own queue,
// so that it holds up no other.
func (d *Dispatcher) take() *Request {
	s := &d.server
	for _, m := range s.bounded {
		if m.parked.live > 0 && !m.admit.InService.Full() {
			s.parked--
			return m.parked.pop()
		}
	}
	for {
		var req *Request
		if s.order.Newest(s.queue.age(d.now)) {
			req = s.queue.popNewest()
		} else {
			req = s.queue.pop()
		}
		if req == nil || !req.Method.admit.InService.Full() {
			return req
		}
		req.Method.parked.push(req)
		s.parked++
	}
}

// expireTail refuses those that newest-first would leave behind for too long.
func (d *Dispatcher) expireTail() {
	s := &d.server
	for s.order.Expired(s.queue.age(d.now)) {
		s.door.Refuse(admit.ReasonWaited, 0)
		d.refuseQueued(s.queue.pop(), credit.Rejection, wire.RejectOverloaded)
	}
}

// tailExpires is when expireTail has something to do; zero = never.
func (d *Dispatcher) tailExpires() clock.Time {
	s := &d.server
	if s.order.ExpiresAfter() == 0 || s.queue.live == 0 {
		return 0
	}
	return s.queue.oldest().enqueued.Add(s.order.ExpiresAfter() + 1)
}

// parkedDelay is the delay that the method's own bound makes: the age of the oldest that waits for it, or how long those that do will take.
func (m *Method) parkedDelay(now clock.Time) time.Duration {
	if m.parked.live == 0 {
		return 0
	}
	return max(m.parked.age(now), m.parkedWork())
}

// parkedWork is how long those that wait for the method's own bound will take.
func (m *Method) parkedWork() time.Duration {
	if m.parked.live == 0 {
		return 0
	}
	return m.parked.work / time.Duration(m.admit.InService.Max())
}
