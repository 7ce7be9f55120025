package frame_test

import (
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

func newPool(t *testing.T, count int, checked bool) *frame.Pool {
	t.Helper()
	pool, err := frame.NewPool(frame.Config{Count: count, SizeBytes: 2048, Checked: checked})
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

func TestPoolIsLastInFirstOut(t *testing.T) {
	pool := newPool(t, 4, true)
	first, _ := pool.Take(frame.Tx, 0)
	second, _ := pool.Take(frame.Tx, 0)
	if first != 0 || second != 2048 {
		t.Errorf("took %d and %d, want the lowest first", first, second)
	}
	pool.Move(second, frame.Tx, frame.Free)
	pool.Move(first, frame.Tx, frame.Free)
	if again, _ := pool.Take(frame.Tx, 0); again != first {
		t.Errorf("took %d, want the last given back, %d", again, first)
	}
}

func TestPoolRefusesNonsense(t *testing.T) {
	for _, cfg := range []frame.Config{{Count: 0, SizeBytes: 2048}, {Count: 1, SizeBytes: 3000}, {Count: 1}} {
		if _, err := frame.NewPool(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

func TestMoveMasksToTheFrame(t *testing.T) {
	pool := newPool(t, 4, true)
	addr, _ := pool.Take(frame.Fill, 0)
	if !pool.Move(addr+256+8, frame.Fill, frame.Rx) || !pool.Move(addr+2047, frame.Rx, frame.Free) {
		t.Error("an address inside the frame was refused")
	}
	if pool.Base(4096+264) != 4096 {
		t.Error("wrong base")
	}
	if pool.Contains(2048, 2049) || pool.Contains(4*2048, 1) || pool.Contains(1<<63, 1) || !pool.Contains(2048+264, 1784) {
		t.Error("Contains is wrong")
	}
}

func TestWrongMoves(t *testing.T) {
	moves := []struct {
		name string
		move func(*frame.Pool, frame.Addr) bool
		want string
	}{
		{"double free", func(p *frame.Pool, a frame.Addr) bool {
			p.Move(a, frame.Tx, frame.Free)
			return p.Move(a, frame.Tx, frame.Free)
		}, "double free"},
		{"wrong owner", func(p *frame.Pool, a frame.Addr) bool { return p.Move(a, frame.Kernel, frame.Free) }, "its owner is tx"},
		{"outside", func(p *frame.Pool, _ frame.Addr) bool { return p.Move(1<<40, frame.Tx, frame.Free) }, "outside"},
	}
	for _, test := range moves {
		t.Run(test.name, func(t *testing.T) {
			pool := newPool(t, 2, false)
			addr, _ := pool.Take(frame.Tx, 0)
			if test.move(pool, addr) {
				t.Error("accepted")
			}
			if err := pool.Audit(); err != nil {
				t.Error(err)
			}
			checked := newPool(t, 2, true)
			addr, _ = checked.Take(frame.Tx, 0)
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, test.want) {
					t.Errorf("panic %q, want %q in it", text, test.want)
				}
			}()
			test.move(checked, addr)
		})
	}
}

// TestPoolAgainstTwin runs random moves, right and wrong, beside a map from frame to owner.
func TestPoolAgainstTwin(t *testing.T) {
	random := seedtest.Rand(t)
	const count = 16
	pool, twin := newPool(t, count, false), map[frame.Addr]frame.Owner{}
	for i := range count {
		twin[frame.Addr(i*2048)] = frame.Free
	}
	for range 20000 {
		if random.IntN(3) == 0 {
			to := frame.Owner(1 + random.IntN(4))
			addr, ok := pool.Take(to, 0)
			if ok && twin[addr] != frame.Free {
				t.Fatalf("took %d, which %v owns", addr, twin[addr])
			}
			if ok {
				twin[addr] = to
			}
		} else {
			addr := frame.Addr(random.IntN(count * 2048))
			from, to := frame.Owner(random.IntN(5)), frame.Owner(random.IntN(5))
			base := pool.Base(addr)
			want := twin[base] == from && from != frame.Free
			if got := pool.Move(addr, from, to); got != want {
				t.Fatalf("move %d from %v to %v: %v, want %v", addr, from, to, got, want)
			}
			if want {
				twin[base] = to
			}
		}
		var counts [5]int
		for _, owner := range twin {
			counts[owner]++
		}
		for owner, want := range counts {
			if got := pool.Count(frame.Owner(owner)); got != want {
				t.Fatalf("%v has %d, want %d", frame.Owner(owner), got, want)
			}
		}
		if err := pool.Audit(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRevoke takes what the rings of one queue hold, and nothing else.
func TestRevoke(t *testing.T) {
	pool, err := frame.NewPool(frame.Config{Count: 8, SizeBytes: 2048, Holders: 2, Checked: true})
	if err != nil {
		t.Fatal(err)
	}
	take := func(to frame.Owner, by frame.Holder) frame.Addr {
		addr, ok := pool.Take(to, by)
		if !ok {
			t.Fatal("no frame left")
		}
		return addr
	}
	take(frame.Fill, 0)
	take(frame.Fill, 1)
	received := take(frame.Fill, 1)
	pool.Move(received, frame.Fill, frame.Rx)
	lent := take(frame.Tx, 0)
	sent := take(frame.Tx, 0)
	pool.MoveOn(sent, frame.Tx, frame.Kernel, 1)
	if held := pool.Held(1, frame.Kernel); held != 1 {
		t.Errorf("queue 1 has %d frames in the kernel, want the one that was sent there", held)
	}
	if count := pool.Revoke(1); count != 2 {
		t.Errorf("revoked %d frames, want the filled and the sent one", count)
	}
	for _, want := range []struct {
		owner frame.Owner
		count int
	}{{frame.Fill, 1}, {frame.Rx, 1}, {frame.Tx, 1}, {frame.Kernel, 0}, {frame.Free, 5}} {
		if got := pool.Count(want.owner); got != want.count {
			t.Errorf("%v has %d frames, want %d", want.owner, got, want.count)
		}
	}
	pool.Move(received, frame.Rx, frame.Away)
	if pool.Revoke(1) != 0 || pool.Count(frame.Away) != 1 {
		t.Error("a frame that another dispatcher reads went to the pool")
	}
	pool.Move(received, frame.Away, frame.Free)
	pool.Move(lent, frame.Tx, frame.Free)
	if err := pool.Audit(); err != nil {
		t.Error(err)
	}
}

// TestHolders at the bound: a byte names the queue.
func TestHolders(t *testing.T) {
	for _, test := range []struct {
		holders int
		legal   bool
	}{{0, true}, {frame.HoldersMax, true}, {frame.HoldersMax + 1, false}} {
		if _, err := frame.NewPool(frame.Config{Count: 1, SizeBytes: 2048, Holders: test.holders}); (err == nil) != test.legal {
			t.Errorf("%d holders: %v", test.holders, err)
		}
	}
}

func BenchmarkTakeMove(b *testing.B) {
	pool, err := frame.NewPool(frame.Config{Count: 64, SizeBytes: 2048})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		addr, _ := pool.Take(frame.Tx, 0)
		pool.Move(addr, frame.Tx, frame.Kernel)
		pool.Move(addr, frame.Kernel, frame.Free)
	}
}
