//go:build linux

package contract

import (
	"errors"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// sum is how many frames all owners have.
func sum(q Queue) (total int) {
	for _, owner := range []frame.Owner{frame.Free, frame.Fill, frame.Rx, frame.Tx, frame.Kernel, frame.Away} {
		total += q.Frames(owner)
	}
	return total
}

// framesAreOwnedOnce lends to the bound, in several turns, with some dropped and the others sent.
func framesAreOwnedOnce(t *testing.T, w *world) {
	cfg := xsk.Config{FillRingSize: 64, RxRingSize: 64, TxRingSize: 64}
	a, b := w.side(t, w.A, cfg), w.side(t, w.B, cfg)
	q := a.Queue
	for round := range 8 {
		lent := map[frame.Addr]bool{}
		for {
			addr, packet, ok := q.Lend()
			if !ok {
				break
			}
			if lent[addr] || len(packet) != q.PacketSizeMax() {
				t.Fatalf("lent %#x with %d bytes; before: %v", addr, len(packet), lent[addr])
			}
			lent[addr] = true
			if !q.Room() {
				t.Fatal("a frame is lent, and there is no room for it")
			}
		}
		if len(lent) != cfg.TxRingSize || q.Frames(frame.Tx) != len(lent) {
			t.Fatalf("round %d: %d lent, %d booked, want the TX ring's %d", round, len(lent), q.Frames(frame.Tx), cfg.TxRingSize)
		}
		drop := false
		for addr := range lent {
			if drop = !drop; drop {
				q.Drop(addr)
				continue
			}
			size := build(q.Bytes(frame.Desc{Addr: addr, Len: 64}), w.A, w.B, 22)
			if !q.Submit(frame.Desc{Addr: addr, Len: uint32(size)}) {
				t.Fatal("submit refused a good packet")
			}
		}
		a.Drain(t)
		b.Discard()
		if total := sum(q); total != 192 || q.Frames(frame.Kernel)+q.Frames(frame.Tx) != 0 {
			t.Fatalf("%d frames, %d still sent or lent", total, q.Frames(frame.Kernel)+q.Frames(frame.Tx))
		}
		if err := q.Audit(); err != nil {
			t.Fatal(err)
		}
	}
}

// submitRefuses submits what the kernel would lose without a word. The frames stay in the books.
func submitRefuses(t *testing.T, w *world) {
	// A checked queue panics on some of these, as it should in other tests.
	var q Queue
	if err := w.A.Do(func() (err error) { q, err = w.open(xsk.Config{Interface: w.A.Index}); return err }); err != nil {
		t.Fatal(err)
	}
	lend := func() frame.Addr {
		addr, _, ok := q.Lend()
		if !ok {
			t.Fatal("no frame to lend")
		}
		return addr
	}
	refused := uint64(0)
	refuse := func(what string, d frame.Desc) {
		t.Helper()
		if q.Submit(d) {
			t.Errorf("%s was taken", what)
		}
		refused++
		statistics, err := q.Statistics()
		if err != nil || statistics.SendRefused != refused {
			t.Errorf("%s: %d refused, want %d; %v", what, statistics.SendRefused, refused, err)
		}
	}
	refuse("an empty packet", frame.Desc{Addr: lend()})
	refuse("a packet across frames", frame.Desc{Addr: lend(), Len: uint32(q.PacketSizeMax() + 1)})
	refuse("options", frame.Desc{Addr: lend(), Len: 64, Options: 1})
	refuse("an address outside the UMEM", frame.Desc{Addr: 1 << 40, Len: 64})
	twice := lend()
	copy(q.Bytes(frame.Desc{Addr: twice, Len: 12}), "\xff\xff\xff\xff\xff\xffabcdef")
	if !q.Submit(frame.Desc{Addr: twice, Len: 64}) {
		t.Error("a good packet was refused")
	}
	refuse("a packet that is submitted already", frame.Desc{Addr: twice, Len: 64})
	dropped := lend()
	q.Drop(dropped)
	refuse("a frame that was dropped", frame.Desc{Addr: dropped, Len: 64})
	if q.Frames(frame.Tx) != 0 || q.Outstanding() != 1 {
		t.Errorf("%d lent, %d outstanding", q.Frames(frame.Tx), q.Outstanding())
	}
	(&Side[Queue]{End: w.A, Queue: q}).Drain(t)
	if statistics, err := q.Statistics(); err != nil || statistics.TxInvalidDescs != 0 {
		t.Errorf("the kernel found %d descriptors invalid; %v", statistics.TxInvalidDescs, err)
	}
	if err := errors.Join(q.Audit(), q.Close()); err != nil {
		t.Error(err)
	}
}

// txRingOverflow submits until no frame is lent, far beyond the 256 places of veth's own ring. Packets may be lost there,
// but every frame comes back, and the queue works afterwards.
func txRingOverflow(t *testing.T, w *world) {
	a, b := w.side(t, w.A, xsk.Config{}), w.side(t, w.B, xsk.Config{})
	for range 5 {
		count := 0
		for a.Send(t, w.B, 1, 64) {
			count++
		}
		if count != 2048 {
			t.Fatalf("%d packets fitted, want the default TX ring's 2048", count)
		}
		a.Drain(t)
		b.Discard()
	}
	if err := errors.Join(a.Queue.Audit(), b.Queue.Audit()); err != nil {
		t.Error(err)
	}
	statistics, err := a.Queue.Statistics()
	if err != nil || statistics.TxInvalidDescs != 0 || statistics.SendRefused != 0 || statistics.CompleteInvalid != 0 {
		t.Errorf("%+v, %v", statistics, err)
	}
	awaitNumber(t, a, b, 2)
}

// awaitNumber sends a packet, and takes packets until it has come.
func awaitNumber(t *testing.T, from, at *Side[Queue], number uint64) {
	t.Helper()
	from.Send(t, at.End, number, 64)
	from.Drain(t)
	batch := make([]frame.Desc, 1)
	for came := false; !came; {
		received := at.Receive(t, batch)
		came = at.Number(received[0]) == number
		at.Queue.Release(received)
	}
}

// receiveOverload never takes a packet until the fill ring is empty: the kernel's counters say so, and it recovers.
func receiveOverload(t *testing.T, w *world) {
	a, b := w.side(t, w.A, xsk.Config{}), w.side(t, w.B, xsk.Config{FillRingSize: 64, RxRingSize: 64, TxRingSize: 64})
	for deadline := time.Now().Add(Patience); ; {
		for range 32 {
			a.Send(t, w.B, 0, 64)
		}
		a.Drain(t)
		statistics, err := b.Queue.Statistics()
		if err != nil {
			t.Fatal(err)
		}
		if statistics.RxRingFull+statistics.RxFillRingEmptyDesc > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no overload was seen: %+v", statistics)
		}
	}
	b.Discard()
	awaitNumber(t, a, b, 7)
}

