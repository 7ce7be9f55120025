package credit

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Session is the index of a session in its ledger; zero is no session. An index is used again after Deregister.
type Session uint32

// entry is one session: one cache line, without pointers, so that a million idle ones cost 64 MB and the garbage
// collector nothing.
type entry struct {
	limit    uint64     // running number of requests that it may ever send
	sent     uint64     // highest `next` seen; never above limit
	seen     clock.Time // last sign of life, or last grant: the lease runs from here
	demandAt clock.Time // when the demand was reported

	seq      uint32  // sequence number of limit
	oldSeq   uint32  // last seq that oldOver covers
	lapsedAt uint32  // instant of the last lapse >> graceShift, meaningful while flagGraced is set
	next     Session // neighbours on a drained list; next links the free list too
	prev     Session

	pending uint16 // p
	demand  uint16 // d, at most the slots

	// Limits that the client may still believe in, as excess over the present one: two buckets of a windowed
	// maximum. oldOver covers all seqs up to oldSeq, and, being the maximum, bounds curOver, which covers those after
	// it. An excess fits, since no limit ever exceeds sent by more than the slots and sent never falls.
	oldOver uint16
	curOver uint16
	bar     uint16 // this many numbers just below limit were passed over after a lapse; see Ledger.pass

	flags  uint8
	weight uint8 // its share of what is scarce, beside those of the others; at least 1
}

const (
	flagRegistered = 1 << iota
	flagLapsed     // its lease ran out: it does not count in n_c, and is granted nothing
	flagGraced     // oldOver comes from a lapse, and is honoured for one packet life
	flagBarred     // that life is over: oldOver still bounds `next`, but gives no right to send
	flagWanting    // on the drained list of those with known demand
	flagWaiting    // on the drained list of those without
	flagWoken      // was woken up, and has not been drained since
	flagListed     = flagWanting | flagWaiting
)

// graceShift makes the instant of a lapse fit 32 bits: units of 65 us, which wrap after 78 hours.
const graceShift = 16

func (e *entry) is(flags uint8) bool { return e.flags&flags != 0 }

func (e *entry) unused() uint64 { return e.limit - e.sent }

// told is the limit as the client is told it: below the numbers that are barred, or it would send those requests again at once, and again be refused. It
// changes with seq alone.
func (e *entry) told() uint64 { return e.limit - uint64(e.bar) }

func (e *entry) window() uint64 { return e.unused() + uint64(e.pending) }

// setLimit changes the limit, remembers the old one while the client may still believe in it, and numbers the new.
func (e *entry) setLimit(limit uint64) {
	switch {
	case limit == e.limit:
		return
	case limit > e.limit:
		raised := limit - e.limit
		e.oldOver = excess(e.oldOver, raised)
		e.curOver = excess(e.curOver, raised)
		if e.oldOver == 0 {
			e.flags &^= flagGraced | flagBarred
		}
	case e.oldOver == 0:
		e.oldOver, e.oldSeq = uint16(e.limit-limit), e.seq
	default:
		e.oldOver += uint16(e.limit - limit)
		e.curOver += uint16(e.limit - limit)
	}
	e.limit = limit
	e.seq++
	e.bar = 0
}

// excess is what is left of an excess over the limit after the limit was raised.
func excess(over uint16, raised uint64) uint16 {
	if uint64(over) <= raised {
		return 0
	}
	return over - uint16(raised)
}

// supersede forgets the limits that the client is known to have replaced: it has applied seq. It reports false for a
// seq that was never sent.
func (e *entry) supersede(seq uint32) bool {
	behind := int32(e.seq - seq) // serial-number arithmetic: seq wraps
	switch {
	case behind < 0:
		return false
	case e.oldOver == 0:
	case behind == 0:
		e.oldOver, e.curOver = 0, 0
		e.flags &^= flagGraced | flagBarred
	case int32(seq-e.oldSeq) > 0:
		e.oldOver, e.curOver = e.curOver, 0
		e.oldSeq = e.seq - 1
		if e.oldOver == 0 {
			e.flags &^= flagGraced | flagBarred
		}
	}
	return true
}

// ungrace ends the grace of the limit before a lapse, one packet life after it.
func (e *entry) ungrace(now clock.Time, life time.Duration) {
	if e.is(flagGraced) && uint32(now>>graceShift)-e.lapsedAt > uint32(life>>graceShift)+1 {
		e.flags = e.flags&^flagGraced | flagBarred
	}
}
