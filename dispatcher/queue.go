package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// requestQueue is the request queue: first come, first served, in a ring that grows by doubling up to its bound.
// Requests wait here, where their age is seen, and not in Go's run queue, where it is not.
type requestQueue struct {
	ring       []*Request // power of two
	head, tail uint64     // taken, put
	work       time.Duration
	live       int // without orphans
}

// push appends a request whose service is expected to take so long.
func (q *requestQueue) push(r *Request) {
	if q.tail-q.head == uint64(len(q.ring)) {
		q.grow()
	}
	q.ring[q.tail&uint64(len(q.ring)-1)] = r
	q.tail++
	q.live++
	q.work += r.Method.service.Mean()
}

func (q *requestQueue) grow() {
	ring := make([]*Request, max(2*len(q.ring), 64))
	for i := q.head; i != q.tail; i++ {
		ring[i&uint64(len(ring)-1)] = q.ring[i&uint64(len(q.ring)-1)]
	}
	q.ring = ring
}

// pop takes the oldest request, orphans included, or nil.
func (q *requestQueue) pop() *Request {
	if q.head == q.tail {
		return nil
	}
	place := &q.ring[q.head&uint64(len(q.ring)-1)]
	r := *place
	*place = nil
	q.head++
	if r.state != requestOrphan {
		q.leave(r)
	}
	return r
}

// orphan marks a queued request as one that nobody waits for: it is skipped when its turn comes.
func (q *requestQueue) orphan(r *Request) {
	r.state = requestOrphan
	q.leave(r)
}

func (q *requestQueue) leave(r *Request) {
	q.live--
	// The mean moves between push and pop, so the sum drifts; an empty queue holds no work, whatever was learnt meanwhile.
	if q.work -= r.Method.service.Mean(); q.work < 0 || q.live == 0 {
		q.work = 0
	}
}

// age is how long the oldest request has waited. Orphans at the head have no age: the caller drops them first.
func (q *requestQueue) age(now clock.Time) time.Duration {
	if q.head == q.tail {
		return 0
	}
	return max(now.Sub(q.ring[q.head&uint64(len(q.ring)-1)].enqueued), 0)
}

// headOrphan reports whether the oldest entry is an orphan.
func (q *requestQueue) headOrphan() bool {
	return q.head != q.tail && q.ring[q.head&uint64(len(q.ring)-1)].state == requestOrphan
}
