package handover

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// fake is a port that receives what a test puts there, and keeps books of what is away.
type fake struct {
	dispatcher.Port
	arrived [][]byte
	batch   [][]byte
	away    map[uint64][]byte
	tokens  uint64
	from    wire.Addr
	waits   int
	closed  int
}

func (f *fake) Receive(now clock.Time, batch []dispatcher.Datagram) int {
	n := min(len(batch), len(f.arrived))
	f.batch, f.arrived = f.arrived[:n], f.arrived[n:]
	for i, payload := range f.batch {
		batch[i] = dispatcher.Datagram{Payload: payload, From: f.from, Arrival: now}
	}
	return n
}
func (f *fake) Stats() dispatcher.PortStats     { return dispatcher.PortStats{Received: 9} }
func (f *fake) Wait(time.Duration, int) error   { f.waits++; return nil }
func (f *fake) Close() error                    { f.closed++; return nil }
func (f *fake) Lend() (dispatcher.Buffer, bool) { return dispatcher.Buffer{Token: 1}, true }

// holding is a fake that can keep packets.
type holding struct{ *fake }

func (f holding) Hold(i int) (uint64, bool) {
	f.tokens++
	f.away[f.tokens] = f.batch[i]
	return f.tokens, true
}

func (f holding) Return(token uint64) {
	if f.away[token] == nil {
		panic(fmt.Sprintf("token %d came home twice", token))
	}
	delete(f.away, token)
}

// join returns a group over so many fakes, the last of which cannot keep packets.
func join(count int) (*Group, []*fake) {
	var ports []dispatcher.Port
	var fakes []*fake
	for i := range count {
		f := &fake{away: make(map[uint64][]byte), from: wire.Addr{Port: 7}}
		fakes = append(fakes, f)
		if i == count-1 {
			ports = append(ports, f)
		} else {
			ports = append(ports, holding{f})
		}
	}
	return Join(ports), fakes
}

// receive takes a batch of one dispatcher's, as copies.
func receive(g *Group, i int) (payloads [][]byte) {
	batch := make([]dispatcher.Datagram, 64)
	for _, d := range batch[:g.Port(i).Receive(3, batch)] {
		if d.Arrival != 3 || d.From.Port != 7 {
			panic("a packet lost its arrival or its sender")
		}
		payloads = append(payloads, bytes.Clone(d.Payload))
	}
	return payloads
}

// TestHandover brings packets for every dispatcher to every port. Each comes out where it belongs, once, and its buffer goes home.
func TestHandover(t *testing.T) {
	const count = 3
	g, fakes := join(count)
	var roused [count]int
	for i := range count {
		g.Serve(i, func() { roused[i]++ }, func(clock.Time) time.Duration { return 0 })
	}
	var want [count][][]byte
	for at, f := range fakes {
		for owner := range count {
			p := packet(wire.Header{Connection: idOf(t, uint8(owner)), Number: wire.PacketNumber(at)}, &wire.Busy{})
			f.arrived = append(f.arrived, p)
			want[owner] = append(want[owner], p)
		}
	}
	var got [count][][]byte
	for range 2 {
		for i := range count {
			got[i] = append(got[i], receive(g, i)...)
		}
	}
	for i := range count {
		slices.SortFunc(got[i], bytes.Compare)
		slices.SortFunc(want[i], bytes.Compare)
		if !slices.EqualFunc(got[i], want[i], bytes.Equal) {
			t.Errorf("dispatcher %d got %d packets, not the %d that are its", i, len(got[i]), len(want[i]))
		}
		if s := g.Port(i).Stats(); s.HandedOver != count-1 || s.HandoverDropped != 0 || s.Received != 9 {
			t.Errorf("port %d: %+v", i, s)
		}
		if roused[i] == 0 {
			t.Errorf("dispatcher %d was not roused", i)
		}
	}
	for range 2 { // those who took them see their batch end, then their owners look
		for i := range count {
			receive(g, i)
		}
	}
	for i, f := range fakes {
		if len(f.away) != 0 || len(g.ports[i].copies.free) != copyCount {
			t.Errorf("of port %d, %d packets and %d copies are away", i, len(f.away), copyCount-len(g.ports[i].copies.free))
		}
	}
}

// TestWaitedForAnother has a packet's waiting begin where the dispatcher that received it says, and its arrival stay what it was; what a dispatcher received
// itself has waited since its arrival.
func TestWaitedForAnother(t *testing.T) {
	g, fakes := join(3)
	g.Serve(0, func() {}, func(arrival clock.Time) time.Duration {
		if arrival != 1000 {
			t.Errorf("asked for a packet of %d", arrival)
		}
		return 30
	})
	gone := packet(wire.Header{}, &wire.Gone{Connection: 5})
	fakes[0].arrived = [][]byte{packet(wire.Header{Connection: idOf(t, 1)}, &wire.Busy{}), packet(wire.Header{Connection: idOf(t, 0)}, &wire.Busy{}), gone}
	batch := make([]dispatcher.Datagram, 8)
	for i, want := range []clock.Time{0, 1000 - 30, 1000 - 30} {
		n := g.Port(i).Receive(1000, batch)
		if n == 0 {
			t.Errorf("dispatcher %d got nothing", i)
		}
		for _, d := range batch[:n] {
			if d.Since != want || d.Arrival != 1000 {
				t.Errorf("at dispatcher %d a packet waits since %d and arrived at %d, want %d and 1000", i, d.Since, d.Arrival, want)
			}
		}
	}
}

