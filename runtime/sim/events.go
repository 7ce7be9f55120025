package sim

import "github.com/stillwater-rpc/stillwater/hw/clock"

// actor is what something happens to.
type actor interface{ act(w *World) }

// event is one thing that will happen. What happens at the same instant does so in the order in which it was foreseen.
type event struct {
	at    clock.Time
	order uint64
	who   actor
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.order < f.order }

// arity is the heap's: four children lie in two cache lines, and the heap is half as deep as a binary one.
const arity = 4

// eventHeap is the future, its nearest event first.
type eventHeap []event

func (h *eventHeap) push(e event) {
	*h = append(*h, e)
	s := *h
	at := len(s) - 1
	for at > 0 {
		parent := (at - 1) / arity
		if !e.before(&s[parent]) {
			break
		}
		s[at] = s[parent]
		at = parent
	}
	s[at] = e
}

// pop removes the nearest event.
func (h *eventHeap) pop() {
	s := *h
	last := len(s) - 1
	moved := s[last]
	s[last] = event{} // what it pointed to must not live on
	s = s[:last]
	*h = s
	if last > 0 {
		s.sink(moved)
	}
}

// sink finds the place of an event that takes that of the nearest one, from the root down.
func (h eventHeap) sink(e event) {
	at := 0
	for {
		child := at*arity + 1
		if child >= len(h) {
			break
		}
		least := child
		for other := child + 1; other < min(child+arity, len(h)); other++ {
			if h[other].before(&h[least]) {
				least = other
			}
		}
		if !h[least].before(&e) {
			break
		}
		h[at] = h[least]
		at = least
	}
	h[at] = e
}

// lane holds what happens in the order in which it was foreseen, such as the arrivals of packets that all take the same time: it costs nothing
// to sort. It is a ring, a power of two long.
type lane struct {
	ring       []event
	head, tail uint64 // taken, put
}

const laneMin = 64

// push takes an event that is not before the last one in the lane.
func (l *lane) push(e event) {
	if l.tail-l.head == uint64(len(l.ring)) {
		old := l.ring
		l.ring = make([]event, max(2*len(old), laneMin))
		for i := l.head; i != l.tail; i++ {
			l.ring[i&uint64(len(l.ring)-1)] = old[i&uint64(len(old)-1)]
		}
	}
	l.ring[l.tail&uint64(len(l.ring)-1)] = e
	l.tail++
}

// first is the nearest event; nil = none.
func (l *lane) first() *event {
	if l.head == l.tail {
		return nil
	}
	return &l.ring[l.head&uint64(len(l.ring)-1)]
}

// last is the furthest event; nil = none.
func (l *lane) last() *event {
	if l.head == l.tail {
		return nil
	}
	return &l.ring[(l.tail-1)&uint64(len(l.ring)-1)]
}

func (l *lane) pop() event {
	at := l.first()
	e := *at
	*at = event{}
	l.head++
	return e
}

// each calls f for all of them, in order.
func (l *lane) each(f func(event)) {
	for i := l.head; i != l.tail; i++ {
		f(l.ring[i&uint64(len(l.ring)-1)])
	}
}

// future is all that is foreseen.
//
// The first event of the heap may have been taken already: as a rule, what happens foresees the next of its kind, and that one takes its place in one go, where taking
// it out and putting another in would go through the heap twice.
type future struct {
	heap  eventHeap
	taken bool // heap[0] is
	lane  lane
}

// push puts an event where it costs least. ordered says that it is probably the last so far of many of its kind.
func (f *future) push(e event, ordered bool) {
	if last := f.lane.last(); ordered && (last == nil || last.before(&e)) {
		f.lane.push(e)
		return
	}
	if f.taken {
		f.taken = false
		f.heap.sink(e)
		return
	}
	f.heap.push(e)
}

// next takes the nearest event that is not after an instant.
func (f *future) next(until clock.Time) (e event, ok bool) {
	if f.taken {
		f.taken = false
		f.heap.pop()
	}
	first := f.lane.first()
	if len(f.heap) > 0 && (first == nil || f.heap[0].before(first)) {
		if f.heap[0].at > until {
			return event{}, false
		}
		f.taken = true
		return f.heap[0], true
	}
	if first == nil || first.at > until {
		return event{}, false
	}
	return f.lane.pop(), true
}

// each calls f for all events, in no order.
func (f *future) each(do func(event)) {
	for i, e := range f.heap {
		if i > 0 || !f.taken {
			do(e)
		}
	}
	f.lane.each(do)
}
