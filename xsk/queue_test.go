//go:build linux

package xsk_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
	"github.com/stillwater-rpc/stillwater/xsk/xsktest"
)

// smallConfig is a queue whose every limit is met soon.
var smallConfig = xsk.Config{
	FillRingSize: 16, RxRingSize: 16, TxRingSize: 64, CompletionRingSize: 64, FrameCount: 112,
}

func newTestQueue(t testing.TB, cfg xsk.Config) (*xsk.Queue, *xsktest.Kernel) {
	t.Helper()
	kernel := xsktest.NewKernel(cfg, nearWrap)
	queue, err := kernel.Queue()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := queue.Audit(); err != nil {
			t.Error(err)
		}
	})
	return queue, kernel
}

func losses(t *testing.T, queue *xsk.Queue) xsk.Losses {
	t.Helper()
	statistics, err := queue.Statistics()
	if err != nil {
		t.Fatal(err)
	}
	return statistics.Losses
}

// submit lends, fills and submits one packet.
func submit(t testing.TB, queue *xsk.Queue, content []byte) bool {
	t.Helper()
	addr, packet, ok := queue.Lend()
	if !ok {
		return false
	}
	copy(packet, content)
	if !queue.Submit(frame.Desc{Addr: addr, Len: uint32(len(content))}) {
		t.Fatal("a good packet was refused")
	}
	return true
}

// TestConfigNamesLegalValues checks that each refusal is ErrConfig and says what would do.
func TestConfigNamesLegalValues(t *testing.T) {
	for _, test := range []struct {
		change func(*xsk.Config)
		want   string
	}{
		{func(c *xsk.Config) { c.FrameSizeBytes = 1024 }, "legal are 2048 and 4096"},
		{func(c *xsk.Config) { c.FrameSizeBytes = 8192 }, "legal are 2048 and 4096"},
		{func(c *xsk.Config) { c.RxRingSize = 1000 }, "powers of two up to 65536"},
		{func(c *xsk.Config) { c.FillRingSize = -1 }, "powers of two up to 65536"},
		{func(c *xsk.Config) { c.TxRingSize = 131072 }, "powers of two up to 65536"},
		{func(c *xsk.Config) { c.CompletionRingSize = 32 }, "at least the TX ring's 64"},
		{func(c *xsk.Config) { c.FrameCount = 95 }, "fill + RX + TX = 96"},
		{func(c *xsk.Config) { c.Headroom = 4 }, "multiples of 8 below 1784"},
		{func(c *xsk.Config) { c.Headroom = 1784 }, "multiples of 8 below 1784"},
		{func(c *xsk.Config) { c.Mode = 9 }, "mode 9"},
	} {
		cfg := smallConfig
		test.change(&cfg)
		_, err := xsk.Open(cfg)
		if !errors.Is(err, xsk.ErrConfig) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %q in it", err, test.want)
		}
	}
}

// TestQueueReceives delivers packets of random sizes in random bursts and holds some while others arrive.
func TestQueueReceives(t *testing.T) {
	random := seedtest.Rand(t)
	cfg := smallConfig
	cfg.Checked, cfg.Headroom = true, 64
	queue, kernel := newTestQueue(t, cfg)
	type arrival struct {
		packet []byte
		stamp  uint64
	}
	var expected []arrival
	var held []frame.Desc
	batch := make([]frame.Desc, 8)
	for range 20000 {
		switch random.IntN(3) {
		case 0:
			packet := make([]byte, 1+random.IntN(queue.PacketSizeMax()))
			for i := range packet {
				packet[i] = byte(random.Uint32())
			}
			stamp := random.Uint64() * uint64(random.IntN(2)) // every other has none
			if kernel.Deliver(packet, stamp) {
				expected = append(expected, arrival{packet, stamp})
			}
		case 1:
			for _, desc := range batch[:queue.Receive(batch)] {
				if got := queue.Bytes(desc); !bytes.Equal(got, expected[0].packet) {
					t.Fatalf("received %d bytes, want %d others", len(got), len(expected[0].packet))
				}
				// Without metadata the packet starts earlier, and what is before it was never written.
				if got := queue.Stamp(desc); got != expected[0].stamp {
					t.Fatalf("stamp %d, want %d", got, expected[0].stamp)
				}
				expected = expected[1:]
				held = append(held, desc)
			}
		case 2:
			queue.Release(held)
			held = held[:0]
			queue.Refill()
			if kernel.Rx.Len() == 0 && kernel.Fill.Len() != cfg.FillRingSize {
				t.Fatalf("the fill ring has %d of %d", kernel.Fill.Len(), cfg.FillRingSize)
			}
		}
		if err := queue.Audit(); err != nil {
			t.Fatal(err)
		}
		if got := queue.Frames(frame.Rx); got != len(held) {
			t.Fatalf("%d frames are received, want %d", got, len(held))
		}
	}
	if got := losses(t, queue); got != (xsk.Losses{}) {
		t.Errorf("losses %+v", got)
	}
}

