package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// requestQueue is the request queue: in the order of arrival, in a ring that grows by doubling up to its bound.
// Requests wait here, where their age is seen, and not in Go's run queue, where it is not.
//
// A request that nobody waits for any more leaves a hole in the ring and is free at once: who opens and closes sessions
// while the workers are blocked fills no memory. Holes are squeezed out before the ring grows, and there is never one at the head, so the
// age of the head is the age of the oldest request.
type requestQueue struct {
	ring       []*Request // power of two; nil = hole
	head, tail uint64     // taken, put
	work       time.Duration
	live       int
}

// push appends a request.
func (q *requestQueue) push(r *Request) {
	if q.tail-q.head == uint64(len(q.ring)) {
		q.rebuild()
	}
	// The mean moves while the request waits: what is taken off the sum later must be what was added now.
	r.cost = r.Method.admit.Age.Expected()
	q.put(r)
	q.live++
	q.work += r.cost
}

func (q *requestQueue) put(r *Request) {
	r.place, r.in = q.tail, q
	q.ring[q.tail&uint64(len(q.ring)-1)] = r
	q.tail++
}

// rebuild makes room: the holes go, and if that is less than half of the ring, it doubles.
func (q *requestQueue) rebuild() {
	old, head, tail := q.ring, q.head, q.tail
	size := max(len(old), 64)
	if q.live > size/2 {
		size *= 2
	}
	q.ring, q.head, q.tail = make([]*Request, size), 0, 0
	for i := head; i != tail; i++ {
		if r := old[i&uint64(len(old)-1)]; r != nil {
			q.put(r)
		}
	}
}

// pop takes the oldest request, or nil.
func (q *requestQueue) pop() *Request {
	if q.head == q.tail {
		return nil
	}
	r := q.oldest()
	q.remove(r)
	return r
}

// popNewest takes the newest request, or nil.
func (q *requestQueue) popNewest() *Request {
	mask := uint64(len(q.ring) - 1)
	for q.head != q.tail {
		q.tail--
		if r := q.ring[q.tail&mask]; r != nil {
			q.tail++
			q.remove(r)
			return r
		}
	}
	return nil
}

// oldest is the request at the head; the queue is not empty.
func (q *requestQueue) oldest() *Request { return q.ring[q.head&uint64(len(q.ring)-1)] }

// remove takes a queued request out, wherever it stands.
func (q *requestQueue) remove(r *Request) {
	mask := uint64(len(q.ring) - 1)
	q.ring[r.place&mask] = nil
	for q.head != q.tail && q.ring[q.head&mask] == nil {
		q.head++
	}
	q.live--
	q.work -= r.cost
}

// age is how long the oldest request has waited.
func (q *requestQueue) age(now clock.Time) time.Duration {
	if q.head == q.tail {
		return 0
	}
	return max(now.Sub(q.oldest().enqueued), 0)
}
