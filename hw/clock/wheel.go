package clock

import (
	"math/bits"
	"time"
)

// Timer is an intrusive timer: it lies inside the thing that it times, so arming it allocates nothing. The zero
// Timer is disarmed and ready for use. It belongs to one wheel while armed, and must not be copied then.
type Timer[T any] struct {
	list       int32 // 1 + index of the list that holds it; 0 = disarmed. First, since it is all that is read of most timers
	when       Time
	Value      *T // what the timer times; the wheel never touches it
	next, prev *Timer[T]
}

// Armed reports whether the timer is armed: neither fired nor disarmed since.
func (t *Timer[T]) Armed() bool { return t.list != 0 }

// When returns the instant at which an armed timer fires; zero when disarmed.
func (t *Timer[T]) When() Time {
	if t.list == 0 {
		return 0
	}
	return t.when
}

// Wheel is a hashed timing wheel (Varghese and Lauck, SOSP 1987, scheme 6): O(1) to arm and to disarm, and no
// allocation after NewWheel. It has one owner; nothing in it is safe for concurrent use.
//
// A slot holds all the timers whose tick is the same modulo the number of slots, so a timer further away than one
// revolution is passed over once per revolution. Precision does not depend on the tick: a timer fires at the
// first Advance whose now has reached it, never before.
type Wheel[T any] struct {
	lists    []timerList[T] // one per slot
	due      timerList[T]   // what is due and not yet handed out; its place is after the slots
	occupied []uint64       // one bit per slot that is not empty
	shift    uint           // an instant's tick is when >> shift
	mask     int64
	cursor   int64 // tick up to which every due timer was collected
	next     Time  // no timer in a slot fires before this; zero when there is none
	dueFrom  Time  // no timer on the due list has an earlier when
	count    int
}

// timerList is a list in order of arming, with a lower bound of the instants on it.
type timerList[T any] struct {
	head, tail *Timer[T]
	earliest   Time
}

// NewWheel makes an empty wheel. The tick is rounded down to a power of two nanoseconds (at least 1 ns), the number
// of slots up to a power of two (at least 64). A revolution, tick times slots, should cover the usual timeout.
func NewWheel[T any](tick time.Duration, slots int) *Wheel[T] {
	size := int64(64)
	for size < int64(slots) {
		size <<= 1
	}
	return &Wheel[T]{
		lists:    make([]timerList[T], size),
		occupied: make([]uint64, size/64),
		shift:    uint(bits.Len64(uint64(max(tick, 1)))) - 1,
		mask:     size - 1,
	}
}

// Len returns the number of armed timers.
func (w *Wheel[T]) Len() int { return w.count }

// Arm makes t fire at when, wherever it was armed before. An instant that has passed fires at the next Advance; an
// unset (zero) one disarms, since it means "never" elsewhere.
func (w *Wheel[T]) Arm(t *Timer[T], when Time) {
	if t.list != 0 {
		if t.when == when {
			return
		}
		w.Disarm(t)
	}
	if when == 0 {
		return
	}
	t.when = when
	// What lies behind the cursor goes where the next scan begins; the slot's bound says that it is due.
	slot := max(int64(when)>>w.shift, w.cursor) & w.mask
	w.append(t, slot)
	w.occupied[slot/64] |= 1 << (slot % 64)
	w.count++
	if w.next == 0 || when < w.next {
		w.next = when
	}
}

// Disarm takes t off the wheel; one that is not armed is left alone.
func (w *Wheel[T]) Disarm(t *Timer[T]) {
	if t.list == 0 {
		return
	}
	w.remove(t)
	w.count--
}

// Advance returns one timer that is due at now, disarmed, or nil when none is. Call it until it returns nil; timers
// that are due together come in no particular order. Costs two comparisons when nothing is due.
func (w *Wheel[T]) Advance(now Time) *Timer[T] {
	if w.due.head == nil {
		if w.next == 0 || now < w.next {
			return nil
		}
		w.collect(now)
		if w.due.head == nil {
			return nil
		}
	}
	t := w.due.head
	w.remove(t)
	w.count--
	return t
}

// Next returns an instant until which Advance has nothing to do: never later than the earliest armed timer, earlier
// only when that one was disarmed since the last Advance. Zero when no timer is armed.
func (w *Wheel[T]) Next() Time {
	switch {
	case w.count == 0:
		return 0
	case w.due.head != nil:
		return w.dueFrom
	default:
		return w.next
	}
}

// collect moves every timer that is due at now to the due list, and computes the next bound. A jump over more than
// one revolution scans each slot once.
func (w *Wheel[T]) collect(now Time) {
	w.dueFrom = w.next
	tick := int64(now) >> w.shift
	last := min(tick, w.cursor+w.mask)
	for at := w.cursor; at <= last; at++ {
		slot := at & w.mask
		if w.occupied[slot/64]&(1<<(slot%64)) != 0 && w.lists[slot].earliest <= now {
			w.collectSlot(slot, now)
		}
	}
	w.cursor = max(w.cursor, tick)
	w.next = w.bound()
}

// collectSlot moves what is due in one slot, and makes the slot's bound exact.
func (w *Wheel[T]) collectSlot(slot int64, now Time) {
	earliest := Time(0)
	for t := w.lists[slot].head; t != nil; {
		following := t.next
		if t.when <= now {
			w.remove(t)
			w.append(t, w.mask+1)
		} else if earliest == 0 || t.when < earliest {
			earliest = t.when
		}
		t = following
	}
	w.lists[slot].earliest = earliest
}

// bound returns a lower bound of the instants in the slots. It goes round from the cursor and stops at the first slot
// with a timer of this revolution: every slot behind it is later.
func (w *Wheel[T]) bound() Time {
	best := Time(0)
	for offset := int64(0); offset <= w.mask; {
		slot := (w.cursor + offset) & w.mask
		word := w.occupied[slot/64] >> (slot % 64)
		if word == 0 {
			offset += 64 - slot%64
			continue
		}
		skipped := int64(bits.TrailingZeros64(word))
		offset += skipped
		if offset > w.mask {
			break
		}
		earliest := w.lists[slot+skipped].earliest
		best = Earliest(best, earliest)
		if int64(earliest)>>w.shift <= w.cursor+offset {
			break
		}
		offset++
	}
	return best
}

// at is the list of a slot, or, after the last of them, what is due.
func (w *Wheel[T]) at(slot int64) *timerList[T] {
	if slot > w.mask {
		return &w.due
	}
	return &w.lists[slot]
}

func (w *Wheel[T]) append(t *Timer[T], at int64) {
	list := w.at(at)
	if list.head == nil {
		list.head, list.earliest = t, t.when
	} else {
		list.tail.next = t
		list.earliest = min(list.earliest, t.when)
	}
	t.prev, t.next, t.list = list.tail, nil, int32(at)+1
	list.tail = t
}

func (w *Wheel[T]) remove(t *Timer[T]) {
	at := int64(t.list) - 1
	list := w.at(at)
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		list.head = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		list.tail = t.prev
	}
	t.next, t.prev, t.list = nil, nil, 0
	if list.head == nil && at <= w.mask {
		w.occupied[at/64] &^= 1 << (at % 64)
	}
}
