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

func (h *eventHeap) pop() event {
	s := *h
	first := s[0]
	last := len(s) - 1
	moved := s[last]
	s[last] = event{} // what it pointed to must not live on
	s = s[:last]
	*h = s
	if last > 0 {
		s.sink(moved)
	}
	return first
}

// sink finds the place of an event, from the root down.
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