// TestHeldForOneTurn has a packet stay where it is until its reader's next Receive.
func TestHeldForOneTurn(t *testing.T) {
	g, fakes := join(3)
	fakes[0].arrived = [][]byte{packet(wire.Header{Connection: idOf(t, 1)}, &wire.Busy{})}
	receive(g, 0)
	for range 3 {
		receive(g, 0)
		if len(fakes[0].away) != 1 {
			t.Fatal("the packet went home before it was read")
		}
	}
	receive(g, 1)
	receive(g, 0)
	if len(fakes[0].away) != 1 {
		t.Fatal("the packet went home while it was read")
	}
	receive(g, 1)
	receive(g, 0)
	if len(fakes[0].away) != 0 {
		t.Error("the packet did not go home")
	}
}

// TestFullLane drops and counts what finds no room, of packets that are kept and of those that are copied, and goes on when there is room.
func TestFullLane(t *testing.T) {
	for at, room := range map[int]int{0: laneSlots(3), 2: copyCount} {
		g, fakes := join(3)
		p := packet(wire.Header{Connection: idOf(t, 1)}, &wire.Busy{})
		for range room + 10 {
			fakes[at].arrived = append(fakes[at].arrived, p)
		}
		for len(fakes[at].arrived) > 0 {
			receive(g, at)
		}
		if s := g.Port(at).Stats(); s.HandedOver != uint64(room) || s.HandoverDropped != 10 {
			t.Errorf("port %d: %d handed over, %d dropped, room is %d", at, s.HandedOver, s.HandoverDropped, room)
		}
		got := 0
		for n := 1; n > 0; got += n {
			n = len(receive(g, 1))
		}
		if got != room {
			t.Errorf("%d of %d were received", got, room)
		}
		fakes[at].arrived = [][]byte{p}
		receive(g, at)
		if len(receive(g, 1)) != 1 {
			t.Error("nothing is handed over once there is room")
		}
	}
}

// TestGoneToDialers hands a word of a server that knows no connection to each dispatcher that may have dialed it.
func TestGoneToDialers(t *testing.T) {
	for _, count := range []int{2, 3, 8} {
		g, fakes := join(count)
		gone := packet(wire.Header{}, &wire.Gone{Connection: 5})
		for at := range count {
			fakes[at].arrived = [][]byte{gone}
			got := map[int]int{at: len(receive(g, at))}
			for i := range count {
				got[i] += len(receive(g, i))
			}
			may := map[int]bool{}
			for n := range session.Dialers(count) {
				may[session.Dialer(&fakes[at].from, n, count)] = true
			}
			for i := range count {
				if (got[i] == 1) != may[i] || got[i] > 1 {
					t.Errorf("dispatcher %d of %d got %d, and may have dialed: %v", i, count, got[i], may[i])
				}
			}
		}
	}
}

// TestFair has neither the other dispatchers nor our own port keep the other from being served.
func TestFair(t *testing.T) {
	g, fakes := join(2)
	ours, theirs := packet(wire.Header{Connection: idOf(t, 0)}, &wire.Busy{}), packet(wire.Header{Connection: idOf(t, 0), Number: 1}, &wire.Busy{})
	for range 300 {
		fakes[0].arrived = append(fakes[0].arrived, ours)
		fakes[1].arrived = append(fakes[1].arrived, theirs)
	}
	for range 3 {
		receive(g, 1)
	}
	for range 2 {
		own := 0
		batch := receive(g, 0)
		for _, p := range batch {
			if bytes.Equal(p, ours) {
				own++
			}
		}
		if own != 32 || len(batch) != 64 {
			t.Errorf("of %d packets %d are of our own port", len(batch), own)
		}
	}
}

// TestWait does not block while something is there.
func TestWait(t *testing.T) {
	g, fakes := join(2)
	_ = g.Port(1).Wait(time.Hour, -1)
	fakes[0].arrived = [][]byte{packet(wire.Header{Connection: idOf(t, 1)}, &wire.Busy{})}
	receive(g, 0)
	_ = g.Port(1).Wait(time.Hour, -1)
	if fakes[1].waits != 1 {
		t.Errorf("waited %d times, want once: before there was anything", fakes[1].waits)
	}
}

// TestCloseTogether closes no port before the last dispatcher is done, and each once; who is done reaches its port no more.
func TestCloseTogether(t *testing.T) {
	g, fakes := join(3)
	for i := range 3 {
		for range 2 {
			if err := g.Port(i).Close(); err != nil {
				t.Error(err)
			}
		}
		if _, lent := g.Port(i).Lend(); lent || g.Port(i).Stats().Received != 9 {
			t.Error("a closed port lends, or has lost its counters")
		}
		for at, f := range fakes {
			if want := i / 2; f.closed != want {
				t.Errorf("after %d, port %d is closed %d times", i, at, f.closed)
			}
		}
	}
}

// TestHandoverAllocates nothing, whether packets are kept or copied.
func TestHandoverAllocates(t *testing.T) {
	for _, at := range []int{0, 1} {
		ports := []dispatcher.Port{still{&fake{}}, &fake{}}
		g := Join(ports)
		p := packet(wire.Header{Connection: idOf(t, uint8(1-at))}, &wire.Busy{})
		f, ok := ports[at].(*fake)
		if !ok {
			f = ports[at].(still).fake
		}
		arrived, batch := [][]byte{p, p, p}, make([]dispatcher.Datagram, 64)
		if n := testing.AllocsPerRun(1000, func() {
			f.arrived = arrived
			g.Port(at).Receive(1, batch)
			if got := g.Port(1-at).Receive(1, batch); got != len(arrived) {
				t.Fatalf("%d came over", got)
			}
		}); n != 0 {
			t.Errorf("%v allocations to hand over from port %d", n, at)
		}
	}
}

// still keeps packets without books.
type still struct{ *fake }

func (still) Hold(i int) (uint64, bool) { return uint64(i), true }
func (still) Return(uint64)             {}
