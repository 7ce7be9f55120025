package client

import (
	"errors"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// ErrQueueFull is returned by Push when the queue holds as many requests as it may.
var ErrQueueFull = errors.New("client: queue is full")

// Waiter is the place of one request in a queue. It lies inside the request, so queueing allocates nothing. The zero
// Waiter is in no queue; it can be in one at a time, and must not be copied then.
type Waiter[T any] struct {
	Value *T // what waits; the queue never touches it

	at int // 1 + index in the heap; 0 = not queued
}

// Queued reports whether w is in a queue.
func (w *Waiter[T]) Queued() bool { return w.at != 0 }

// waiting is one element of the heap. The key is here and not in the Waiter, so that sifting touches no other memory.
type waiting[T any] struct {
	deadline clock.Time
	order    uint64
	waiter   *Waiter[T]
}

// before orders by deadline, none (zero) last, and then by arrival.
func (a *waiting[T]) before(b *waiting[T]) bool {
	if a.deadline != b.deadline {
		return b.deadline == 0 || (a.deadline != 0 && a.deadline < b.deadline)
	}
	return a.order < b.order
}

// Queue holds the requests that wait for a credit: earliest deadline first, equal deadlines in order of arrival, those
// without a deadline last. A binary heap: Push, Pop and Remove are O(log n), and allocate nothing once it has grown.
type Queue[T any] struct {
	heap     []waiting[T]
	capacity int
	order    uint64
}

// NewQueue makes an empty queue for at most capacity requests; zero or less means 1.
func NewQueue[T any](capacity int) *Queue[T] { return &Queue[T]{capacity: max(capacity, 1)} }

// Len returns the number of waiting requests: the demand.
func (q *Queue[T]) Len() int { return len(q.heap) }

// Push queues w by its deadline; an unset deadline is never. It returns ErrQueueFull when the queue is full, and
// panics when w is queued already.
func (q *Queue[T]) Push(w *Waiter[T], deadline clock.Time) error {
	if w.at != 0 {
		panic("client: a request was queued twice")
	}
	if len(q.heap) >= q.capacity {
		return ErrQueueFull
	}
	q.order++
	q.heap = append(q.heap, waiting[T]{deadline: deadline, order: q.order, waiter: w})
	q.up(len(q.heap) - 1)
	return nil
}

// Peek returns the request that Pop would take, and its deadline; nil when the queue is empty.
func (q *Queue[T]) Peek() (w *Waiter[T], deadline clock.Time) {
	if len(q.heap) == 0 {
		return nil, 0
	}
	return q.heap[0].waiter, q.heap[0].deadline
}

// Oldest returns the request that was pushed first; nil when the queue is empty. It looks at all of them: for short queues.
func (q *Queue[T]) Oldest() *Waiter[T] {
	if len(q.heap) == 0 {
		return nil
	}
	oldest := &q.heap[0]
	for i := range q.heap {
		if q.heap[i].order < oldest.order {
			oldest = &q.heap[i]
		}
	}
	return oldest.waiter
}

// Capacity returns how many requests may wait.
func (q *Queue[T]) Capacity() int { return q.capacity }

// Pop takes the request with the earliest deadline out; nil when the queue is empty.
func (q *Queue[T]) Pop() *Waiter[T] {
	if len(q.heap) == 0 {
		return nil
	}
	w := q.heap[0].waiter
	q.Remove(w)
	return w
}

// Remove takes w out, wherever it stands, and reports whether it was in the queue. A Waiter of another queue is a
// fault of the caller.
func (q *Queue[T]) Remove(w *Waiter[T]) bool {
	at := w.at - 1
	if at < 0 {
		return false
	}
	last := len(q.heap) - 1
	moved := q.heap[last]
	q.heap[last] = waiting[T]{} // what has left must not stay reachable
	q.heap = q.heap[:last]
	if at != last {
		q.put(at, moved)
		q.down(at)
		q.up(at)
	}
	w.at = 0
	return true
}

func (q *Queue[T]) put(at int, x waiting[T]) {
	q.heap[at] = x
	x.waiter.at = at + 1
}

func (q *Queue[T]) up(at int) {
	x := q.heap[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !x.before(&q.heap[parent]) {
			break
		}
		q.put(at, q.heap[parent])
		at = parent
	}
	q.put(at, x)
}

func (q *Queue[T]) down(at int) {
	x := q.heap[at]
	for {
		child := 2*at + 1
		if child >= len(q.heap) {
			break
		}
		if right := child + 1; right < len(q.heap) && q.heap[right].before(&q.heap[child]) {
			child = right
		}
		if !q.heap[child].before(&x) {
			break
		}
		q.put(at, q.heap[child])
		at = child
	}
	q.put(at, x)
}
