package client

import (
	"errors"
	"slices"
	"testing"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

type call struct {
	id       int
	deadline clock.Time
	level    uint8
	order    int
	waiter   Waiter[call]
}

func newCalls(n int) []call {
	calls := make([]call, n)
	for i := range calls {
		calls[i].id = i
		calls[i].waiter.Value = &calls[i]
	}
	return calls
}

func TestQueueOrder(t *testing.T) {
	q := NewQueue[call](8)
	calls := newCalls(6)
	for i, deadline := range []clock.Time{0, 30, 10, 30, 0, 20} {
		if err := q.Push(&calls[i].waiter, deadline); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{2, 5, 1, 3, 0, 4} {
		if w, _ := q.Peek(); w.Value.id != want {
			t.Fatalf("peeked at %d, want %d", w.Value.id, want)
		}
		if w := q.Pop(); w.Value.id != want || w.Queued() {
			t.Fatalf("got %d, want %d", w.Value.id, want)
		}
	}
	if w, _ := q.Peek(); w != nil || q.Pop() != nil {
		t.Fatal("something in an empty queue")
	}
}

func TestQueueBound(t *testing.T) {
	q := NewQueue[call](2)
	calls := newCalls(3)
	for i := range 2 {
		if err := q.Push(&calls[i].waiter, 5); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Push(&calls[2].waiter, 1); !errors.Is(err, ErrQueueFull) || calls[2].waiter.Queued() {
		t.Fatal(err)
	}
	if !q.Remove(&calls[0].waiter) || q.Remove(&calls[0].waiter) {
		t.Fatal("not removed, or twice")
	}
	h := q.heaps[levelDefault]
	for _, x := range h[:cap(h)][len(h):] {
		if x.waiter != nil {
			t.Fatal("the queue still holds what has left it")
		}
	}
	defer func() {
		if recover() == nil {
			t.Fatal("queued twice")
		}
	}()
	_ = q.Push(&calls[1].waiter, 5)
}

// The twin sorts a slice anew each time. Removal from anywhere is part of it: calls are cancelled and expire.
func TestQueueAgainstTwin(t *testing.T) {
	random := seedtest.Rand(t)
	for range 50 {
		calls := newCalls(60)
		q := NewQueue[call](40)
		var twin []*call
		var passed [QueueLevels]int
		for step := range 2000 {
			c := &calls[random.IntN(len(calls))]
			switch {
			case random.IntN(3) == 0:
				if (q.Len() == 0) != (len(twin) == 0) {
					t.Fatal("lengths differ")
				}
				if w := q.Pop(); w != nil {
					at := turn(twin, &passed)
					if w.Value != twin[at] {
						t.Fatalf("step %d: popped %d, want %d", step, w.Value.id, twin[at].id)
					}
					twin = slices.Delete(twin, at, at+1)
				}
			case c.waiter.Queued():
				if !q.Remove(&c.waiter) {
					t.Fatal("not removed")
				}
				twin = slices.DeleteFunc(twin, func(x *call) bool { return x == c })
			default:
				c.deadline, c.order, c.level = clock.Time(random.IntN(20)), step, uint8(random.IntN(QueueLevels))
				err := q.PushLevel(&c.waiter, c.level, c.deadline)
				if (err != nil) != (len(twin) == 40) {
					t.Fatal(err)
				}
				if err == nil {
					twin = append(twin, c)
					slices.SortFunc(twin, compareCalls)
				}
			}
			for level := range passed {
				if !slices.ContainsFunc(twin, func(c *call) bool { return int(c.level) == level }) {
					passed[level] = 0
				}
			}
			if q.Len() != len(twin) {
				t.Fatalf("step %d: %d queued, want %d", step, q.Len(), len(twin))
			}
		}
	}
}

// turn is the index of the call that is to be taken: the first one, unless a lower level has been passed over 49 times, the lowest such. It notes who is
// passed over.
func turn(twin []*call, passed *[QueueLevels]int) int {
	at := 0
	for i := len(twin) - 1; i >= 0; i-- { // the lowest level is last
		if passed[twin[i].level] >= starvedAfter {
			level := twin[i].level
			at = slices.IndexFunc(twin, func(c *call) bool { return c.level == level })
			break
		}
	}
	lower := map[uint8]bool{}
	for _, c := range twin {
		if c.level < twin[at].level {
			lower[c.level] = true
		}
	}
	for level := range lower {
		passed[level]++
	}
	passed[twin[at].level] = 0
	return at
}

// TestQueueLevels: the higher level first, whatever the deadline, and a lower one has one turn in fifty for as long as it waits.
func TestQueueLevels(t *testing.T) {
	q := NewQueue[call](1000)
	calls := newCalls(400)
	for i := range calls {
		calls[i].level = uint8(i % 4)
		if err := q.PushLevel(&calls[i].waiter, calls[i].level, clock.Time(1000-i)); err != nil {
			t.Fatal(err)
		}
	}
	var got [QueueLevels]int
	for range 100 {
		got[q.Pop().Value.level]++
	}
	if got != [QueueLevels]int{2, 1, 1, 96} {
		t.Errorf("of a hundred: %v", got)
	}
	if w := calls[0].waiter; q.Remove(&calls[0].waiter) != w.Queued() {
		t.Error("not removed")
	}
	if err := q.PushLevel(&Waiter[call]{Value: &call{level: 9}}, 9, 1); err != nil || q.Pop().Value.level != 9 {
		t.Error("a level above the highest is not the highest")
	}
}

func compareCalls(a, b *call) int {
	switch {
	case a.level != b.level:
		return int(b.level) - int(a.level)
	case a.deadline == b.deadline:
		return a.order - b.order
	case a.deadline == 0:
		return 1
	case b.deadline == 0:
		return -1
	}
	return int(a.deadline - b.deadline)
}

func TestQueueAllocatesNothing(t *testing.T) {
	q := NewQueue[call](64)
	calls := newCalls(64)
	allocs := testing.AllocsPerRun(100, func() {
		for i := range calls {
			_ = q.Push(&calls[i].waiter, clock.Time(i*37%64))
		}
		for q.Pop() != nil {
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations", allocs)
	}
}

func BenchmarkQueuePushPop(b *testing.B) {
	q := NewQueue[call](256)
	calls := newCalls(256)
	for i := range 128 {
		_ = q.Push(&calls[i].waiter, clock.Time(i))
	}
	for i := range b.N {
		w := q.Pop()
		_ = q.Push(w, clock.Time(i+128))
	}
}

// TestOldest compares it with the order of arrival, which the deadlines do not follow.
func TestOldest(t *testing.T) {
	q := NewQueue[int](8)
	if q.Oldest() != nil || q.Capacity() != 8 {
		t.Fatal("an empty queue")
	}
	deadlines := []clock.Time{50, 0, 10, 70, 10, 30}
	all := make([]Waiter[int], len(deadlines))
	for i, at := range deadlines {
		if err := q.Push(&all[i], at); err != nil {
			t.Fatal(err)
		}
	}
	for i := range all {
		if q.Oldest() != &all[i] {
			t.Fatalf("%d is not the oldest", i)
		}
		q.Remove(&all[i])
	}
}

// A turn is one of a lower level while a higher one waits.
func TestTurn(t *testing.T) {
	q := NewQueue[int](200)
	waiters := make([]Waiter[int], 200)
	push := func(i int, level uint8) {
		if err := q.PushLevel(&waiters[i], level, 0); err != nil {
			t.Fatal(err)
		}
	}
	if q.Turn() {
		t.Error("an empty queue has a turn")
	}
	push(0, 0)
	if q.Turn() {
		t.Error("whoever is alone has a turn")
	}
	for i := range starvedAfter {
		push(1+i, 3)
		if q.Turn() || q.Pop() == &waiters[0] {
			t.Fatalf("a turn after %d", i)
		}
	}
	if q.Turn() {
		t.Error("a turn with nobody above")
	}
	push(100, 3)
	if !q.Turn() || q.Pop() != &waiters[0] || q.Turn() {
		t.Error("no turn, or two")
	}
}