// linkDownAndGone checks the two faults of a device: the typed error, and what becomes of the packets.
func linkDownAndGone(t *testing.T, w *world) {
	a, b := w.side(t, w.A, xsk.Config{}), w.side(t, w.B, xsk.Config{})
	device := func(change func(netlink.Link) error) {
		t.Helper()
		if err := w.A.Do(func() error {
			link, err := netlink.LinkByName(w.A.Interface)
			if err != nil {
				return err
			}
			return change(link)
		}); err != nil {
			t.Fatal(err)
		}
	}
	device(netlink.LinkSetDown)
	a.Send(t, w.B, 5, 64)
	if err := a.Queue.Kick(); !errors.Is(err, xsk.ErrLinkDown) || a.Queue.Outstanding() != 1 {
		t.Errorf("kick on a downed link: %v, %d outstanding", err, a.Queue.Outstanding())
	}
	device(netlink.LinkSetUp)
	// The packet stayed on the ring. While the carrier comes back it may be completed and dropped, so send until one is through.
	for deadline := time.Now().Add(Patience); b.Discard() == 0; {
		a.Send(t, w.B, 6, 64)
		a.Drain(t)
		if time.Now().After(deadline) {
			t.Fatal("nothing arrives after the link came up")
		}
	}
	device(netlink.LinkDel)
	a.Send(t, w.B, 7, 64)
	if err := a.Queue.Kick(); !errors.Is(err, xsk.ErrDeviceGone) && !errors.Is(err, xsk.ErrLinkDown) {
		t.Errorf("kick on a deleted interface: %v", err)
	}
}

// closes closes twice, with packets in the hands of everybody.
func closes(t *testing.T, w *world) {
	a, b := w.side(t, w.A, xsk.Config{}), w.side(t, w.B, xsk.Config{})
	for number := range uint64(40) {
		a.Send(t, w.B, number, 64)
	}
	a.Drain(t)
	b.Receive(t, make([]frame.Desc, 8))
	a.Send(t, w.B, 0, 64)
	if _, _, ok := a.Queue.Lend(); !ok {
		t.Error("no frame to lend")
	}
	for _, s := range []*Side[Queue]{a, b} {
		if err := errors.Join(s.Queue.Audit(), s.Queue.Close(), s.Queue.Close()); err != nil {
			t.Error(err)
		}
		if s.Queue.FD() != -1 {
			t.Errorf("descriptor %d of a closed queue", s.Queue.FD())
		}
	}
}
