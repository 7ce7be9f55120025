package dispatcher

import (
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// TestQueueTwin compares the ring with a slice: requests are put, taken from either end, and given up wherever they stand.
func TestQueueTwin(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 100 {
		q, m := &requestQueue{}, &Method{}
		var twin []*Request
		now := clock.Time(1000)
		taken := func(step int, got *Request, i int) {
			t.Helper()
			if len(twin) == 0 {
				if got != nil {
					t.Fatalf("step %d: took one from an empty queue", step)
				}
				return
			}
			if got != twin[i] {
				t.Fatalf("step %d: took another one of %d", step, len(twin))
			}
			twin = slices.Delete(twin, i, i+1)
		}
		grow := 1 + rng.IntN(6)
		for step := range 3000 {
			now += clock.Time(rng.IntN(10))
			m.admit.Age.Sample(time.Duration(rng.IntN(1000)))
			switch n := rng.IntN(6 + grow); {
			case n < 1:
				taken(step, q.pop(), 0)
			case n < 2:
				taken(step, q.popNewest(), len(twin)-1)
			case n < 4 && len(twin) > 0:
				i := rng.IntN(len(twin))
				q.remove(twin[i])
				twin = slices.Delete(twin, i, i+1)
			default:
				r := &Request{Method: m, enqueued: now}
				q.push(r)
				twin = append(twin, r)
			}
			var work, age time.Duration
			for _, r := range twin {
				work += r.cost
			}
			if len(twin) > 0 {
				age = now.Sub(twin[0].enqueued)
			}
			if q.live != len(twin) || q.work != work || q.age(now) != age {
				t.Fatalf("step %d: %d with %v of work, aged %v; want %d, %v, %v", step, q.live, q.work, q.age(now), len(twin), work, age)
			}
		}
	}
}
