package dispatcher

import (
	"errors"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// caller is the state of the calling side.
type caller struct {
	conns    map[wire.Addr]*dialed
	byIndex  []*dialed  // the same by the index of their connections, and, until an index is used again, those that were
	sessions []*Session // by the index in our handles; 0 is never used
	// generations of the handles, by index.
	generations []uint8
	spare       []sparePlace // longest free first
	hedges      *Call        // spare ones, by ending
	timers      *clock.Wheel[Call]
	probes      *clock.Wheel[Session]
}

// sparePlace is a place in caller.sessions that was used before.
type sparePlace struct {
	index uint32
	since clock.Time
}

// Timers of calls are hundreds of microseconds away: a revolution of 32 ms at 8 us a slot keeps nearly all of them one look away.
const (
	wheelTick  = 8 * time.Microsecond
	wheelSlots = 4096
)

func newCaller() caller {
	return caller{
		conns: make(map[wire.Addr]*dialed), sessions: make([]*Session, 1), generations: make([]uint8, 1),
		timers: clock.NewWheel[Call](wheelTick, wheelSlots), probes: clock.NewWheel[Session](wheelTick, wheelSlots),
	}
}

// dialed is what a client knows of a server, over all its sessions there.
type dialed struct {
	*session.Conn
	users int
	// unusedSince is when the last session ended; the connection outlives it for a while.
	unusedSince clock.Time
	doubtful    bool            // the peer that gave the token has forgotten us, or is another boot
	residence   session.RTT     // packet queue + request queue + service, as the server says
	service     client.Learnt   // its handlers' part
	standing    client.Standing // its queues', that is there all the time
	late        client.Late     // what its answers take beside all that
	target      time.Duration   // the server's target delay
	threshold   time.Duration   // the server's drop threshold
	invitation
}

// dialedBy is what is known of the server at the other end of a connection; nil = it was not dialed. Each answer asks, so it is not found by its address.
func (k *caller) dialedBy(c *session.Conn) *dialed {
	if i := int(c.Index()); i < len(k.byIndex) && k.byIndex[i] != nil && k.byIndex[i].Conn == c {
		return k.byIndex[i]
	}
	return nil
}

func (k *caller) indexed(i uint32, at *dialed) {
	for int(i) >= len(k.byIndex) {
		k.byIndex = append(k.byIndex, nil)
	}
	k.byIndex[i] = at
}

// Session is one virtual client: it holds credits of one server. All its methods belong to the dispatcher's owner.
type Session struct {
	// A call that can be sent at once reads and writes what is in these four cache lines, up to the queue's length. Of a million sessions each call finds its own out of
	// every cache, so what it touches is what it costs.
	conn     *dialed
	local    wire.SessionID // ours: what the server's answers carry
	remote   wire.SessionID // the server's; 0 = not registered
	gate     client.Gate
	refused  int32 // of the outstanding: beyond the limit
	closed   bool
	heldRank uint8 // of those that are held back; 0 = it is not
	// The call that registers the session was cancelled before the server's handle was known: the server is to be told.
	owesCancel bool
	guard      *client.Guard // nil = calls are made once
	out        session.Outstanding[Call]
	pace       *pace
	again      clock.Time // when to see whether more may be sent; zero = nothing is held back, or an answer is waited for
	probe      clock.Timer[Session]
	waiting    client.Queue[Call]

	held      held
	alternate *Session // where hedges go; nil = here
	parked    *Call    // calls that wait for their next attempt, or their hedge; by parkedNext
	untold    wire.Cancel
	farewell  time.Duration // how long its end was waited for to be confirmed, when it was last told; zero = it was not told yet
}

// ErrTooManySessions says that as many sessions are open as may be.
var ErrTooManySessions = errors.New("too many sessions")

// ErrUnusableAddress says that nobody can be dialed there.
var ErrUnusableAddress = errors.New("unusable address: unspecified, or port 0")

// Open makes a session with the server at an address, with a policy of the configuration. Nothing is sent until its first call.
func (d *Dispatcher) Open(now clock.Time, to wire.Addr) (*Session, error) {
	var policy client.Policy
	if d.cfg.ClientPolicy != nil {
		policy = d.cfg.ClientPolicy()
	}
	return d.OpenWith(now, to, policy)
}

func (d *Dispatcher) open(now clock.Time, to wire.Addr) (*Session, error) {
	d.now = now
	if to.Port == 0 || to.AddrPort().Addr().IsUnspecified() {
		return nil, ErrUnusableAddress
	}
	place, ok := d.freePlace()
	if !ok {
		return nil, ErrTooManySessions
	}
	conn := d.caller.conns[to]
	if conn == nil {
		c, err := d.conns.Dial(to, now)
		if err != nil {
			return nil, err
		}
		d.place(c)
		conn = &dialed{Conn: c}
		d.caller.conns[to] = conn
		d.caller.indexed(c.Index(), conn)
	}
	conn.users++
	s := &Session{conn: conn}
	d.takePlace(s, place)
	s.reset(d)
	s.probe.Value = s
	return s, nil
}

// freePlace finds a place for one more session. A handle has 8 bits of generation, and one that comes back while packets to its
// last owner may be under way would get their answers; so a place rests for as long as a packet lives.
func (d *Dispatcher) freePlace() (index uint32, ok bool) {
	k := &d.caller
	used := len(k.sessions) - 1
	if used-len(k.spare) >= d.cfg.SessionsMax {
		return 0, false
	}
	if len(k.spare) > 0 && d.now.Sub(k.spare[0].since) > d.cfg.PacketLifetime {
		return k.spare[0].index, true
	}
	return uint32(used + 1), used < session.PeersMax
}

// takePlace puts the session where freePlace said.
func (d *Dispatcher) takePlace(s *Session, index uint32) {
	k := &d.caller
	if int(index) == len(k.sessions) {
		k.sessions, k.generations = append(k.sessions, nil), append(k.generations, 0)
	} else {
		k.spare = k.spare[1:]
	}
	k.sessions[index] = s
	s.local = wire.SessionID(index)
	d.nextHandle(s)
}

// nextHandle gives a session another handle at its place.
func (d *Dispatcher) nextHandle(s *Session) {
	index := uint32(s.local & handleIndexMask)
	d.caller.generations[index]++
	s.local = wire.SessionID(uint32(d.caller.generations[index])<<handleIndexBits | index)
}

const (
	handleIndexBits = 24
	handleIndexMask = 1<<handleIndexBits - 1
)

// bySession returns the session that a message is for, closed or not, or nil.
func (d *Dispatcher) bySession(c *session.Conn, id wire.SessionID) *Session {
	index := int(id & handleIndexMask)
	if index >= len(d.caller.sessions) {
		return nil
	}
	if s := d.caller.sessions[index]; s != nil && s.local == id && s.conn.Conn == c {
		return s
	}
	return nil
}

// byHandle returns the live session that an answer is for, or nil.
func (d *Dispatcher) byHandle(c *session.Conn, id wire.SessionID) *Session {
	if s := d.bySession(c, id); s != nil && !s.closed {
		return s
	}
	return nil
}

// reset makes the session unregistered: it may send one request, which registers it.
func (s *Session) reset(d *Dispatcher) {
	s.remote, s.refused, s.owesCancel = 0, 0, false
	s.gate = client.NewGate(0)
	s.out = session.Outstanding[Call]{}
	s.out.SetLimit(d.cfg.SlotsMax)
}

// Waiting is the number of calls that wait for a credit.
func (s *Session) Waiting() int { return s.waiting.Len() }

// Outstanding is the number of calls that wait for an answer.
func (s *Session) Outstanding() int { return s.out.Len() }

// Unused is the number of credits not spent.
func (s *Session) Unused() uint64 { return s.gate.Unused() }

// Submit starts a call. It ends by Done, which may be called before Submit returns, and so may that of another call of the session.
func (d *Dispatcher) Submit(now clock.Time, c *Call) {
	d.now = now
	s := c.Session
	c.Outcome, c.state, c.Retransmissions = OutcomeNone, callIdle, 0
	c.attempts, c.before, c.replyBase, c.hedge, c.RetryAfter = client.Attempts{}, OutcomeNone, len(c.Reply), nil, 0
	c.submitted, c.transmitted, c.heard = now, 0, now
	c.timer.Value, c.waiter.Value = c, c
	c.level, c.rank = s.conn.grade(d.stats.Calls, c.Criticality)
	d.stats.Calls++
	switch {
	case s.closed:
		d.finishCall(c, OutcomeClosed)
		return
	case len(c.Payload) > d.RequestMax():
		d.finishCall(c, OutcomeTooLarge)
		return
	case !s.admits(now, c):
		d.finishCall(c, OutcomeThrottled)
		return
	case s.guard != nil && !d.begin(c):
		return
	}
	d.enter(c)
}

// wake is when a waiting call is looked at again: when it expires, or, without a deadline, when it is given up.
func (d *Dispatcher) wake(c *Call, expires clock.Time) clock.Time {
	if expires == 0 {
		return c.heard.Add(d.cfg.GiveUp)
	}
	return expires
}

// expiry is the last instant at which sending makes sense. A call that says it is critical waits to the end of its slack, however full the server is kept: if it gave
// up, those that come instead would be of lower levels.
func (s *Session) expiry(c *Call) clock.Time {
	e := s.conn.estimates()
	if c.Criticality < wire.Critical {
		e.Standing = s.conn.standing.Delay()
	}
	return client.ExpiresAt(c.submitted, c.Deadline, &e)
}

// estimates are what is known of the server, without the queue that stands there.
func (c *dialed) estimates() client.Estimates {
	return client.Estimates{RTT: c.RTT.Smoothed(), Target: c.target, Service: c.service.Mean(), Late: c.late.By()}
}

// RequestMax is the largest payload of a call in bytes: what fits beside the largest header and an open.
func (d *Dispatcher) RequestMax() int {
	return d.port.PayloadMax() - wire.OverheadBytes - wire.OpenTokenBytes - wire.RequestBytes - requestOptionalBytes
}

// requestOptionalBytes is room for budget, class and the length of metadata.
const requestOptionalBytes = 4 + 4 + 2

// pump sends what the session's credits and slots allow: first what was refused, then what waits, the most critical first, and of these the earliest deadline.
func (d *Dispatcher) pump(s *Session) {
	if s.refused > 0 {
		s.out.Each(func(c *Call) {
			if c.state == callRefused && s.covers(c) {
				s.refused--
				c.state, c.unasked = callSent, false
				d.transmit(c, true)
			}
		})
	}
	s.gate.Expire(d.now)
	s.again = 0
	for s.waiting.Len() > 0 && s.gate.CanSend() && !s.out.Full() && d.paced(s) && !s.yields() {
		d.send(s, s.waiting.Pop().Value, s.gate.Take(), false)
	}
	d.followInvitation(s)
	d.armProbe(s)
}

// covers reports whether the limit is above the number of a call that was refused for it.
func (s *Session) covers(c *Call) bool { return uint64(c.number) < s.gate.Limit() }

// transmit puts the call's request into a packet and sets its timer.
func (d *Dispatcher) transmit(c *Call, again bool) {
	s := c.Session
	m := wire.Request{
		Register: s.remote == 0, Retransmission: again, Unasked: c.unasked && s.remote != 0, Session: s.remote, Number: c.number,
		Next: wire.Number(s.gate.Next()), Method: c.Method, Seq: s.gate.Seq(), Slot: c.slot, Demand: s.demand(),
		Criticality: c.Criticality, Attempt: c.attempt, AttemptsLeft: c.left, Priority: c.priority, Payload: c.Payload,
	}
	if m.Register {
		m.Session = s.local
	}
	if c.Deadline != 0 {
		m.HasBudget, m.Budget = true, max(c.Deadline.Sub(d.now), 0)
	}
	if o := d.room(s.conn.Conn, m.Length()); o != nil {
		o.buffer.Bytes = m.Append(o.buffer.Bytes)
	}
	if s.conn.HasToken && !s.conn.Established() {
		c.proven++
	}
	if again {
		c.Retransmissions++
		d.stats.Retransmissions++
		c.interval = min(2*c.interval, rtoMax)
		d.askIfSilent(s)
	} else {
		c.interval = s.conn.rto(d.cfg.RTOInitial)
		d.stats.RequestsSent++
	}
	d.armCall(c)
}

// armCall sets the timer of a sent call: to its next retransmission, or its end if that is earlier.
func (d *Dispatcher) armCall(c *Call) {
	c.resend = d.now.Add(c.interval)
	d.armTimer(c)
}

// armTimer sets the timer of a sent call to whatever comes first.
func (d *Dispatcher) armTimer(c *Call) {
	alarm := clock.Earliest(c.hedgeAt, c.lateAt)
	d.caller.timers.Arm(&c.timer, clock.Earliest(clock.Earliest(c.resend, d.end(c)), alarm))
}

// end is when a sent call is over without an answer.
func (d *Dispatcher) end(c *Call) clock.Time {
	if c.Deadline != 0 {
		return c.Deadline
	}
	return c.heard.Add(d.cfg.GiveUp)
}

// rto is how long an answer may take before it is asked for again: a round trip, and whatever the server says requests stay there,
// but at least what they may stay there. It is not a multiple of the bare round trip: under overload that would resend what is
// only queued.
func (c *dialed) rto(initial time.Duration) time.Duration {
	if c.RTT.Smoothed() == 0 {
		return initial
	}
	stay := max(c.residence.Bound(), c.threshold+c.service.Mean())
	return min(c.RTT.Bound()+stay+settleMargin, rtoMax)
}
