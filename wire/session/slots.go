package session

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// State says what is known of a request's number on its slot.
type State uint8

// The states of a number on a slot.
const (
	Fresh    State = iota // never seen: it may run
	Pending               // received, and not answered yet
	Answered              // answered; the reply is kept
	Rejected              // refused; the refusal is kept
	Stale                 // below what the slot or the session has seen: ignore
)

// slotsMin is the smallest table of those who use more than one slot.
const slotsMin = 4

// Slots decides at most once for the active slots of one session. A slot keeps the highest number seen on it: the request object while
// it is pending, a copy of the answer afterwards (the response cache). R is the owner's request object. The object itself is
// not kept with the answer: a few objects that are always in the CPU's cache serve all sessions, and an idle slot costs what its answer
// is long. It must not be copied.
type Slots[R any] struct {
	entries []slot[R]
	live    int        // slots that are pending
	own     [1]slot[R] // the entries of who uses the first slot alone, as most sessions do: one thing less to find in memory
}

type slot[R any] struct {
	next  wire.Number // numbers below it were seen on this slot
	state State
	// Once refused: a Refusal in what the state leaves of a word.
	reason wire.RejectReason
	advice wire.Advice
	until  uint32 // when RetryAfter is over, >> untilShift

	req   *R     // while pending
	reply []byte // once answered; its memory is used again
}

// Refusal is what a reject says.
type Refusal struct {
	Reason     wire.RejectReason
	Advice     wire.Advice
	RetryAfter time.Duration // from now; 0 = nobody said
}

// untilShift makes an instant fit 32 bits: units of 8 us, which wrap after nine hours, when nobody asks again any more.
const untilShift = 13

// Lookup says what is known of number n on the slot, with the request object if it is pending.
func (t *Slots[R]) Lookup(n wire.Number, s wire.Slot) (State, *R) {
	if int(s) >= len(t.entries) {
		return Fresh, nil
	}
	e := &t.entries[s]
	switch {
	case n >= e.next:
		return Fresh, nil
	case n == e.next-1:
		return e.state, e.req
	default:
		return Stale, nil
	}
}

// Begin puts a fresh request on the slot. One that was pending there comes back: its client has given it up.
func (t *Slots[R]) Begin(n wire.Number, s wire.Slot, req *R) (before *R) {
	return t.set(n, s, slot[R]{state: Pending, req: req})
}

// Reject records that number n was refused without running.
func (t *Slots[R]) Reject(now clock.Time, n wire.Number, s wire.Slot, r Refusal) (before *R) {
	return t.set(n, s, slot[R]{state: Rejected, reason: r.Reason, advice: r.Advice, until: uint32(now.Add(r.RetryAfter) >> untilShift)})
}

func (t *Slots[R]) set(n wire.Number, s wire.Slot, to slot[R]) (before *R) {
	t.grow(int(s) + 1)
	e := &t.entries[s]
	before = e.req
	if before != nil {
		t.live--
	}
	if to.req != nil {
		t.live++
	}
	to.next, to.reply = n+1, e.reply[:0]
	*e = to
	return before
}

// Answer records that number n is answered, and returns where the answer is to be kept, empty. Nil: the slot does not wait for it any
// more, since a newer request has taken it, and the answer is of no interest to anybody.
func (t *Slots[R]) Answer(n wire.Number, s wire.Slot) (reply *[]byte) {
	if int(s) >= len(t.entries) {
		return nil
	}
	e := &t.entries[s]
	if e.next != n+1 || e.state != Pending {
		return nil
	}
	e.state, e.req = Answered, nil
	t.live--
	return &e.reply
}

// Kept is the answer on a slot whose state is Answered.
func (t *Slots[R]) Kept(s wire.Slot) []byte { return t.entries[s].reply }

// Refused is the refusal on a slot whose state is Rejected, as it is to be said at now.
func (t *Slots[R]) Refused(now clock.Time, s wire.Slot) Refusal {
	k := &t.entries[s]
	left := int32(k.until - uint32(now>>untilShift)) // serial-number arithmetic
	return Refusal{k.reason, k.advice, time.Duration(max(left, 0)) << untilShift}
}

// Next is the highest number seen on any slot, plus one.
func (t *Slots[R]) Next() (next wire.Number) {
	for i := range t.entries {
		next = max(next, t.entries[i].next)
	}
	return next
}

// Each calls f for every pending request.
func (t *Slots[R]) Each(f func(*R)) {
	for i := range t.entries {
		if e := &t.entries[i]; e.state == Pending && e.req != nil {
			f(e.req)
		}
	}
}

// Live is the number of slots that are pending.
func (t *Slots[R]) Live() int { return t.live }

// Clear makes the table ready for another session. Its own memory is kept, that of the answers is not.
func (t *Slots[R]) Clear() {
	clear(t.entries)
	t.entries = t.entries[:0]
	t.live = 0
}

// grow makes room for n slots, in powers of two.
func (t *Slots[R]) grow(n int) {
	if n <= len(t.entries) {
		return
	}
	if n <= len(t.own) && cap(t.entries) == 0 {
		t.entries = t.own[:n]
		return
	}
	size := max(len(t.entries), slotsMin)
	for size < n {
		size *= 2
	}
	if size <= cap(t.entries) {
		t.entries = t.entries[:size]
		return
	}
	entries := make([]slot[R], size)
	copy(entries, t.entries)
	clear(t.own[:])
	t.entries = entries
}
