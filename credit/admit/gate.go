package admit

import (
	"errors"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// GateConfig configures a Gate. Zero values mean the documented defaults.
type GateConfig struct {
	Door DoorConfig
	// Permits is how many may run at once; 0 = 1.
	Permits int
	// Waiting bounds how many wait; 0 = 65536. The bound in time comes first where service is learnt: this one is for memory.
	Waiting int
	// MaxWait is the longest that one may wait; 0 = what shuts the door for CriticalPlus: 1.25 of the threshold.
	MaxWait time.Duration
	// Order is the order of the queue.
	Order OrderConfig
	// CoDel refuses from a standing queue as well, with this target and interval; an interval of 0 = not.
	CoDelTarget, CoDelInterval time.Duration
}

const waitingDefault = 1 << 16

// Gate is a door with a queue behind it that is bounded in time, and a number of permits: for a server that has no queue of its own, where callers come
// with requests and are told to run, to wait or to go.
//
// Each ticket that arrives is run, waits, or is refused. Each that runs is given back by Done, once. After every Done, and at Deadline, Next is asked until it
// has nothing more: it names those that may run now and those that waited in vain. One that its caller gives up while it waits is taken out by
// Leave. So: arrived = refused at the door + done + running + waiting + refused later + left, which Audit checks.
//
// A gate has one owner, or a mutex.
type Gate struct {
	door    Door
	permits int
	waiting int
	maxWait time.Duration
	order   Order
	codel   CoDel
	line    waitingLine
	any     Method // of requests that name none
	running int
	counts  GateCounters
}

// GateCounters count since the gate was made. All that arrived were refused at the door, or are in exactly one of the others, or run or wait.
type GateCounters struct {
	Arrived     uint64 `json:"arrived_count"`
	RefusedDoor uint64 `json:"refused_door_count"`
	RefusedLate uint64 `json:"refused_late_count"` // waited in vain
	Left        uint64 `json:"left_count"`         // given up by their callers while they waited
	Done        uint64 `json:"done_count"`
}

// NewGate makes a gate.
func NewGate(c GateConfig) *Gate {
	g := &Gate{
		door: NewDoor(c.Door), permits: max(c.Permits, 1), waiting: c.Waiting, maxWait: c.MaxWait,
		order: NewOrder(c.Order), codel: NewCoDel(c.CoDelTarget, c.CoDelInterval), any: NewMethod(MethodConfig{}),
	}
	if g.waiting <= 0 {
		g.waiting = waitingDefault
	}
	if g.maxWait <= 0 {
		threshold := c.Door.Threshold
		if threshold <= 0 {
			threshold = thresholdShare * g.door.target
		}
		g.maxWait = time.Duration(ShareCriticalPlus * float64(threshold))
	}
	if expire := g.order.ExpiresAfter(); expire > 0 {
		g.maxWait = min(g.maxWait, expire)
	}
	return g
}

// Door is the gate's, for its levers and counters.
func (g *Gate) Door() *Door { return &g.door }

// Arrive decides about a request. Its Delay in a is what it met before it came here, such as in a listener's queue, and the gate adds its own; its Wait is set
// by the gate. A request that names no method is one of all those that name none. The ticket must not be at a gate: one that is, is refused and stays
// where it is.
func (g *Gate) Arrive(now clock.Time, t *Ticket, a Arrival) (Step, Verdict) {
	g.counts.Arrived++
	if a.Method == nil {
		a.Method = &g.any
	}
	a.Wait = g.queued()
	a.Delay = max(a.Delay, 0) + g.Delay(now)
	g.door.Arrive(now, a.Attempt, a.Delay)
	if t.state != ticketIdle {
		g.counts.RefusedDoor++
		return Refused, g.door.Refuse(ReasonQueueFull, 0)
	}
	v := g.door.Decide(now, &a)
	full := g.running >= g.permits || g.line.count > 0
	if v.OK && full && g.line.count >= g.waiting {
		g.door.Return(&a)
		v = g.door.Refuse(ReasonQueueFull, g.queued())
	}
	if !v.OK {
		g.counts.RefusedDoor++
		return Refused, v
	}
	t.method, t.deadline, t.work, t.since = a.Method, a.Deadline, a.expected(), now
	if full {
		t.state = ticketWaiting
		g.line.push(t)
		return Wait, v
	}
	g.run(now, t)
	return Run, v
}

func (g *Gate) run(now clock.Time, t *Ticket) {
	t.state, t.since = ticketRunning, now
	g.running++
}

// Done gives the permit of a ticket back, and reports whether it had one: a second time changes nothing. What the request took is learnt of its
// method, unless it says nothing of the next one, since it panicked or was cancelled.
func (g *Gate) Done(now clock.Time, t *Ticket, learn bool) bool {
	if t.state != ticketRunning {
		return false
	}
	if learn {
		t.method.Age.Sample(now.Sub(t.since))
	}
	t.state, t.method = ticketIdle, nil
	g.running--
	g.counts.Done++
	return true
}

// Leave takes a ticket out that waits, and reports whether it did: if not, it runs, or was refused.
func (g *Gate) Leave(t *Ticket) bool {
	if t.state != ticketWaiting {
		return false
	}
	g.drop(t)
	g.counts.Left++
	return true
}

// drop takes a ticket from the line, for good.
func (g *Gate) drop(t *Ticket) {
	g.line.remove(t)
	t.state, t.method = ticketIdle, nil
}

// Next is the next ticket that waits no longer, with Run or Refused; nil when all others wait on.
func (g *Gate) Next(now clock.Time) (*Ticket, Step, Verdict) {
	if t := g.line.oldest; t != nil && g.line.age(now) > g.maxWait {
		return g.refuse(t, ReasonWaited)
	}
	if g.running >= g.permits || g.line.count == 0 {
		return nil, Wait, Verdict{}
	}
	t := g.line.oldest
	if g.order.Newest(g.line.age(now)) {
		t = g.line.newest
	}
	waited := max(now.Sub(t.since), 0)
	switch {
	case g.door.ages && !t.method.Age.Start(now, t.since, t.deadline, g.line.count > 1):
		return g.refuse(t, ReasonExpired)
	case !g.codel.Dequeue(now, waited, g.line.count-1):
		return g.refuse(t, ReasonCoDel)
	}
	g.line.remove(t)
	g.run(now, t)
	return t, Run, Verdict{OK: true}
}

func (g *Gate) refuse(t *Ticket, reason Reason) (*Ticket, Step, Verdict) {
	g.drop(t)
	g.counts.RefusedLate++
	return t, Refused, g.door.Refuse(reason, g.queued())
}

// Deadline is when Next must be asked even if nobody is done: then the oldest has waited too long. Zero = nobody waits.
func (g *Gate) Deadline() clock.Time {
	if g.line.oldest == nil {
		return 0
	}
	return g.line.oldest.since.Add(g.maxWait + 1)
}

// Delay is the load signal: how long the oldest has waited, or how long the queued work will take, whichever is more. While the newest go first, the
// oldest say nothing about those to come.
func (g *Gate) Delay(now clock.Time) time.Duration {
	if g.order.newest {
		return g.queued()
	}
	return max(g.line.age(now), g.queued())
}

// queued is how long the queued work will take.
func (g *Gate) queued() time.Duration { return g.line.work / time.Duration(g.permits) }

// Pressure is the delay in targets: above 1 the server is overloaded.
func (g *Gate) Pressure(now clock.Time) float64 { return g.door.Pressure(g.Delay(now)) }

// SetPermits changes how many may run at once, at least one. Those that run, run on; Next is to be asked.
func (g *Gate) SetPermits(permits int) { g.permits = max(permits, 1) }

// Running is how many have a permit.
func (g *Gate) Running() int { return g.running }

// Waiting is how many wait.
func (g *Gate) Waiting() int { return g.line.count }

// Counters counts what became of the tickets.
func (g *Gate) Counters() GateCounters { return g.counts }

// Audit checks the books; it takes time in proportion to those that wait.
func (g *Gate) Audit() error {
	c := &g.counts
	if sum := c.RefusedDoor + c.RefusedLate + c.Left + c.Done + uint64(g.running+g.line.count); sum != c.Arrived {
		return fmt.Errorf("admit: %d tickets arrived, %d are accounted for: %+v, %d run, %d wait", c.Arrived, sum, *c, g.running, g.line.count)
	}
	if c.RefusedDoor+c.RefusedLate != g.door.counters.RefusedAll() {
		return fmt.Errorf("admit: the gate refused %d and %d, the door counts %d", c.RefusedDoor, c.RefusedLate, g.door.counters.RefusedAll())
	}
	if g.running < 0 {
		return errors.New("admit: more permits given back than taken")
	}
	count, work := 0, time.Duration(0)
	for t := g.line.oldest; t != nil; t = t.newer {
		if t.state != ticketWaiting || count > g.line.count {
			return errors.New("admit: the line holds a ticket that does not wait, or is a ring")
		}
		count++
		work += t.work
	}
	if count != g.line.count || work != g.line.work {
		return fmt.Errorf("admit: %d wait with %v of work, counted are %d with %v", count, work, g.line.count, g.line.work)
	}
	return nil
}
