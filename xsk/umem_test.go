//go:build linux

package xsk_test

import (
	"errors"
	"testing"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
	"github.com/stillwater-rpc/stillwater/xsk/xsktest"
)

// newTestQueues returns queues on one UMEM, with a kernel each.
func newTestQueues(t *testing.T, count int) ([]*xsk.Queue, []*xsktest.Kernel) {
	t.Helper()
	cfg := smallConfig
	cfg.Queues, cfg.FrameCount, cfg.Checked = count, 0, true
	first := xsktest.NewKernel(cfg, nearWrap)
	q, err := first.Queue()
	if err != nil {
		t.Fatal(err)
	}
	queues, kernels := []*xsk.Queue{q}, []*xsktest.Kernel{first}
	for len(queues) < count {
		kernel := first.Beside(nearWrap)
		next, err := kernel.QueueOn(q.UMEM)
		if err != nil {
			t.Fatal(err)
		}
		queues, kernels = append(queues, next), append(kernels, kernel)
	}
	return queues, kernels
}

// TestFrameOfOneQueueLeavesByAnother receives on one queue, lends from the UMEM, and sends on the other.
func TestFrameOfOneQueueLeavesByAnother(t *testing.T) {
	queues, kernels := newTestQueues(t, 2)
	umem := queues[0].UMEM
	if !kernels[0].Deliver([]byte("in"), 1) {
		t.Fatal("not delivered")
	}
	var batch [4]frame.Desc
	if n := queues[1].Receive(batch[:]); n != 0 {
		t.Fatalf("the other queue received %d packets", n)
	}
	if n := queues[0].Receive(batch[:]); n != 1 || string(umem.Bytes(batch[0])) != "in" {
		t.Fatalf("received %d packets", n)
	}
	umem.Release(batch[:1])
	if !submit(t, queues[1], []byte("out")) {
		t.Fatal("nothing to lend")
	}
	if err := queues[1].Kick(); err != nil {
		t.Fatal(err)
	}
	if len(kernels[0].Sent) != 0 || len(kernels[1].Sent) != 1 || string(kernels[1].Sent[0]) != "out" {
		t.Errorf("sent %q by the first queue, %q by the second", kernels[0].Sent, kernels[1].Sent)
	}
	if queues[0].Outstanding()+queues[1].Outstanding() != 0 {
		t.Error("frames are outstanding after all were completed")
	}
	if err := umem.Audit(); err != nil {
		t.Error(err)
	}
}

// TestLendIsBoundedByAllTXRings: what can be lent fits into the TX rings together, and one with room is always left for it.
func TestLendIsBoundedByAllTXRings(t *testing.T) {
	queues, _ := newTestQueues(t, 2)
	lent := 0
	for ; ; lent++ {
		addr, _, ok := queues[0].Lend()
		if !ok {
			break
		}
		to := queues[0]
		if !to.Room() {
			to = queues[1]
		}
		if !to.Submit(frame.Desc{Addr: addr, Len: 60}) {
			t.Fatalf("packet %d was refused", lent)
		}
	}
	if want := 2 * smallConfig.TxRingSize; lent != want {
		t.Errorf("%d frames lent, want %d", lent, want)
	}
	if queues[0].Room() || queues[1].Room() {
		t.Error("a full TX ring has room")
	}
}

// TestClosedQueueGivesItsFramesBack: what its rings held is the UMEM's again; what its user has stays valid; the other one goes on.
func TestClosedQueueGivesItsFramesBack(t *testing.T) {
	queues, kernels := newTestQueues(t, 2)
	umem := queues[0].UMEM
	kernels[1].Deliver([]byte("kept"), 1)
	var batch [1]frame.Desc
	if queues[1].Receive(batch[:]) != 1 {
		t.Fatal("nothing received")
	}
	if !submit(t, queues[1], []byte("on the ring")) {
		t.Fatal("nothing to lend")
	}
	if err := queues[1].Close(); err != nil {
		t.Fatal(err)
	}
	if string(umem.Bytes(batch[0])) != "kept" {
		t.Error("a received packet went with its queue")
	}
	umem.Release(batch[:])
	if rest := umem.Frames(frame.Kernel); rest != 0 {
		t.Errorf("the kernel has %d frames of a closed queue", rest)
	}
	if fill := umem.Frames(frame.Fill); fill != smallConfig.FillRingSize {
		t.Errorf("%d frames on fill rings, want those of the queue that is open", fill)
	}
	if !kernels[0].Deliver([]byte("next"), 1) || queues[0].Receive(batch[:]) != 1 {
		t.Error("the other queue receives no more")
	}
	umem.Release(batch[:])
	if err := umem.Audit(); err != nil {
		t.Error(err)
	}
	if err := umem.Close(); !errors.Is(err, xsk.ErrUMEMInUse) {
		t.Errorf("closing a UMEM with a queue: %v", err)
	}
	if _, err := kernels[0].Beside(0).QueueOn(umem); err != nil {
		t.Errorf("the place of a closed queue: %v", err)
	}
	if _, err := kernels[0].Beside(0).QueueOn(umem); !errors.Is(err, xsk.ErrQueuesMax) {
		t.Errorf("one queue more than there is room for: %v", err)
	}
}

// TestQueuesOnOneUMEMAtRandom opens, closes, delivers, releases and sends at random, and audits after each step.
func TestQueuesOnOneUMEMAtRandom(t *testing.T) {
	random := seedtest.Rand(t)
	queues, kernels := newTestQueues(t, 3)
	umem := queues[0].UMEM
	var held, away []frame.Desc
	for range 5000 {
		i := random.IntN(len(queues))
		q, kernel := queues[i], kernels[i]
		switch action := random.IntN(10); {
		case q == nil && action < 2:
			var err error
			kernels[i] = kernels[i].Beside(random.Uint32())
			if queues[i], err = kernels[i].QueueOn(umem); err != nil {
				t.Fatal(err)
			}
		case q == nil:
		case action == 0 && random.IntN(20) == 0:
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
			queues[i] = nil
		case action < 3:
			kernel.Deliver([]byte{byte(i)}, 1)
		case action < 5:
			var batch [4]frame.Desc
			held = append(held, batch[:q.Receive(batch[:])]...)
		case action < 6:
			umem.Release(held)
			held = held[:0]
		case action == 6 && len(held) > 0:
			last := held[len(held)-1]
			held, away = held[:len(held)-1], append(away, last)
			if !umem.HandOver(last) {
				t.Fatal("a received frame is not handed over")
			}
		case action == 7:
			for _, d := range away {
				umem.TakeBack(d.Addr)
			}
			away = away[:0]
		default:
			if q.Room() {
				submit(t, q, []byte{1, 2, 3})
			}
			if err := q.Kick(); err != nil {
				t.Fatal(err)
			}
		}
		if err := umem.Audit(); err != nil {
			t.Fatal(err)
		}
		if rx := umem.Frames(frame.Rx); rx != len(held) {
			t.Fatalf("%d frames received, %d held", rx, len(held))
		}
		if n := umem.Frames(frame.Away); n != len(away) {
			t.Fatalf("%d frames away, %d handed over", n, len(away))
		}
	}
}
