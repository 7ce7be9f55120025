//go:build linux

package contract

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// across sends packets AF_XDP to AF_XDP: all arrive, in order, whole, and stamped between sending and receiving.
func across(t *testing.T, w *world) {
	a, b := w.side(t, w.A, xsk.Config{}), w.side(t, w.B, xsk.Config{})
	if a.Queue.Mode() != "copy" {
		t.Errorf("veth in mode %q", a.Queue.Mode())
	}
	const rounds, perRound = 200, 40 // more than one sendto carries; veth's own ring has 256 places, so that nothing may be lost
	for round := range rounds {
		start := Monotonic()
		for i := range perRound {
			if !a.Send(t, w.B, uint64(round*perRound+i), 8+(round*7)%1400) {
				t.Fatal("no frame to lend")
			}
		}
		if err := a.Queue.Kick(); err != nil {
			t.Fatal(err)
		}
		expect(t, b, start, round*perRound, perRound, HeaderBytes+8+(round*7)%1400)
		a.Drain(t)
	}
	if err := a.Queue.Audit(); err != nil {
		t.Error(err)
	}
}

// expect takes so many packets, from a number on.
func expect(t *testing.T, at *Side[Queue], start uint64, first, count, size int) {
	t.Helper()
	batch := make([]frame.Desc, 64)
	for got := 0; got < count; {
		received := at.Receive(t, batch)
		end := Monotonic()
		for _, desc := range received {
			if packet := at.Queue.Bytes(desc); len(packet) != size {
				t.Fatalf("%d bytes, want %d", len(packet), size)
			}
			if number := at.Number(desc); number != uint64(first+got) {
				t.Fatalf("packet %d, want %d", number, first+got)
			}
			if stamp := at.Queue.Stamp(desc); stamp < start || stamp > end {
				t.Fatalf("stamp %d is not within [%d, %d]", stamp, start, end)
			}
			got++
		}
		at.Queue.Release(received)
	}
}

