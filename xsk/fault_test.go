//go:build linux

package xsk_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// TestLongestPacket sends what just fits a frame, with and without extra headroom: it arrives whole, and its descriptor stays
// within its frame (Receive refuses others).
func TestLongestPacket(t *testing.T) {
	for _, headroom := range []int{0, 128} {
		pair := labtest.NewPair(t, lab.PairConfig{MTU: 3000})
		cfg := xsk.Config{Headroom: headroom}
		a, b := newSide(t, pair.A, cfg), newSide(t, pair.B, cfg)
		payload := b.queue.PacketSizeMax() - 42
		const count = 16
		for i := range count {
			a.send(t, pair.B, uint64(i), payload)
		}
		if err := a.queue.Kick(); err != nil {
			t.Fatal(err)
		}
		var all []frame.Desc
		for len(all) < count {
			all = append(all, b.receive(t, make([]frame.Desc, 64))...)
		}
		seen := map[string]bool{}
		for _, desc := range all {
			packet := b.queue.Bytes(desc)
			if len(packet) != payload+42 {
				t.Errorf("%d bytes, want %d", len(packet), payload+42)
			}
			seen[string(packet[42:50])] = true
		}
		if len(seen) != count {
			t.Errorf("%d different packets, want %d", len(seen), count)
		}
		b.queue.Release(all)
		a.drain(t)
	}
}

// TestTxRingOverflow submits until no frame is lent, far beyond the 256 places of veth's own ring. Packets may be lost there,
// but every frame comes back, and the queue works afterwards.
func TestTxRingOverflow(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	a, b := newSide(t, pair.A, xsk.Config{}), newSide(t, pair.B, xsk.Config{})
	batch := make([]frame.Desc, 64)
	for range 5 {
		count := 0
		for a.send(t, pair.B, 1, 64) {
			count++
		}
		if count != 2048 {
			t.Fatalf("%d packets fitted, want the default TX ring's 2048", count)
		}
		a.drain(t)
		for n := 1; n > 0; {
			n = b.queue.Receive(batch)
			b.queue.Release(batch[:n])
		}
	}
	if err := errors.Join(a.queue.Audit(), b.queue.Audit()); err != nil {
		t.Error(err)
	}
	statistics, err := a.queue.Statistics()
	if err != nil || statistics.TxInvalidDescs != 0 || statistics.SendRefused != 0 || statistics.CompleteInvalid != 0 {
		t.Errorf("%+v, %v", statistics, err)
	}
	a.send(t, pair.B, 2, 64)
	if err := a.queue.Kick(); err != nil {
		t.Fatal(err)
	}
	for last := byte(0); last != 2; {
		for _, desc := range b.receive(t, batch[:1]) {
			last = b.queue.Bytes(desc)[49]
		}
		b.queue.Release(batch[:1])
	}
	a.drain(t)
}

