package credit

import (
	"errors"
	"fmt"
)

// check audits the ledger if it was configured to; every mutator begins and ends with it.
func (l *Ledger) check() {
	if l.config.Checked {
		l.mustAudit()
	}
}

func (l *Ledger) mustAudit() {
	if err := l.Audit(); err != nil {
		panic(err)
	}
}

// Audit recomputes every sum from the sessions and checks every invariant. It is O(sessions) and changes nothing.
func (l *Ledger) Audit() error {
	var issued, pending, active, registered, weights uint64
	var woken [weightClasses]uint64
	for s := Session(1); s < l.used; s++ {
		e := l.slot(s)
		if !e.is(flagRegistered) {
			if (*e != entry{next: e.next}) {
				return fmt.Errorf("credit: free entry %d is not clear: %+v", s, *e)
			}
			continue
		}
		if err := l.auditEntry(e); err != nil {
			return fmt.Errorf("credit: session %d: %w: %+v", s, err, *e)
		}
		issued += e.window()
		pending += uint64(e.pending)
		registered++
		if e.is(flagWoken) {
			woken[class(e.weight)]++
		}
		if !e.is(flagLapsed) {
			active++
			weights += uint64(e.weight)
		}
	}
	for _, sum := range []struct {
		name      string
		have, sum uint64
	}{
		{"C_issued", l.issued, issued},
		{"pending", l.pending, pending},
		{"active", l.active, active},
		{"registered", l.registered, registered},
		{"weights", l.weights, weights},
	} {
		if sum.have != sum.sum {
			return fmt.Errorf("credit: %s is %d, the sessions sum up to %d", sum.name, sum.have, sum.sum)
		}
	}
	if woken != l.woken {
		return fmt.Errorf("credit: woken up are %v, the sessions sum up to %v", l.woken, woken)
	}
	return errors.Join(l.auditFree(), l.auditQueue(&l.wanting, flagWanting), l.auditQueue(&l.waiting, flagWaiting))
}

// auditEntry checks one registered session.
func (l *Ledger) auditEntry(e *entry) error {
	switch {
	case e.sent > e.limit:
		return errors.New("sent is above the limit: unused credits underflow")
	case e.unused() > l.slots || uint64(e.pending) > l.slots:
		return errors.New("more credits than slots")
	case uint64(e.demand) > l.slots:
		return errors.New("demand is not clamped")
	case e.curOver > e.oldOver || uint64(e.oldOver) > l.slots:
		return errors.New("an old limit is out of range")
	case e.oldOver == 0 && e.is(flagGraced|flagBarred):
		return errors.New("grace without an old limit")
	case e.is(flagGraced) && e.is(flagBarred):
		return errors.New("an old limit is both honoured and not")
	case e.is(flagLapsed) && e.unused() > 0:
		return errors.New("lapsed with unused credits")
	case e.is(flagLapsed) && e.is(flagListed):
		return errors.New("lapsed and on a drained list")
	case e.is(flagListed) && e.is(flagWoken):
		return errors.New("on a drained list, and woken up")
	case e.is(flagListed) && e.unused() > 0:
		return errors.New("on a drained list with unused credits")
	case !e.is(flagListed) && (e.next != 0 || e.prev != 0):
		return errors.New("links, but no list")
	case e.weight == 0 || e.weight&(e.weight-1) != 0:
		return errors.New("its weight is no power of two")
	case e.is(flagWanting) && e.demand == 0, e.is(flagWaiting) && e.demand != 0:
		return errors.New("on the wrong drained list")
	}
	return nil
}

// auditFree checks that every entry is either registered or on the free list, once.
func (l *Ledger) auditFree() error {
	var length uint64
	for s := l.free; s != 0; s = l.slot(s).next {
		length++
		if length > uint64(l.used) || l.slot(s).is(flagRegistered) {
			return fmt.Errorf("credit: free list is wrong at session %d", s)
		}
	}
	if length+l.registered+1 != uint64(l.used) {
		return fmt.Errorf("credit: %d free and %d registered of %d entries", length, l.registered, l.used-1)
	}
	return nil
}

// auditQueue checks that the drained lists hold the sessions with their flag, each once, by its weight, and linked both ways.
func (l *Ledger) auditQueue(q *queue, flag uint8) error {
	var length, flagged uint64
	for c := range q.lists {
		at, n, prev := &q.lists[c], uint64(0), Session(0)
		for s := at.head; s != 0; s = l.slot(s).next {
			e := l.slot(s)
			if n++; n > at.count || e.flags&flagListed != flag || e.prev != prev || class(e.weight) != c {
				return fmt.Errorf("credit: drained list is wrong at session %d", s)
			}
			prev = s
		}
		if n != at.count || at.tail != prev {
			return fmt.Errorf("credit: drained list has %d sessions, counts %d", n, at.count)
		}
		length += n
	}
	for s := Session(1); s < l.used; s++ {
		if l.slot(s).is(flag) {
			flagged++
		}
	}
	if length != q.count || flagged != length {
		return fmt.Errorf("credit: drained lists have %d sessions, count %d, flagged %d", length, q.count, flagged)
	}
	return nil
}
