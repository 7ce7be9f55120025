//go:build linux

package xsk_test

import (
	"strconv"
	"testing"

	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// BenchmarkReceive is reception alone, of many packets at once and of one, with a kernel that passes them from the fill ring to the RX ring.
func BenchmarkReceive(b *testing.B) {
	for _, size := range []uint32{1, 64} {
		b.Run(strconv.Itoa(int(size)), func(b *testing.B) {
			queue, kernel := newTestQueue(b, xsk.Config{})
			fill, rx := kernel.Fill.Memory, kernel.Rx.Memory
			batch := make([]frame.Desc, size)
			for b.Loop() {
				from, to := *fill.Consumer, *rx.Producer
				for i := range size {
					addr := fill.Entries[(from+i)%uint32(len(fill.Entries))]
					rx.Entries[(to+i)%uint32(len(rx.Entries))] = frame.Desc{Addr: addr + 264, Len: 64}
				}
				*fill.Consumer, *rx.Producer = from+size, to+size
				n := queue.Receive(batch)
				queue.Release(batch[:n])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(batch)), "ns/packet")
		})
	}
}

// TestReceiveTopsUpBySixteenths: one frame fewer is not worth a store that the kernel reads.
func TestReceiveTopsUpBySixteenths(t *testing.T) {
	cfg := xsk.Config{FillRingSize: 64, RxRingSize: 64, TxRingSize: 64}
	queue, kernel := newTestQueue(t, cfg)
	batch := make([]frame.Desc, 8)
	for i, want := range []int{63, 62, 61, 64, 63} {
		kernel.Deliver([]byte("packet"), 0)
		queue.Release(batch[:queue.Receive(batch)])
		if n := queue.Receive(batch); n != 0 || kernel.Fill.Len() != want {
			t.Errorf("after %d packets: %d more; %d on the fill ring, want %d", i+1, n, kernel.Fill.Len(), want)
		}
	}
	kernel.Fill.SetNeedWakeup(true)
	if queue.Receive(batch); kernel.Fill.Len() != 64 {
		t.Errorf("%d on the fill ring that the kernel waits for, want 64", kernel.Fill.Len())
	}
}

// TestReceiveTopsUpLater empties the pool, so that the fill ring cannot be kept full, and gives frames back: the next Receive
// must make up for it although nothing has arrived.
func TestReceiveTopsUpLater(t *testing.T) {
	cfg := smallConfig
	cfg.FrameCount = cfg.FillRingSize + cfg.RxRingSize + cfg.TxRingSize
	queue, kernel := newTestQueue(t, cfg)
	for submit(t, queue, []byte("packet")) {
		continue // all frames that transmission may have
	}
	batch := make([]frame.Desc, 24)
	held := batch[:0]
	for range 3 {
		for range 8 {
			if !kernel.Deliver([]byte("packet"), 0) {
				t.Fatal("no frame to deliver in")
			}
		}
		n := queue.Receive(batch[len(held):])
		held = batch[:len(held)+n]
	}
	if len(held) != 24 || queue.Frames(frame.Free) != 0 || kernel.Fill.Len() != 8 {
		t.Fatalf("%d held, %d free, %d on the fill ring", len(held), queue.Frames(frame.Free), kernel.Fill.Len())
	}
	queue.Release(held)
	if n := queue.Receive(batch); n != 0 || kernel.Fill.Len() != cfg.FillRingSize {
		t.Errorf("received %d; %d on the fill ring, want %d", n, kernel.Fill.Len(), cfg.FillRingSize)
	}
}
