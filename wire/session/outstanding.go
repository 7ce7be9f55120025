package session

import (
	"math/bits"

	"github.com/stillwater-rpc/stillwater/wire"
)

// SlotsMax bounds the requests that one session may have outstanding.
const SlotsMax = 1024

// wordSlots is how many slots a word tells of.
const wordSlots = 64

// Outstanding is the client's table of requests that wait for an answer: it gives out slots, lowest first so that the server's table
// stays small, and finds the call of an answer. C is the owner's call object. Where there are a million sessions, each call finds its own out of every cache: what
// most of them use lies together, and the rest is made when it is used.
type Outstanding[C any] struct {
	limit, count int32
	taken        uint64 // of the first slots
	calls        []outstanding[C]
	more         *[SlotsMax/wordSlots - 1]uint64 // of the others; nil = none was ever taken
}

// outstanding is what is on a slot.
type outstanding[C any] struct {
	call   *C // nil = nothing
	number wire.Number
}

// SetLimit bounds the slots, at most SlotsMax. Calls on higher slots stay until they are answered.
func (o *Outstanding[C]) SetLimit(slots int) { o.limit = int32(min(slots, SlotsMax)) }

// Full reports whether no slot is free.
func (o *Outstanding[C]) Full() bool { return o.count >= o.limit }

// Len is the number of requests outstanding.
func (o *Outstanding[C]) Len() int { return int(o.count) }

// Begin takes the lowest free slot for the call's number. It must not be called when Full.
func (o *Outstanding[C]) Begin(n wire.Number, c *C) wire.Slot {
	s := o.lowest()
	*o.word(s) |= 1 << (s % wordSlots)
	o.count++
	for len(o.calls) <= int(s) {
		o.calls = append(o.calls, outstanding[C]{})
	}
	o.calls[s] = outstanding[C]{c, n}
	return s
}

// lowest is the lowest free slot.
func (o *Outstanding[C]) lowest() wire.Slot {
	if free := ^o.taken; free != 0 {
		return wire.Slot(bits.TrailingZeros64(free))
	}
	if o.more == nil {
		o.more = new([SlotsMax/wordSlots - 1]uint64)
	}
	for w, taken := range o.more {
		if free := ^taken; free != 0 {
			return wire.Slot((w+1)*wordSlots + bits.TrailingZeros64(free))
		}
	}
	panic("session: Begin without a free slot")
}

// word is the one that tells of a slot.
func (o *Outstanding[C]) word(s wire.Slot) *uint64 {
	if s < wordSlots {
		return &o.taken
	}
	return &o.more[s/wordSlots-1]
}

// Find returns the call that waits for an answer to number n on the slot, or nil.
func (o *Outstanding[C]) Find(n wire.Number, s wire.Slot) *C {
	if int(s) >= len(o.calls) || o.calls[s].number != n {
		return nil
	}
	return o.calls[s].call
}

// End frees the slot.
func (o *Outstanding[C]) End(s wire.Slot) {
	if int(s) < len(o.calls) && o.calls[s].call != nil {
		o.calls[s].call = nil
		*o.word(s) &^= 1 << (s % wordSlots)
		o.count--
	}
}

// Oldest is the lowest number of the requests that wait for an answer; false if none does. It looks at each slot that was ever used.
func (o *Outstanding[C]) Oldest() (n wire.Number, ok bool) {
	for _, c := range o.calls {
		if c.call != nil && (!ok || c.number < n) {
			n, ok = c.number, true
		}
	}
	return n, ok
}

// Each calls f for every outstanding call; f may end it.
func (o *Outstanding[C]) Each(f func(*C)) {
	for i := range o.calls {
		if c := o.calls[i].call; c != nil {
			f(c)
		}
	}
}