// TestQueueSends submits at random, kicks at random, and expects every packet once and in order.
func TestQueueSends(t *testing.T) {
	random := seedtest.Rand(t)
	cfg := smallConfig
	cfg.Checked = true
	queue, kernel := newTestQueue(t, cfg)
	var expected [][]byte
	for range 20000 {
		if random.IntN(4) > 0 {
			content := make([]byte, 1+random.IntN(queue.PacketSizeMax()))
			content[0] = byte(random.Uint32())
			if submit(t, queue, content) {
				expected = append(expected, content)
			} else if queue.Outstanding() != cfg.TxRingSize {
				t.Fatalf("nothing to lend with %d outstanding", queue.Outstanding())
			}
			if addr, _, ok := queue.Lend(); ok {
				queue.Drop(addr)
			}
			continue
		}
		if err := queue.Kick(); err != nil {
			t.Fatal(err)
		}
		if queue.Outstanding() != 0 {
			t.Fatalf("%d outstanding after a kick", queue.Outstanding())
		}
		if !slices.EqualFunc(kernel.Sent, expected, bytes.Equal) {
			t.Fatalf("sent %d packets, want %d", len(kernel.Sent), len(expected))
		}
		kernel.Sent, expected = nil, nil
	}
}

// TestKickAnswers checks what each errno of sendto does: how many calls, which error, what is lost.
func TestKickAnswers(t *testing.T) {
	for _, test := range []struct {
		name      string
		errno     unix.Errno
		completes bool // the kernel takes a packet with each call, as for EBUSY
		want      error
		calls     int
		dropped   uint64
	}{
		{name: "no buffers", errno: unix.EAGAIN, calls: 1},
		{name: "no memory", errno: unix.ENOBUFS, calls: 1},
		{name: "dropped", errno: unix.EBUSY, completes: true, calls: 40, dropped: 40},
		{name: "interrupted", errno: unix.EINTR, completes: true, calls: 40},
		{name: "down", errno: unix.ENETDOWN, want: xsk.ErrLinkDown, calls: 1},
		{name: "gone", errno: unix.ENXIO, want: xsk.ErrDeviceGone, calls: 1},
		{name: "unknown", errno: unix.EBADF, want: xsk.ErrKick, calls: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			queue, kernel := newTestQueue(t, smallConfig)
			kernel.OnWakeTx = func() unix.Errno {
				if test.completes {
					kernel.Transmit(1)
				}
				return test.errno
			}
			for range 40 {
				submit(t, queue, []byte("packet"))
			}
			err := queue.Kick()
			if !errors.Is(err, test.want) || test.want != nil && !errors.Is(err, test.errno) {
				t.Errorf("error %v, want %v and %v", err, test.want, test.errno)
			}
			if kernel.WakeTxCount != test.calls {
				t.Errorf("%d calls, want %d", kernel.WakeTxCount, test.calls)
			}
			if got := losses(t, queue).SendDropped; got != test.dropped {
				t.Errorf("%d dropped, want %d", got, test.dropped)
			}
			kernel.OnWakeTx = nil // the fault is over: everything leaves
			if err := queue.Kick(); err != nil || queue.Outstanding() != 0 {
				t.Errorf("after the fault: %v, %d outstanding", err, queue.Outstanding())
			}
		})
	}
}

// TestKickOnlyWhenAsked counts system calls.
func TestKickOnlyWhenAsked(t *testing.T) {
	queue, kernel := newTestQueue(t, smallConfig)
	if err := queue.Kick(); err != nil || kernel.WakeTxCount != 0 {
		t.Errorf("an empty ring: %v, %d calls", err, kernel.WakeTxCount)
	}
	kernel.Tx.SetNeedWakeup(false)
	submit(t, queue, []byte("packet"))
	if err := queue.Kick(); err != nil || kernel.WakeTxCount != 0 || kernel.Tx.Len() != 1 {
		t.Errorf("no wake-up needed: %v, %d calls, %d published", err, kernel.WakeTxCount, kernel.Tx.Len())
	}
	kernel.Tx.SetNeedWakeup(true)
	for range 63 {
		submit(t, queue, []byte("packet"))
	}
	if err := queue.Kick(); err != nil || kernel.WakeTxCount != 2 {
		t.Errorf("64 packets: %v, %d calls, want 2 of 32", err, kernel.WakeTxCount)
	}
	if queue.Receive(make([]frame.Desc, 1)) != 0 || kernel.WakeRxCount != 0 {
		t.Error("reception was woken unasked")
	}
	kernel.Fill.SetNeedWakeup(true)
	if queue.Receive(make([]frame.Desc, 1)) != 0 || kernel.WakeRxCount != 1 {
		t.Errorf("reception was woken %d times, want once", kernel.WakeRxCount)
	}
}

