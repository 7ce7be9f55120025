package credit

import "github.com/stillwater-rpc/stillwater/hw/clock"

// PopDrained takes the session whose turn it is off the drained lists, those with known demand first, and grants
// it one credit, to be sent in an explicit credit update. It returns ok = false when nobody waits, nothing is left
// in the pool, or enough were woken up since the last update of the pool. Call it until then.
func (l *Ledger) PopDrained(now clock.Time) (s Session, limit uint64, seq uint32, ok bool) {
	l.check()
	from := &l.wanting
	if from.count == 0 {
		from = &l.waiting
	}
	if from.count == 0 || l.wakes == 0 || l.issued >= l.control.Pool() {
		return 0, 0, 0, false
	}
	s = from.next(&l.woken).head
	e := l.slot(s)
	l.unlist(e)
	e.flags |= flagWoken
	l.woken[class(e.weight)]++
	l.wakes--
	l.counters.Woken++
	l.issued++
	e.setLimit(e.sent + 1)
	e.seen = now // the lease of this credit begins here
	l.check()
	return s, e.limit, e.seq, true
}

// Probe reports the question of a client that has demand, waits for no answer and sees no unused credit; newer as for
// Heard. If it has credits here, the update that said so was lost: answered is true, and the caller sends limit and
// seq again. Otherwise the session is listed as drained, once, and hears of it from PopDrained.
func (l *Ledger) Probe(
	now clock.Time, s Session, next uint64, applied uint32, demand uint16, newer bool,
) (limit uint64, seq uint32, answered bool) {
	l.Heard(now, s, next, applied, demand, newer)
	e := l.at(s)
	if e == nil {
		return 0, 0, false
	}
	l.busy = true
	if next > e.limit && newer {
		// It says that it has used numbers that it was never given; Heard ignored that. Should it be true, after
		// some fault of ours, an answer with this limit would not help it, and it would probe for ever. So its
		// credits count as spent: a liar loses them, and anybody else gets going again.
		l.issued -= e.unused()
		e.sent = e.limit
	}
	if e.unused() > 0 {
		l.check()
		return e.told(), e.seq, true
	}
	if e.demand > 0 && uint64(e.pending) < l.slots {
		l.list(s, e)
	}
	l.check()
	return e.told(), e.seq, false
}

// list puts a session on the list that its demand says, unless it is on one, or will come by itself when it has any.
func (l *Ledger) list(s Session, e *entry) {
	if e.is(flagListed) {
		return
	}
	l.asleep(e)
	kind, flag := &l.waiting, uint8(flagWaiting)
	if e.demand > 0 {
		kind, flag = &l.wanting, flagWanting
	} else if l.config.Asking || l.invites() {
		return
	}
	to := &kind.lists[class(e.weight)]
	kind.count++
	e.flags |= flag
	e.prev, e.next = to.tail, 0
	if to.tail != 0 {
		l.slot(to.tail).next = s
	} else {
		to.head = s
	}
	to.tail = s
	to.count++
}

// asleep notes that a session which was woken up is drained again, or gone.
func (l *Ledger) asleep(e *entry) {
	if e.is(flagWoken) {
		e.flags &^= flagWoken
		l.woken[class(e.weight)]--
	}
}

// unlist takes a session off whichever list it is on.
func (l *Ledger) unlist(e *entry) {
	if !e.is(flagListed) {
		return
	}
	kind := &l.waiting
	if e.is(flagWanting) {
		kind = &l.wanting
	}
	from := &kind.lists[class(e.weight)]
	kind.count--
	if e.prev != 0 {
		l.slot(e.prev).next = e.next
	} else {
		from.head = e.next
	}
	if e.next != 0 {
		l.slot(e.next).prev = e.prev
	} else {
		from.tail = e.prev
	}
	from.count--
	e.prev, e.next = 0, 0
	e.flags &^= flagListed
}

// Sweep looks at up to most entries, going round, and takes the unused credits of those whose lease has run out. Such a
// session stays registered, leaves n_c and the drained lists, and counts again when it is heard. Returns how many
// lapsed. A few entries per turn of the loop take the place of a timer per session.
func (l *Ledger) Sweep(now clock.Time, most int) int {
	l.check()
	lapsed := 0
	for range min(most, int(l.used)-1) {
		if l.cursor >= l.used {
			l.cursor = 1
		}
		s := l.cursor
		e := l.slot(s)
		l.cursor++
		if !e.is(flagRegistered) {
			continue
		}
		e.ungrace(now, l.config.PacketLife)
		if !e.is(flagLapsed) && now.Sub(e.seen) > l.config.Lease {
			l.lapse(now, e)
			lapsed++
		}
	}
	l.check()
	return lapsed
}

// lapse takes the unused credits of a session that shows no sign of life. What it sent just before its own lease ran
// out may still be under way, so the old limit is honoured for one packet life.
func (l *Ledger) lapse(now clock.Time, e *entry) {
	l.unlist(e)
	l.asleep(e)
	l.issued -= e.unused()
	e.setLimit(e.sent)
	if e.oldOver > 0 && !e.is(flagBarred) { // what is barred since an earlier lapse stays so
		e.flags |= flagGraced
		e.lapsedAt = uint32(now >> graceShift)
	}
	e.flags |= flagLapsed
	l.counters.Lapses++
	l.count(-1)
	l.weights -= uint64(e.weight)
}

// Limit returns the limit of a session, as its client is to be told it, and its sequence number.
func (l *Ledger) Limit(s Session) (limit uint64, seq uint32) {
	if e := l.at(s); e != nil {
		return e.told(), e.seq
	}
	return 0, 0
}

// Demand returns the last known demand of a session, in requests, and when it was reported.
func (l *Ledger) Demand(s Session) (demand uint16, at clock.Time) {
	if e := l.at(s); e != nil {
		return e.demand, e.demandAt
	}
	return 0, 0
}

// Unused returns u, the credits of a session that it has not spent.
func (l *Ledger) Unused(s Session) uint64 {
	if e := l.at(s); e != nil {
		return e.unused()
	}
	return 0
}

// Sent returns the highest next of a session that is known: the number that its next request will have.
func (l *Ledger) Sent(s Session) uint64 {
	if e := l.at(s); e != nil {
		return e.sent
	}
	return 0
}

// Pending returns p, the requests of a session that were received and not answered.
func (l *Ledger) Pending(s Session) uint64 {
	if e := l.at(s); e != nil {
		return uint64(e.pending)
	}
	return 0
}

// Lapsed reports whether the lease of a session has run out.
func (l *Ledger) Lapsed(s Session) bool {
	e := l.at(s)
	return e != nil && e.is(flagLapsed)
}

// Drained is the number of sessions that wait for a grant.
func (l *Ledger) Drained() uint64 { return l.wanting.count + l.waiting.count }

// Issued is the number of credits out.
func (l *Ledger) Issued() uint64 { return l.issued }

// Totals returns the sums.
func (l *Ledger) Totals() Totals {
	return Totals{
		Pool:       l.control.Pool(),
		Issued:     l.issued,
		Pending:    l.pending,
		Active:     l.active,
		Registered: l.registered,
		Drained:    l.Drained(),
		Counters:   l.counters,
	}
}
