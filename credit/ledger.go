package credit

import (
	"errors"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// ErrTooManySessions is returned by Register when the ledger is full.
var ErrTooManySessions = errors.New("credit: too many sessions")

// Kind is how a request ended. Every kind is an answer and closes the request.
type Kind uint8

// The kinds of answer. Only a rejection is treated differently: it says that the server has too much to do, so it does
// not leave a credit behind where the floor of the law would.
const (
	Success   Kind = iota
	Failure        // the handler failed or panicked
	Expired        // its budget ran out at the server
	Cancelled      // the client withdrew it: unstarted, or when its handler returned
	Rejection      // refused at the door
)

const (
	chunkShift = 12
	chunkSize  = 1 << chunkShift
	chunkMask  = chunkSize - 1
)

// chunk is a piece of the slab. The slab grows by chunks, so that growing never copies, and an entry never moves.
type chunk [chunkSize]entry

// Ledger keeps the credits of all sessions. Every event is O(1) and allocates nothing, except the Register that opens
// a new chunk. One owner; not safe for concurrent use. An event for an index that is not registered does nothing.
type Ledger struct {
	control Controller
	inviter Inviter // nil = the scheme invites nobody
	config  Config
	slots   uint64

	chunks []*chunk
	used   Session // entries below this index were handed out at least once; entry 0 never is
	free   Session // list of entries that were given back

	issued     uint64 // C_issued
	pending    uint64 // sum of p
	active     uint64 // n_c
	registered uint64
	weights    uint64 // sum of the weights of those in n_c

	wanting, waiting queue                 // drained sessions: with known demand, and without
	woken            [weightClasses]uint64 // those that were woken up and not drained since, by weight
	wakes            int                   // drained sessions that may still be woken up before the next update
	busy             bool                  // something happened since the last update
	load             Load                  // the counts since then
	cursor           Session
	counters         Counters
}

// NewLedger makes an empty ledger that asks control for pool and windows, and tells it the number of sessions.
func NewLedger(config Config, control Controller) *Ledger {
	if config.MaxSessions <= 0 {
		config.MaxSessions = DefaultMaxSessions
	}
	if config.Lease <= 0 {
		config.Lease = DefaultLease
	}
	if config.PacketLife <= 0 {
		config.PacketLife = DefaultPacketLife
	}
	if config.DrainedPerUpdate <= 0 {
		config.DrainedPerUpdate = DefaultDrainedPerUpdate
	}
	inviter, _ := As[Inviter](control)
	if inviter != nil && inviter.Invited(0) == 0 {
		inviter = nil
	}
	return &Ledger{
		control: control,
		inviter: inviter,
		config:  config,
		slots:   slotsOrDefault(config.Slots),
		used:    1,
		cursor:  1,
		wakes:   config.DrainedPerUpdate,
	}
}

// Register opens a session. It holds the one credit that the request inside the registration spends: limit 1, seq 0.
// Report that request with Heard and Arrive.
func (l *Ledger) Register(now clock.Time) (Session, error) {
	l.check()
	if l.registered >= uint64(l.config.MaxSessions) {
		return 0, ErrTooManySessions
	}
	s := l.free
	if s != 0 {
		l.free = l.slot(s).next
	} else {
		s = l.used
		if int(s>>chunkShift) == len(l.chunks) {
			l.chunks = append(l.chunks, new(chunk))
		}
		l.used++
	}
	*l.slot(s) = entry{limit: 1, seen: now, demandAt: now, flags: flagRegistered, weight: 1}
	l.issued++
	l.registered++
	l.count(1)
	l.weights++
	l.check()
	return s, nil
}

// SetWeight says what share of the credits a session gets where they are scarce: weight times that of a session with weight 1, which all have when
// they register. It is rounded down to a power of two; zero counts as 1.
func (l *Ledger) SetWeight(s Session, weight uint8) {
	l.check()
	if e := l.at(s); e != nil {
		weight = 1 << class(max(weight, 1))
		if !e.is(flagLapsed) {
			l.weights += uint64(weight) - uint64(e.weight) // modulo 2^64, if it is less
		}
		listed := e.is(flagListed)
		l.unlist(e)
		l.asleep(e)
		e.weight = weight
		if listed {
			l.list(s, e)
		}
	}
	l.check()
}

// Deregister closes a session: its unused credits go back to the pool, and its pending requests leave the sums. They
// must not be answered here any more.
func (l *Ledger) Deregister(_ clock.Time, s Session) {
	l.check()
	e := l.at(s)
	if e == nil {
		return
	}
	l.unlist(e)
	l.asleep(e)
	l.issued -= e.window()
	l.pending -= uint64(e.pending)
	l.registered--
	if !e.is(flagLapsed) {
		l.count(-1)
		l.weights -= uint64(e.weight)
	}
	*e = entry{next: l.free}
	l.free = s
	l.check()
}

// Heard reports a packet of the client, before its requests: next is the number that its next request will have,
// applied the seq of the last credit update that it has seen, demand what it has queued beside what it sent. newer is
// whether no later packet was seen before, and decides whether the demand counts. Renews the lease.
//
// A next that no limit ever allowed is ignored and counted: no lie moves sent beyond what was granted.
func (l *Ledger) Heard(now clock.Time, s Session, next uint64, applied uint32, demand uint16, newer bool) {
	l.check()
	e := l.at(s)
	if e == nil {
		return
	}
	e.ungrace(now, l.config.PacketLife)
	l.pass(e, next)
	// Only now: what this packet's sender had sent before it saw the newer limit is in this packet's next.
	if !e.supersede(applied) {
		l.counters.Future++
	}
	if newer {
		l.demand(now, s, e, demand)
	}
	l.alive(now, e)
	l.check()
}

// pass raises sent to next. Credits below it are spent or lost; a limit below it, revoked too late, is raised along:
// what was sent cannot be unsent.
//
// After a lapse of more than one packet life the numbers beyond the limit are passed too, or the client, whose numbers
// never go back, could not use its next credit. But they give no right to run: they are barred until the next
// change of the limit. The client is told a limit below them, so that it asks for a credit before it sends those requests anew.
func (l *Ledger) pass(e *entry, next uint64) {
	switch {
	case next <= e.sent:
	case next <= e.limit:
		l.issued -= next - e.sent
		e.sent = next
	case next-e.limit <= uint64(e.oldOver):
		bar := uint16(0)
		if e.is(flagBarred) {
			bar = e.bar + uint16(next-e.limit)
		}
		l.issued -= e.unused()
		e.setLimit(next)
		e.sent, e.bar = next, bar
	default:
		l.counters.Ahead++
	}
}

// demand notes a newer demand, clamped to what the session could ever use, and moves a drained session accordingly.
func (l *Ledger) demand(now clock.Time, s Session, e *entry, demand uint16) {
	known := e.demand != 0
	e.demand = uint16(min(uint64(demand), l.slots))
	e.demandAt = now
	if e.is(flagListed) && known != (e.demand != 0) {
		l.unlist(e)
		l.list(s, e)
	}
}

// alive renews the lease, and counts a session again that had lapsed.
func (l *Ledger) alive(now clock.Time, e *entry) {
	e.seen = now
	if e.is(flagLapsed) {
		e.flags &^= flagLapsed
		l.count(1)
		l.weights += uint64(e.weight)
	}
}

// Arrive reports a request that is no duplicate, after Heard, and decides on possession: true if its number lies below
// the highest limit that the client may still believe in. Then it is pending until Answer. Otherwise nothing has
// changed, and the caller refuses it with the session's Limit.
func (l *Ledger) Arrive(now clock.Time, s Session, number uint64) bool {
	l.check()
	e := l.at(s)
	if e == nil {
		return false
	}
	e.ungrace(now, l.config.PacketLife)
	allowed := e.told()
	if !e.is(flagBarred) {
		allowed += uint64(e.oldOver)
	}
	if number >= allowed {
		l.counters.Refused++
		return false
	}
	if uint64(e.pending) >= l.slots { // late ones on top of a full window: more than its slots no session may have
		l.counters.Full++
		return false
	}
	l.pass(e, number+1)
	e.pending++
	l.pending++
	l.issued++
	l.busy = true
	l.load.Arrivals++
	l.alive(now, e)
	l.unlist(e) // its answer will carry the credit
	l.check()
	return true
}

// Answer closes one pending request of s and returns the limit that the answer carries. See the package comment for
// the law. To a session whose lease has run out nothing is granted.
func (l *Ledger) Answer(now clock.Time, s Session, kind Kind) (limit uint64, seq uint32) {
	l.check()
	e := l.at(s)
	if e == nil {
		return 0, 0
	}
	if e.pending == 0 {
		l.counters.Misused++
		return e.told(), e.seq
	}
	window, pending := e.window(), uint64(e.pending)-1
	granted := pending
	if !e.is(flagLapsed) {
		granted = l.control.Window(Holding{
			Issued:   l.issued,
			Window:   window,
			Pending:  pending,
			Demand:   uint64(e.demand),
			Rejected: kind == Rejection,
			Weight:   uint64(e.weight),
			Weights:  l.weights,
			Scarce:   l.wanting.count > 0,
			Weighted: l.weights != l.active,
		})
		granted = max(min(granted, l.slots), pending)
		e.seen = now
	}
	e.pending--
	l.pending--
	l.busy = true
	if kind == Rejection {
		l.load.Rejections++
	} else {
		l.load.Answers++
	}
	l.issued = l.issued - window + granted
	e.setLimit(e.sent + granted - pending)
	l.settle(s, e)
	l.check()
	return e.told(), e.seq
}

// settle lists a session that was left with nothing, and takes one off the list that was given something.
func (l *Ledger) settle(s Session, e *entry) {
	switch {
	case e.unused() > 0:
		l.unlist(e)
	case e.pending == 0 && !e.is(flagLapsed):
		l.list(s, e)
	}
}

// UpdateDue reports whether Update would change something at now.
func (l *Ledger) UpdateDue(now clock.Time) bool { return l.control.UpdateDue(now) }

// Update lets the controller adapt the pool, at most once per period, and reports whether it was due. After it a
// number of drained sessions may be woken up.
func (l *Ledger) Update(now clock.Time, signal Signal) bool {
	l.check()
	load := l.load
	load.Issued, load.Pending, load.Drained = l.issued, l.pending, l.wanting.count+l.waiting.count
	load.Active = l.busy || l.pending > 0 || load.Drained > 0
	if !l.control.Update(now, signal, load) {
		return false
	}
	l.busy, l.load = false, Load{}
	l.wakes = l.config.DrainedPerUpdate
	l.check()
	return true
}

// Admit decides at the door, for a request that Arrive has let in; if false, it is to be answered by a rejection.
func (l *Ledger) Admit(a Arrival) bool { return l.control.Admit(a) }

// Asking reports whether sessions get credits for what they ask for alone.
func (l *Ledger) Asking() bool { return l.config.Asking }

// Controller is the scheme that the ledger asks.
func (l *Ledger) Controller() Controller { return l.control }

// count changes n_c and tells the controller.
func (l *Ledger) count(change int) {
	l.active += uint64(change)
	l.control.Resize(l.active)
}

// slot returns the entry of an index that is below used.
func (l *Ledger) slot(s Session) *entry { return &l.chunks[s>>chunkShift][s&chunkMask] }

// at returns the entry of a registered session, or nil, which is the caller's fault and counted.
func (l *Ledger) at(s Session) *entry {
	if int(s>>chunkShift) < len(l.chunks) {
		if e := l.slot(s); e.is(flagRegistered) {
			return e
		}
	}
	l.counters.Misused++
	return nil
}
