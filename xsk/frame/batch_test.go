package frame_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// TestBatchesAgainstOneByOne does everything to two pools, of which one takes and moves frame by frame.
func TestBatchesAgainstOneByOne(t *testing.T) {
	random := seedtest.Rand(t)
	const count, holders = 16, 3
	newOne := func() *frame.Pool {
		pool, err := frame.NewPool(frame.Config{Count: count, SizeBytes: 2048, Holders: holders})
		if err != nil {
			t.Fatal(err)
		}
		return pool
	}
	fast, slow := newOne(), newOne()
	for range 20000 {
		if random.IntN(2) == 0 {
			to, by := frame.Owner(1+random.IntN(4)), frame.Holder(random.IntN(holders))
			n := random.IntN(fast.Count(frame.Free)/2 + 1)
			taken := slices.Clone(fast.TakeAll(n, to, by))
			slices.Reverse(taken)
			for _, addr := range taken {
				if want, _ := slow.Take(to, by); addr != want {
					t.Fatalf("took %#x, want %#x", addr, want)
				}
			}
		} else {
			moveBoth(t, random, fast, slow)
		}
		for owner := frame.Free; owner <= frame.Kernel; owner++ {
			for by := range frame.Holder(holders) {
				if fast.Held(by, owner) != slow.Held(by, owner) || fast.Count(owner) != slow.Count(owner) {
					t.Fatalf("%v has %d of queue %d, want %d", owner, fast.Held(by, owner), by, slow.Held(by, owner))
				}
			}
		}
		if err := fast.Audit(); err != nil {
			t.Fatal(err)
		}
	}
}

// moveBoth moves a batch of good, wrong, repeated and foreign addresses in both pools. What was not refused must stand first.
func moveBoth(t *testing.T, random *rand.Rand, fast, slow *frame.Pool) {
	t.Helper()
	from, to := frame.Owner(random.IntN(5)), frame.Owner(random.IntN(5))
	batch := make([]frame.Desc, random.IntN(8))
	for i := range batch {
		batch[i] = frame.Desc{Addr: frame.Addr(random.IntN((fast.Total() + 1) * fast.Size())), Len: random.Uint32()}
	}
	var want []frame.Desc
	for _, d := range batch {
		if slow.Move(d.Addr, from, to) {
			want = append(want, d)
		}
	}
	if n := fast.MoveAll(batch, from, to); !slices.Equal(batch[:n], want) {
		t.Fatalf("moved %v from %v to %v, want %v", batch[:n], from, to, want)
	}
}

// TestContainsAll is Contains of each, at every edge.
func TestContainsAll(t *testing.T) {
	pool := newPool(t, 4, false)
	for _, addr := range []frame.Addr{0, 1, 2047, 2048, 4*2048 - 1, 4 * 2048, 1 << 62, 1<<63 - 1, 1 << 63, math.MaxUint64 - 2047, math.MaxUint64} {
		for _, length := range []uint32{0, 1, 2, 2047, 2048, 2049, math.MaxUint32} {
			good, odd := frame.Desc{Addr: 2048, Len: 64}, frame.Desc{Addr: addr, Len: length}
			want := pool.Contains(addr, length)
			if got := pool.ContainsAll([]frame.Desc{good, odd, good}); got != want {
				t.Errorf("%#x, %d bytes: %v, want %v", addr, length, got, want)
			}
		}
	}
}

// TestMoveAllPanics says that a checked pool notices a frame that stands twice in a batch, with its books in order.
func TestMoveAllPanics(t *testing.T) {
	pool := newPool(t, 4, true)
	addr, _ := pool.Take(frame.Rx, 0)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a frame was given back twice, and nobody minded")
			}
		}()
		pool.MoveAll([]frame.Desc{{Addr: addr}, {Addr: addr + 8}}, frame.Rx, frame.Free)
	}()
	if err := pool.Audit(); err != nil {
		t.Error(err)
	}
}

func BenchmarkMoveAll(b *testing.B) {
	pool, err := frame.NewPool(frame.Config{Count: 64, SizeBytes: 2048})
	if err != nil {
		b.Fatal(err)
	}
	batch := make([]frame.Desc, 32)
	for b.Loop() {
		for i, addr := range pool.TakeAll(len(batch), frame.Fill, 0) {
			batch[i].Addr = addr
		}
		pool.MoveAll(batch, frame.Fill, frame.Rx)
		pool.MoveAll(batch, frame.Rx, frame.Free)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(batch)), "ns/frame")
}