// kernelPeer exchanges datagrams with an ordinary UDP socket, whose ARP the kernel still answers.
func kernelPeer(t *testing.T, w *world) {
	b := w.side(t, w.B, xsk.Config{})
	var client *net.UDPConn
	if err := w.A.Do(func() (err error) {
		local := net.UDPAddrFromAddrPort(netip.AddrPortFrom(w.A.Address.Addr(), Port))
		client, err = net.DialUDP("udp4", local, net.UDPAddrFromAddrPort(netip.AddrPortFrom(w.B.Address.Addr(), Port)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.SetDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	batch := make([]frame.Desc, 64)
	for i := range 100 {
		message := fmt.Sprintf("message %d", i)
		start := Monotonic()
		if _, err := client.Write([]byte(message)); err != nil {
			t.Fatal(err)
		}
		received := b.Receive(t, batch)
		end := Monotonic()
		if got := string(b.Queue.Bytes(received[0])[HeaderBytes:]); got != message {
			t.Fatalf("received %q, want %q", got, message)
		}
		if stamp := b.Queue.Stamp(received[0]); stamp < start || stamp > end {
			t.Fatalf("stamp %d is not within [%d, %d]", stamp, start, end)
		}
		b.Queue.Release(received)
		if !b.Send(t, w.A, uint64(i), 8) {
			t.Fatal("no frame to lend")
		}
		if err := b.Queue.Kick(); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 64)
		n, err := client.Read(answer)
		if err != nil || n != 8 || binary.BigEndian.Uint64(answer) != uint64(i) {
			t.Fatalf("answer %d: %d bytes, %x, %v", i, n, answer[:n], err)
		}
	}
	b.Drain(t)
}

// longestPacket sends what just fits a frame: it arrives whole, and its descriptor stays within its frame (Receive refuses others).
func longestPacket(t *testing.T, w *world) {
	a, b := w.side(t, w.A, xsk.Config{}), w.side(t, w.B, xsk.Config{})
	LongestPacket(t, a, b)
}

// LongestPacket is that case on two given sides, whose pair must have an MTU for it.
func LongestPacket[Q Queue](t *testing.T, a, b *Side[Q]) {
	t.Helper()
	payload := b.Queue.PacketSizeMax() - HeaderBytes
	const count = 16
	for i := range count {
		a.Send(t, b.End, uint64(i), payload)
	}
	if err := a.Queue.Kick(); err != nil {
		t.Fatal(err)
	}
	var all []frame.Desc
	for len(all) < count {
		all = append(all, b.Receive(t, make([]frame.Desc, 64))...)
	}
	seen := map[uint64]bool{}
	for _, desc := range all {
		if packet := b.Queue.Bytes(desc); len(packet) != payload+HeaderBytes {
			t.Errorf("%d bytes, want %d", len(packet), payload+HeaderBytes)
		}
		seen[b.Number(desc)] = true
	}
	if len(seen) != count {
		t.Errorf("%d different packets, want %d", len(seen), count)
	}
	b.Queue.Release(all)
	a.Drain(t)
}

// heldPacketsStay keeps received packets while all else goes on: nobody else may write their frames.
func heldPacketsStay(t *testing.T, w *world) {
	a, b := w.side(t, w.A, xsk.Config{}), w.side(t, w.B, xsk.Config{})
	const held = 32
	var kept []frame.Desc
	for number := range uint64(held) {
		a.Send(t, w.B, number, 64)
	}
	a.Drain(t)
	for len(kept) < held {
		kept = append(kept, b.Receive(t, make([]frame.Desc, held-len(kept)))...)
	}
	next := uint64(held)
	for range 200 { // every frame of either side is used several times over
		for range 32 {
			a.Send(t, w.B, next, 64)
			b.Send(t, w.A, next, 64)
			next++
		}
		a.Drain(t)
		b.Drain(t)
		a.Discard()
		b.Discard()
	}
	for i, desc := range kept {
		if got := b.Number(desc); got != uint64(i) {
			t.Errorf("held packet %d became %d", i, got)
		}
	}
	if got := b.Queue.Frames(frame.Rx); got != held {
		t.Errorf("%d frames are held, want %d", got, held)
	}
	b.Queue.Release(kept)
}

// atRandom sends, kicks, receives, holds and releases at random on both sides, a few packets on their way at a time, so that none may be
// lost: each arrives once and in order, and the books are right after every step.
func atRandom(t *testing.T, w *world) {
	random := seedtest.Rand(t)
	small := xsk.Config{FillRingSize: 64, RxRingSize: 64, TxRingSize: 64}
	sides := [2]*Side[Queue]{w.side(t, w.A, small), w.side(t, w.B, small)}
	var sent, got [2]uint64 // by the side that sent
	var held [2][]frame.Desc
	batch := make([]frame.Desc, 8)
	for range 20000 {
		i := random.IntN(2)
		s, other := sides[i], 1-i
		switch random.IntN(4) {
		case 0:
			if sent[i]-got[i] < 32 && s.Send(t, sides[other].End, sent[i], 8+random.IntN(1400)) {
				sent[i]++
			}
		case 1:
			if err := s.Queue.Kick(); err != nil {
				t.Fatal(err)
			}
		case 2:
			for _, desc := range batch[:s.Queue.Receive(batch[:1+random.IntN(len(batch))])] {
				if number := s.Number(desc); number != got[other] {
					t.Fatalf("packet %d, want %d", number, got[other])
				}
				got[other]++
				held[i] = append(held[i], desc)
			}
		case 3:
			s.Queue.Release(held[i])
			held[i] = held[i][:0]
		}
		if s.Queue.Frames(frame.Rx) != len(held[i]) {
			t.Fatalf("%d frames are received, want %d", s.Queue.Frames(frame.Rx), len(held[i]))
		}
		if err := s.Queue.Audit(); err != nil {
			t.Fatal(err)
		}
	}
	if got[0] == 0 || got[1] == 0 {
		t.Errorf("received %d and %d", got[0], got[1])
	}
}
