package admit

import (
	"math/big"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

func TestBucketBounds(t *testing.T) {
	for _, c := range []struct {
		name        string
		rate, burst int
		cost        int
		want        int           // in a row, of a full one
		again       time.Duration // then
	}{
		{"one a second", 1, 1, 1, 1, time.Second},
		{"a burst", 1000, 10, 1, 10, time.Millisecond},
		{"a third of a second is rounded up", 3, 1, 1, 1, 333_333_334},
		{"costs in units", 1000, 10, 3, 3, 2 * time.Millisecond},
		{"a cost below one is one", 1000, 2, -7, 2, time.Millisecond},
		{"a burst below one is one", 1000, -1, 1, 1, time.Millisecond},
		{"more than the burst passes when it is full", 1000, 10, 25, 1, 25 * time.Millisecond},
		{"no cost is beyond its bound", 1000, 10, 1 << 40, 1, CostMax * time.Millisecond},
		{"the fastest", 1 << 62, 1, 1, 1, 1},
		{"the largest", 1, 1 << 62, CostMax, 1, CostMax * time.Second},
		{"the largest debt", 1, 1, CostMax, 1, CostMax * time.Second},
	} {
		b, n := NewBucket(c.rate, c.burst), 0
		for {
			ok, again := b.Take(at(0), c.cost)
			if !ok {
				if again != c.again {
					t.Errorf("%s: again after %v, want %v", c.name, again, c.again)
				}
				if ok, _ := b.Take(at(again-1), c.cost); ok && again > 1 {
					t.Errorf("%s: there is enough before %v", c.name, again)
				}
				if ok, _ := b.Take(at(again), c.cost); !ok {
					t.Errorf("%s: not enough after %v", c.name, again)
				}
				break
			}
			n++
		}
		if n != c.want {
			t.Errorf("%s: %d, want %d", c.name, n, c.want)
		}
	}
	var none Bucket
	negative := NewBucket(-1, 1)
	for range 1000 {
		if ok, _ := none.Take(at(0), CostMax); !ok || none.Limits() {
			t.Fatal("the zero bucket limits")
		}
		if ok, _ := negative.Take(at(0), CostMax); !ok {
			t.Fatal("a bucket of no rate limits")
		}
	}
}

// TestBucketGive: what is given back is there again, and no more than the burst.
func TestBucketGive(t *testing.T) {
	b := NewBucket(1, 5)
	b.Take(at(0), 4)
	b.Give(4)
	b.Give(1000)
	if ok, _ := b.Take(at(0), 5); !ok {
		t.Error("what was given back is not there")
	}
	if ok, _ := b.Take(at(0), 1); ok {
		t.Error("more than the burst")
	}
}

// bucketTwin keeps tokens as fractions that lose nothing.
type bucketTwin struct {
	rate, burst, tokens *big.Rat
	at                  clock.Time
}

func (b *bucketTwin) take(now clock.Time, cost int) (bool, time.Duration) {
	if elapsed := now.Sub(b.at); elapsed > 0 {
		gain := new(big.Rat).Mul(b.rate, big.NewRat(int64(elapsed), int64(time.Second)))
		b.tokens.Add(b.tokens, gain)
	}
	b.at = now
	if b.tokens.Cmp(b.burst) > 0 {
		b.tokens.Set(b.burst)
	}
	price, need := big.NewRat(int64(cost), 1), big.NewRat(int64(cost), 1)
	if need.Cmp(b.burst) > 0 {
		need.Set(b.burst)
	}
	if b.tokens.Cmp(need) >= 0 {
		b.tokens.Sub(b.tokens, price)
		return true, 0
	}
	need.Sub(need, b.tokens)
	need.Quo(need, b.rate)
	need.Mul(need, big.NewRat(int64(time.Second), 1))
	wait := new(big.Int).Add(need.Num(), new(big.Int).Sub(need.Denom(), big.NewInt(1)))
	return false, time.Duration(wait.Quo(wait, need.Denom()).Int64())
}

// TestBucketTwin compares every decision and every time, with clocks that stand, jump and go back.
func TestBucketTwin(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 60 {
		rate, burst := 1+rng.IntN(1<<uint(1+rng.IntN(30))), 1+rng.IntN(1<<uint(1+rng.IntN(20)))
		b := NewBucket(rate, burst)
		twin := &bucketTwin{big.NewRat(int64(rate), 1), big.NewRat(int64(burst), 1), big.NewRat(int64(burst), 1), 0}
		now := at(0)
		for i := range 300 {
			switch rng.IntN(20) {
			case 0:
				now = now.Add(time.Duration(rng.Int64N(int64(time.Hour))))
			case 1:
				now = now.Add(-time.Duration(rng.Int64N(int64(time.Minute))))
			default:
				now = now.Add(time.Duration(rng.Int64N(3*int64(time.Second)/int64(rate) + 2)))
			}
			cost := 1 + rng.IntN(1<<uint(rng.IntN(8)))
			ok, again := b.Take(now, cost)
			if wantOK, wantAgain := twin.take(now, cost); ok != wantOK || again != wantAgain {
				t.Fatalf("rate %d, burst %d, step %d: %v %v, want %v %v", rate, burst, i, ok, again, wantOK, wantAgain)
			}
		}
	}
}

// TestBucketRate: over any stretch, no more than the burst and the rate, however often it is asked.
func TestBucketRate(t *testing.T) {
	rng := seedtest.Rand(t)
	b := NewBucket(1000, 50)
	now, taken := at(0), 0
	for range 200_000 {
		now = now.Add(time.Duration(rng.IntN(int(100 * us))))
		if ok, _ := b.Take(now, 1); ok {
			taken++
		}
	}
	want := 50 + int(now.Sub(at(0))/time.Millisecond)
	if taken < want-1 || taken > want {
		t.Errorf("%d in %v, want %d", taken, now.Sub(at(0)), want)
	}
}