// TestReceiveOverload never takes a packet until the fill ring is empty: the kernel's counters say so, and it recovers.
func TestReceiveOverload(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	small := xsk.Config{FillRingSize: 64, RxRingSize: 64, TxRingSize: 64}
	a, b := newSide(t, pair.A, xsk.Config{}), newSide(t, pair.B, small)
	batch := make([]frame.Desc, 64)
	for deadline := time.Now().Add(patience); ; {
		for range 32 {
			a.send(t, pair.B, 0, 64)
		}
		a.drain(t)
		statistics, err := b.queue.Statistics()
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
	for n := 1; n > 0; {
		n = b.queue.Receive(batch)
		b.queue.Release(batch[:n])
	}
	a.send(t, pair.B, 7, 64)
	a.drain(t)
	for last := byte(0); last != 7; {
		for _, desc := range b.receive(t, batch[:1]) {
			last = b.queue.Bytes(desc)[49]
		}
		b.queue.Release(batch[:1])
	}
}

// TestOpenClose opens and closes one queue again and again, with traffic: nothing stays open, mapped or busy.
func TestOpenClose(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	b := newSide(t, pair.B, xsk.Config{})
	cycle := func(number uint64) {
		a := &side{end: pair.A}
		if err := pair.A.Do(func() (err error) {
			a.queue, err = xsk.Open(xsk.Config{Interface: pair.A.Index, Checked: true})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		a.send(t, pair.B, number, 64)
		a.drain(t)
		batch := make([]frame.Desc, 1)
		b.queue.Release(b.receive(t, batch))
		a.close(t)
		if err := a.queue.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
	}
	cycle(0)
	descriptors, mappings := countDescriptors(t), countMappings(t)
	for i := range 100 {
		cycle(uint64(i))
	}
	if got := countDescriptors(t); got != descriptors {
		t.Errorf("%d descriptors after 100 cycles, %d before", got, descriptors)
	}
	if got := countMappings(t); got != mappings {
		t.Errorf("%d socket mappings after 100 cycles, %d before", got, mappings)
	}
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func countMappings(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(maps, []byte("socket:["))
}

// TestOpenErrors checks that what cannot be opened says why and what to do, and leaves nothing open.
func TestOpenErrors(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	holder := newSide(t, pair.A, xsk.Config{})
	descriptors, mappings := countDescriptors(t), countMappings(t)
	for _, test := range []struct {
		name   string
		end    *lab.End
		cfg    xsk.Config
		target error
		want   string
	}{
		{"second owner", pair.A, xsk.Config{Interface: pair.A.Index}, xsk.ErrQueueBusy, "waited 1s"},
		{"no such queue", pair.A, xsk.Config{Interface: pair.A.Index, QueueID: 5}, nil, "ethtool -l"},
		{"no zero-copy", pair.B, xsk.Config{Interface: pair.B.Index, Mode: xsk.ModeZeroCopy}, nil, "use copy mode"},
		{"no such interface", pair.A, xsk.Config{Interface: 4242}, nil, "no such interface"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.end.Do(func() error {
				_, err := xsk.Open(test.cfg)
				return err
			})
			if err == nil || test.target != nil && !errors.Is(err, test.target) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
	if got := countDescriptors(t); got != descriptors {
		t.Errorf("%d descriptors after the errors, %d before", got, descriptors)
	}
	if got := countMappings(t); got != mappings {
		t.Errorf("%d socket mappings after the errors, %d before", got, mappings)
	}
	if err := holder.queue.Audit(); err != nil {
		t.Error(err)
	}
}

// TestLinkDownAndGone checks the two faults of a device: the typed error, and what becomes of the packets.
func TestLinkDownAndGone(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	a, b := newSide(t, pair.A, xsk.Config{}), newSide(t, pair.B, xsk.Config{})
	device := func(change func(netlink.Link) error) {
		t.Helper()
		if err := pair.A.Do(func() error {
			link, err := netlink.LinkByName(pair.A.Interface)
			if err != nil {
				return err
			}
			return change(link)
		}); err != nil {
			t.Fatal(err)
		}
	}
	device(netlink.LinkSetDown)
	a.send(t, pair.B, 5, 64)
	if err := a.queue.Kick(); !errors.Is(err, xsk.ErrLinkDown) {
		t.Errorf("kick on a downed link: %v", err)
	}
	device(netlink.LinkSetUp)
	// The packet stayed on the ring. While the carrier comes back it may be completed and dropped, so send until one is through.
	batch := make([]frame.Desc, 64)
	for deadline := time.Now().Add(patience); ; {
		a.send(t, pair.B, 6, 64)
		a.drain(t)
		if n := b.queue.Receive(batch); n > 0 {
			b.queue.Release(batch[:n])
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing arrives after the link came up")
		}
	}
	device(netlink.LinkDel)
	a.send(t, pair.B, 7, 64)
	if err := a.queue.Kick(); !errors.Is(err, xsk.ErrDeviceGone) && !errors.Is(err, xsk.ErrLinkDown) {
		t.Errorf("kick on a deleted interface: %v", err)
	}
}
