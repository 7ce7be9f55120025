package client

import (
	"errors"
	"math"
	"slices"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// ErrQueueFull is returned by Push when the queue holds as many requests as it may.
var ErrQueueFull = errors.New("client: queue is full")

// QueueLevels is how many levels of criticality a queue knows: 0 is the lowest.
const QueueLevels = 4

// levelDefault is that of a request which says nothing: the second highest, critical.
const levelDefault = 2

// starvedAfter is how many requests of higher levels are taken while one of a lower level waits, before it has a turn: each level keeps 2 %.
const starvedAfter = 49

// Waiter is the place of one request in a queue. It lies inside the request, so queueing allocates nothing. The zero
// Waiter is in no queue; it can be in one at a time, and must not be copied then.
type Waiter[T any] struct {
	Value *T // what waits; the queue never touches it

	at    int // 1 + index in the heap; 0 = not queued
	level uint8
}

// Queued reports whether w is in a queue.
func (w *Waiter[T]) Queued() bool { return w.at != 0 }

// waiting is one element of a heap. The key is here and not in the Waiter, so that sifting touches no other memory.
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

// Queue holds the requests that wait for a credit: the higher level first; within one, earliest deadline first, equal deadlines in order of arrival, those
// without a deadline last. A lower level that waits has one turn in fifty, or it would starve while there is enough of the higher ones.
// Binary heaps: Push, Pop and Remove are O(log n), and allocate nothing once they have grown.
type Queue[T any] struct {
	count    int32 // first: in most queues it is all that is read
	capacity int32
	order    uint64
	passed   [QueueLevels]uint8 // requests of higher levels taken since this one had a turn, while it waited
	heaps    [QueueLevels]waitHeap[T]
}

// NewQueue makes an empty queue for at most capacity requests; zero or less means 1.
func NewQueue[T any](capacity int) *Queue[T] {
	return &Queue[T]{capacity: int32(min(max(capacity, 1), math.MaxInt32))}
}

// Len returns the number of waiting requests: the demand.
func (q *Queue[T]) Len() int { return int(q.count) }

// Push queues w by its deadline; an unset deadline is never. It returns ErrQueueFull when the queue is full, and
// panics when w is queued already.
func (q *Queue[T]) Push(w *Waiter[T], deadline clock.Time) error {
	return q.PushLevel(w, levelDefault, deadline)
}

// PushLevel is Push of a request with a level; one above the highest counts as that.
func (q *Queue[T]) PushLevel(w *Waiter[T], level uint8, deadline clock.Time) error {
	if w.at != 0 {
		panic("client: a request was queued twice")
	}
	if q.count >= q.capacity {
		return ErrQueueFull
	}
	q.order++
	q.count++
	w.level = min(level, QueueLevels-1)
	h := &q.heaps[w.level]
	*h = append(*h, waiting[T]{deadline: deadline, order: q.order, waiter: w})
	h.up(len(*h) - 1)
	return nil
}

// next is the heap whose turn it is; empty when all are.
func (q *Queue[T]) next() waitHeap[T] {
	top := QueueLevels - 1
	for top > 0 && len(q.heaps[top]) == 0 {
		top--
	}
	if len(q.heaps[top]) == q.Len() { // nobody is passed over
		return q.heaps[top]
	}
	for level := range top {
		if len(q.heaps[level]) > 0 && q.passed[level] >= starvedAfter {
			return q.heaps[level]
		}
	}
	return q.heaps[top]
}

// Peek returns the request that Pop would take, and its deadline; nil when the queue is empty.
func (q *Queue[T]) Peek() (w *Waiter[T], deadline clock.Time) {
	h := q.next()
	if len(h) == 0 {
		return nil, 0
	}
	return h[0].waiter, h[0].deadline
}

// Turn reports whether Pop would take a request of a lower level before one of a higher: it has its turn.
func (q *Queue[T]) Turn() bool {
	h := q.next()
	if len(h) == q.Len() { // there is no other level, or nothing at all
		return false
	}
	above := q.heaps[h[0].waiter.level+1:]
	return slices.ContainsFunc(above, func(h waitHeap[T]) bool { return len(h) > 0 })
}

// Oldest returns the request that was pushed first; nil when the queue is empty. It looks at all of them: for short queues.
func (q *Queue[T]) Oldest() *Waiter[T] {
	var oldest *waiting[T]
	for level := range q.heaps {
		h := q.heaps[level]
		for i := range h {
			if oldest == nil || h[i].order < oldest.order {
				oldest = &h[i]
			}
		}
	}
	if oldest == nil {
		return nil
	}
	return oldest.waiter
}

// Capacity returns how many requests may wait.
func (q *Queue[T]) Capacity() int { return int(q.capacity) }

// Pop takes the request whose turn it is out; nil when the queue is empty.
func (q *Queue[T]) Pop() *Waiter[T] {
	h := q.next()
	if len(h) == 0 {
		return nil
	}
	w := h[0].waiter
	for level := 0; level < int(w.level) && len(h) < q.Len(); level++ {
		if len(q.heaps[level]) > 0 {
			q.passed[level] = min(q.passed[level]+1, starvedAfter)
		}
	}
	q.passed[w.level] = 0
	q.Remove(w)
	return w
}

// Remove takes w out, wherever it stands, and reports whether it was in the queue. A Waiter of another queue is a
// fault of the caller.
func (q *Queue[T]) Remove(w *Waiter[T]) bool {
	if w.at == 0 {
		return false
	}
	h := &q.heaps[w.level]
	h.remove(w.at - 1)
	if len(*h) == 0 {
		q.passed[w.level] = 0 // nobody there is starved
	}
	q.count--
	w.at = 0
	return true
}

// waitHeap is the binary heap of one level.
type waitHeap[T any] []waiting[T]

func (h *waitHeap[T]) remove(at int) {
	last := len(*h) - 1
	moved := (*h)[last]
	(*h)[last] = waiting[T]{} // what has left must not stay reachable
	*h = (*h)[:last]
	if at != last {
		h.put(at, moved)
		h.down(at)
		h.up(at)
	}
}

func (h waitHeap[T]) put(at int, x waiting[T]) {
	h[at] = x
	x.waiter.at = at + 1
}

func (h waitHeap[T]) up(at int) {
	x := h[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !x.before(&h[parent]) {
			break
		}
		h.put(at, h[parent])
		at = parent
	}
	h.put(at, x)
}

func (h waitHeap[T]) down(at int) {
	x := h[at]
	for {
		child := 2*at + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].before(&h[child]) {
			child = right
		}
		if !h[child].before(&x) {
			break
		}
		h.put(at, h[child])
		at = child
	}
	h.put(at, x)
}