// TestTxOverflow fills everything up and sees it come back.
func TestTxOverflow(t *testing.T) {
	queue, kernel := newTestQueue(t, smallConfig)
	kernel.OnWakeTx = func() unix.Errno { return unix.EAGAIN }
	count := 0
	for submit(t, queue, []byte("packet")) {
		count++
	}
	if count != smallConfig.TxRingSize {
		t.Errorf("submitted %d, want the ring's %d", count, smallConfig.TxRingSize)
	}
	if err := queue.Kick(); err != nil {
		t.Error(err)
	}
	kernel.OnWakeTx = nil
	if err := queue.Kick(); err != nil || queue.Outstanding() != 0 || len(kernel.Sent) != count {
		t.Errorf("%v, %d outstanding, %d sent", err, queue.Outstanding(), len(kernel.Sent))
	}
	if queue.Frames(frame.Kernel) != 0 || queue.Frames(frame.Tx) != 0 {
		t.Error("frames are missing")
	}
}

// TestSubmitRefuses checks that what the kernel would lose silently never reaches it.
func TestSubmitRefuses(t *testing.T) {
	queue, kernel := newTestQueue(t, smallConfig)
	addr, packet, _ := queue.Lend()
	if len(packet) != queue.PacketSizeMax() {
		t.Errorf("lent %d bytes, want %d", len(packet), queue.PacketSizeMax())
	}
	bad := []frame.Desc{
		{Addr: addr, Len: 0}, // drops the lent frame, so that the next ones are of no one's
		{Addr: addr, Len: 64},
		{Addr: addr, Len: uint32(len(packet)) + 1},
		{Addr: addr, Len: 64, Options: 1},
		{Addr: frame.Addr(len(kernel.UMEM)), Len: 64},
		{Addr: 1 << 63, Len: 64},
	}
	for i, desc := range bad {
		if queue.Submit(desc) {
			t.Errorf("%+v was accepted", desc)
		}
		if got := losses(t, queue).SendRefused; got != uint64(i+1) {
			t.Errorf("%d refused, want %d", got, i+1)
		}
	}
	if err := queue.Kick(); err != nil || kernel.Tx.Len() != 0 || queue.Frames(frame.Tx) != 0 {
		t.Errorf("%v: %d on the TX ring, %d lent", err, kernel.Tx.Len(), queue.Frames(frame.Tx))
	}
}

// TestMisbehavingKernel completes and delivers what it never had: counted, and no frame gets two owners.
func TestMisbehavingKernel(t *testing.T) {
	queue, kernel := newTestQueue(t, smallConfig)
	submit(t, queue, []byte("packet"))
	if err := queue.Kick(); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []frame.Addr{0, 40 * 2048, 1 << 40, frame.Addr(len(kernel.UMEM))} {
		kernel.Completion.Push(addr)
	}
	if got := queue.Reclaim(); got != 0 {
		t.Errorf("reclaimed %d frames that were never sent", got)
	}
	filled, _ := kernel.Fill.Pop()
	for _, desc := range []frame.Desc{
		{Addr: 1 << 40, Len: 64},
		{Addr: 100 * 2048, Len: 64}, // a frame that is not on the fill ring
		{Addr: filled + 264, Len: 1785},
		{Addr: filled + 264, Len: 64}, // right
		{Addr: filled + 264, Len: 64}, // again
	} {
		kernel.Rx.Push(desc)
	}
	if got := queue.Receive(make([]frame.Desc, 8)); got != 1 {
		t.Errorf("received %d packets, want the one that is right", got)
	}
	want := xsk.Losses{CompleteInvalid: 4, ReceiveInvalid: 4}
	if got := losses(t, queue); got != want {
		t.Errorf("losses %+v, want %+v", got, want)
	}
}

// TestNoAllocation turns the whole path over under the allocation counter.
func TestNoAllocation(t *testing.T) {
	queue, kernel := newTestQueue(t, smallConfig)
	packet := []byte("packet")
	kernel.OnWakeTx = func() unix.Errno { // as Transmit, without its copies
		for range kernel.Tx.Len() {
			desc, _ := kernel.Tx.Pop()
			kernel.Completion.Push(desc.Addr)
		}
		return 0
	}
	batch := make([]frame.Desc, 8)
	got := testing.AllocsPerRun(1000, func() {
		kernel.Deliver(packet, 1)
		n := queue.Receive(batch)
		submit(t, queue, queue.Bytes(batch[0]))
		_ = queue.Stamp(batch[0])
		queue.Release(batch[:n])
		if err := queue.Kick(); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations a packet", got)
	}
}

// BenchmarkQueue is one packet in and one out without system calls: our share, and the test kernel's slow ring ends.
func BenchmarkQueue(b *testing.B) {
	queue, kernel := newTestQueue(b, xsk.Config{})
	kernel.OnWakeTx = func() unix.Errno {
		for range kernel.Tx.Len() {
			desc, _ := kernel.Tx.Pop()
			kernel.Completion.Push(desc.Addr)
		}
		return 0
	}
	packet, batch := make([]byte, 64), make([]frame.Desc, 64)
	for b.Loop() {
		for range batch {
			kernel.Deliver(packet, 1)
		}
		n := queue.Receive(batch)
		for range n {
			addr, _, _ := queue.Lend()
			queue.Submit(frame.Desc{Addr: addr, Len: 64})
		}
		queue.Release(batch[:n])
		if err := queue.Kick(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(batch)), "ns/packet")
}
