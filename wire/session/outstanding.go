package session

import (
	"math/bits"

	"github.com/stillwater-rpc/stillwater/wire"
)

// SlotsMax bounds the requests that one session may have outstanding.
const SlotsMax = 1024

// Outstanding is the client's table of requests that wait for an answer: it gives out slots, lowest first so that the server's table
// stays small, and finds the call of an answer. C is the owner's call object.
type Outstanding[C any] struct {
	limit  int
	count  int
	taken  [SlotsMax / 64]uint64
	number []wire.Number
	calls  []*C
}

// SetLimit bounds the slots, at most SlotsMax. Calls on higher slots stay until they are answered.
func (o *Outstanding[C]) SetLimit(slots int) { o.limit = min(slots, SlotsMax) }

// Full reports whether no slot is free.
func (o *Outstanding[C]) Full() bool { return o.count >= o.limit }

// Len is the number of requests outstanding.
func (o *Outstanding[C]) Len() int { return o.count }

// Begin takes the lowest free slot for the call's number. It must not be called when Full.
func (o *Outstanding[C]) Begin(n wire.Number, c *C) wire.Slot {
	for w := range o.taken {
		if free := ^o.taken[w]; free != 0 {
			s := w*64 + bits.TrailingZeros64(free)
			o.taken[w] |= 1 << (s % 64)
			o.count++
			for len(o.calls) <= s {
				o.calls = append(o.calls, nil)
				o.number = append(o.number, 0)
			}
			o.calls[s], o.number[s] = c, n
			return wire.Slot(s)
		}
	}
	panic("session: Begin without a free slot")
}

// Find returns the call that waits for an answer to number n on the slot, or nil.
func (o *Outstanding[C]) Find(n wire.Number, s wire.Slot) *C {
	if int(s) >= len(o.calls) || o.number[s] != n {
		return nil
	}
	return o.calls[s]
}

// End frees the slot.
func (o *Outstanding[C]) End(s wire.Slot) {
	if int(s) < len(o.calls) && o.calls[s] != nil {
		o.calls[s] = nil
		o.taken[s/64] &^= 1 << (s % 64)
		o.count--
	}
}

// Oldest is the lowest number of the requests that wait for an answer; false if none does. It looks at each slot that was ever used.
func (o *Outstanding[C]) Oldest() (n wire.Number, ok bool) {
	for i, c := range o.calls {
		if c != nil && (!ok || o.number[i] < n) {
			n, ok = o.number[i], true
		}
	}
	return n, ok
}

// Each calls f for every outstanding call; f may end it.
func (o *Outstanding[C]) Each(f func(*C)) {
	for _, c := range o.calls {
		if c != nil {
			f(c)
		}
	}
}
