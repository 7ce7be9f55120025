package admit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

const us = time.Microsecond

// at is an instant; the clock does not begin at zero.
func at(d time.Duration) clock.Time { return clock.Time(time.Hour).Add(d) }

// newCodel has a target of 80 us and an interval of 200 us.
func newCodel() *CoDel {
	c := NewCoDel(80*us, 200*us)
	return &c
}

// TestCoDelSchedule has a queue that stands at 100 us, from which one is taken every 5 us: the first drop comes one interval after the delay was
// first seen above the target, and the next ones at interval / sqrt(count).
func TestCoDelSchedule(t *testing.T) {
	c := newCodel()
	var drops []time.Duration
	for d := time.Duration(0); d < 2*time.Millisecond; d += 5 * us {
		if !c.Dequeue(at(d), 100*us, 10) {
			drops = append(drops, d)
		}
	}
	want, next := []time.Duration{200 * us}, 200*us
	for count := 1; ; count++ {
		next += time.Duration(200_000 / math.Sqrt(float64(count)))
		seen := (next + 5*us - 1) / (5 * us) * (5 * us) // one is taken every 5 us
		if seen >= 2*time.Millisecond {
			break
		}
		want = append(want, seen)
	}
	if !slices.Equal(drops, want) || len(drops) < 10 {
		t.Errorf("drops at\n%v, want\n%v", drops, want)
	}
}

// TestCoDelForgives: a delay below the target, or a queue of one, in each interval is a burst and no standing queue.
func TestCoDelForgives(t *testing.T) {
	for _, c := range []struct {
		name    string
		sojourn time.Duration
		queued  int
	}{{"below the target", 80*us - 1, 10}, {"the last one", time.Hour, 0}} {
		codel := newCodel()
		for i := range 10_000 {
			sojourn, queued := time.Millisecond, 10
			if i%40 == 39 { // 195 us after the last
				sojourn, queued = c.sojourn, c.queued
			}
			if !codel.Dequeue(at(time.Duration(i)*5*us), sojourn, queued) {
				t.Fatalf("%s: dropped at %d", c.name, i)
			}
		}
	}
	codel := newCodel()
	dropped := 0
	for i := range 1000 {
		if !codel.Dequeue(at(time.Duration(i)*5*us), 80*us, 1) {
			dropped++
		}
	}
	if dropped == 0 {
		t.Error("a delay at the target, and one behind it: nothing was dropped in 5 ms")
	}
}

// queueCoDel is RFC 8289 as it stands there, over a queue of arrival times: its dequeue goes on until it has one to deliver.
type queueCoDel struct {
	target, interval     time.Duration
	queue                []clock.Time
	firstAbove, dropNext clock.Time
	count, lastCount     uint32
	dropping             bool
	dropped              []clock.Time // arrival times
}

func (q *queueCoDel) next(now clock.Time) (arrived clock.Time, ok bool) {
	if len(q.queue) == 0 {
		q.firstAbove = 0
		return 0, false
	}
	arrived, q.queue = q.queue[0], q.queue[1:]
	if now.Sub(arrived) < q.target || len(q.queue) == 0 {
		q.firstAbove = 0
	} else if q.firstAbove == 0 {
		q.firstAbove = now.Add(q.interval)
	} else if now >= q.firstAbove {
		ok = true
	}
	return arrived, ok
}

func (q *queueCoDel) law(t clock.Time) clock.Time {
	return t.Add(time.Duration(float64(q.interval) / math.Sqrt(float64(q.count))))
}

func (q *queueCoDel) dequeue(now clock.Time) clock.Time {
	r, ok := q.next(now)
	if q.dropping {
		if !ok {
			q.dropping = false
		}
		for q.dropping && now >= q.dropNext {
			q.dropped = append(q.dropped, r)
			q.count++
			r, ok = q.next(now)
			if !ok {
				q.dropping = false
			} else {
				q.dropNext = q.law(q.dropNext)
			}
		}
	} else if ok {
		q.dropped = append(q.dropped, r)
		r, _ = q.next(now)
		q.dropping = true
		delta := q.count - q.lastCount
		q.count = 1
		if delta > 1 && now.Sub(q.dropNext) < 16*q.interval {
			q.count = delta
		}
		q.dropNext = q.law(now)
		q.lastCount = q.count
	}
	return r
}

// TestCoDelTwin runs both over the same arrivals, in bursts and lulls, and compares who was dropped and who was delivered when.
func TestCoDelTwin(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 200 {
		compareCoDel(t, rng)
	}
}

func compareCoDel(t *testing.T, rng *rand.Rand) {
	c := newCodel()
	twin := &queueCoDel{target: c.target, interval: c.interval}
	var queue, dropped []clock.Time
	now, gap := at(0), 10.0
	for range 3000 {
		if rng.IntN(300) == 0 {
			gap = 3 + 15*rng.Float64()
		}
		now = now.Add(time.Duration(rng.ExpFloat64() * gap * 1000))
		if rng.IntN(2) == 0 {
			queue = append(queue, now)
			twin.queue = append(twin.queue, now)
			continue
		}
		delivered := clock.Time(0)
		for len(queue) > 0 && delivered == 0 {
			head := queue[0]
			queue = queue[1:]
			if c.Dequeue(now, now.Sub(head), len(queue)) {
				delivered = head
			} else {
				dropped = append(dropped, head)
			}
		}
		if want := twin.dequeue(now); delivered != want || !slices.Equal(dropped, twin.dropped) {
			t.Fatalf("at %v: delivered %v, want %v; %d dropped, want %d", now, delivered, want, len(dropped), len(twin.dropped))
		}
	}
}
