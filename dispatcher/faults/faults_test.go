package faults

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// good is a port without faults: what comes in was put into its inbox, and what goes out is kept.
type good struct {
	inbox   []dispatcher.Datagram
	frames  [64][64]byte // like a NIC's, they are written over by the next batch
	sent    []uint64
	lent    int
	buffers int // free ones
	kicks   int
	waited  time.Duration
	closed  bool
}

func (g *good) Receive(now clock.Time, batch []dispatcher.Datagram) int {
	for i := range g.frames {
		clear(g.frames[i][:])
	}
	n := 0
	for n < len(batch) && n < len(g.frames) && len(g.inbox) > 0 {
		in := g.inbox[0]
		in.Payload = g.frames[n][:copy(g.frames[n][:], in.Payload)]
		in.Arrival = now
		batch[n], g.inbox = in, g.inbox[1:]
		n++
	}
	return n
}

func (g *good) Lend() (dispatcher.Buffer, bool) {
	if g.buffers == 0 {
		return dispatcher.Buffer{}, false
	}
	g.buffers--
	g.lent++
	return dispatcher.Buffer{Bytes: make([]byte, 0, 64), Token: 7}, true
}

func (g *good) Send(b dispatcher.Buffer, _ wire.Addr) {
	g.giveBack(b)
	g.sent = append(g.sent, binary.BigEndian.Uint64(b.Bytes))
}
func (g *good) Drop(b dispatcher.Buffer) { g.giveBack(b) }
func (g *good) giveBack(b dispatcher.Buffer) {
	if b.Token != 7 {
		panic("a buffer that the port did not lend")
	}
	g.buffers++
	g.lent--
}
func (g *good) Kick()            { g.kicks++ }
func (g *good) Outstanding() int { return 0 }
func (g *good) Wait(d time.Duration, _ int) error {
	g.waited = d
	return nil
}
func (g *good) LocalAddr() wire.Addr        { return wire.Addr{Port: 5} }
func (g *good) PayloadMax() int             { return 64 }
func (g *good) Name() string                { return "good" }
func (g *good) Stats() dispatcher.PortStats { return dispatcher.PortStats{Received: 1000} }
func (g *good) Close() error {
	g.closed = true
	return nil
}

func numbered(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// in puts n packets through a wrapped port, a few a turn, 10 us apart, and returns what arrived.
func in(p dispatcher.Port, g *good, n int) (got []uint64, late []time.Duration) {
	now := clock.Time(1_000_000)
	var batch [16]dispatcher.Datagram
	at := map[uint64]clock.Time{}
	for i := 0; i < n || now < clock.Time(1_000_000+n*2000+20_000_000); {
		for range 5 {
			if i < n {
				g.inbox = append(g.inbox, dispatcher.Datagram{Payload: numbered(uint64(i)), From: wire.Addr{Port: uint16(i)}})
				at[uint64(i)] = now
				i++
			}
		}
		for {
			k := p.Receive(now, batch[:])
			if k == 0 {
				break
			}
			for _, d := range batch[:k] {
				number := binary.BigEndian.Uint64(d.Payload)
				got, late = append(got, number), append(late, d.Arrival.Sub(at[number]))
				if d.From.Port != uint16(number) || d.Arrival > now {
					panic("the wrong sender, or of the future")
				}
			}
		}
		now += 10_000
	}
	return got, late
}

func out(p dispatcher.Port, n int) {
	now := clock.Time(1_000_000)
	for i := range n {
		b, ok := p.Lend()
		if !ok {
			panic("no buffer")
		}
		b.Bytes = append(b.Bytes, numbered(uint64(i))...)
		p.Send(b, wire.Addr{Port: 9})
		p.Kick()
		if i%5 == 0 {
			p.Receive(now, make([]dispatcher.Datagram, 4))
			now += 10_000
		}
	}
	for p.Outstanding() > 0 {
		now += 10_000
		p.Receive(now, make([]dispatcher.Datagram, 4))
	}
}

func TestNoFaultsNoMiddleware(t *testing.T) {
	g := &good{}
	if Wrap(g, Config{Seed: 5, ReorderDelay: time.Second}) != dispatcher.Port(g) {
		t.Error("wrapped for nothing")
	}
	p := Wrap(g, Config{Loss: 0.1})
	if p.Name() != "good+faults" || p.LocalAddr().Port != 5 || p.PayloadMax() != 64 || p.Close() != nil || !g.closed {
		t.Error("not the port that was wrapped")
	}
}

func TestSameSeedSameFaults(t *testing.T) {
	var runs [3][]uint64
	for i, seed := range []uint64{1, 1, 2} {
		g := &good{buffers: 8}
		p := Wrap(g, Config{Seed: seed, Loss: 0.1, Duplicate: 0.1, Reorder: 0.2})
		got, _ := in(p, g, 2000)
		out(p, 2000)
		runs[i] = append(got, g.sent...)
	}
	if !slices.Equal(runs[0], runs[1]) || slices.Equal(runs[0], runs[2]) {
		t.Error("the seed does not decide")
	}
}

// near checks a share against its expectation by five standard deviations.
func near(t *testing.T, what string, got uint64, of int, p Probability) {
	t.Helper()
	want := float64(p) * float64(of)
	if off := math.Abs(float64(got) - want); off > 5*math.Sqrt(want*(1-float64(p)))+1 {
		t.Errorf("%s: %d of %d, expected %.0f", what, got, of, want)
	}
}

func TestFaultsComeAsOftenAsSaid(t *testing.T) {
	const n = 20_000
	cfg := Config{Seed: 3, Loss: 0.1, Duplicate: 0.05, Reorder: 0.2, ReorderDelay: 300 * time.Microsecond}
	for _, direction := range []Direction{Receive, Send, Both, 0} {
		g := &good{buffers: 8}
		cfg.Directions = direction
		p := New(g, cfg)
		got, late := in(p, g, n)
		out(p, n)
		ways := 0
		for _, way := range []struct {
			name string
			in   bool
			got  []uint64
		}{{"in", direction != Send, got}, {"out", direction != Receive, g.sent}} {
			times := map[uint64]int{}
			overtaken, newest := 0, uint64(0)
			for _, number := range way.got {
				if times[number]++; times[number] > 2 || number >= n {
					t.Fatalf("%s: packet %d arrived %d times", way.name, number, times[number])
				}
				if number < newest {
					overtaken++
				}
				newest = max(newest, number)
			}
			if !way.in {
				if len(way.got) != n || overtaken > 0 {
					t.Errorf("%s: faults in a direction without", way.name)
				}
				continue
			}
			ways++
			near(t, way.name+" lost", uint64(n-len(times)), n, cfg.Loss)
			near(t, way.name+" doubled", uint64(len(way.got)-len(times)), n, cfg.Duplicate*(1-cfg.Loss))
			if overtaken < n/10 {
				t.Errorf("%s: %d packets were overtaken", way.name, overtaken)
			}
		}
		near(t, "lost", p.Faults().Lost, ways*n, cfg.Loss)
		near(t, "delayed", p.Faults().Delayed, ways*n, cfg.Reorder*(1-cfg.Loss))
		for _, d := range late {
			if d < 0 || d > cfg.ReorderDelay {
				t.Errorf("held back for %v", d)
			}
		}
		if g.lent != 0 || g.buffers != 8 {
			t.Errorf("%d buffers lent", g.lent)
		}
		if s := p.Stats(); s.Received != 1000+uint64(len(got))-n || s.ReceiveDropped+s.SendDropped != p.Faults().Lost {
			t.Errorf("%+v with %d arrived", s, len(got))
		}
	}
}

func TestHealedNetworkLosesNothing(t *testing.T) {
	g := &good{buffers: 4}
	p := New(g, Config{Seed: 1, Loss: 1})
	if got, _ := in(p, g, 100); len(got) != 0 {
		t.Errorf("%d packets of 100 arrived through a network that loses all", len(got))
	}
	p.Heal()
	if got, _ := in(p, g, 100); len(got) != 100 {
		t.Errorf("%d packets of 100 arrived through a healed network", len(got))
	}
}

func TestEverythingLost(t *testing.T) {
	g := &good{buffers: 2}
	p := Wrap(g, Config{Loss: 1, Duplicate: 1, Reorder: 1})
	got, _ := in(p, g, 100)
	out(p, 100)
	if len(got)+len(g.sent) != 0 || g.lent != 0 {
		t.Errorf("%d and %d got through", len(got), len(g.sent))
	}
}

func TestCorruptFlipsOneBit(t *testing.T) {
	g := &good{buffers: 4}
	p := New(g, Config{Corrupt: 1})
	got := inOrder(p, g, 100)
	for i, number := range got {
		if x := number ^ uint64(i); x == 0 || x&(x-1) != 0 {
			t.Errorf("packet %d came as %x", i, number)
		}
	}
	p.flip(nil) // nothing to flip
	if p.Faults().Corrupted != 100 {
		t.Errorf("counted %d", p.Faults().Corrupted)
	}
}

// inOrder receives n packets in order at one instant, without looking at them.
func inOrder(p dispatcher.Port, g *good, n int) (got []uint64) {
	var batch [1]dispatcher.Datagram
	for i := range n {
		g.inbox = append(g.inbox, dispatcher.Datagram{Payload: numbered(uint64(i))})
	}
	for p.Receive(1, batch[:]) > 0 {
		got = append(got, binary.BigEndian.Uint64(batch[0].Payload))
	}
	return got
}

// No more is held than is allowed, and what is held gets through without a batch becoming larger than it is.
func TestHeldMax(t *testing.T) {
	g := &good{buffers: 4}
	p := New(g, Config{Reorder: 1, ReorderDelay: time.Millisecond, HeldMax: 3})
	var batch [4]dispatcher.Datagram
	for i := range 10 {
		g.inbox = append(g.inbox, dispatcher.Datagram{Payload: numbered(uint64(i))})
	}
	if n := p.Receive(1000, batch[:]); n != 1 || p.in.count != 3 {
		t.Errorf("%d through, %d held", n, p.in.count)
	}
	for i := range 5 {
		b, _ := p.Lend()
		b.Bytes = append(b.Bytes, numbered(uint64(i))...)
		p.Send(b, wire.Addr{})
	}
	if p.Outstanding() != 3 || len(g.sent) != 2 {
		t.Errorf("%d held, %d sent", p.Outstanding(), len(g.sent))
	}
	if _ = p.Wait(time.Second, 0); g.waited > time.Millisecond {
		t.Errorf("waits for %v with packets held", g.waited)
	}
	g.buffers = 1
	total := 0
	for now := clock.Time(3_000_000); ; now += 1000 {
		n := p.Receive(now, batch[:2])
		if n > 2 {
			t.Fatal("more than the batch")
		}
		if total += n; n == 0 && p.in.count == 0 && len(g.inbox) == 0 {
			break
		}
	}
	if total != 9 || len(g.sent) != 5 || g.kicks == 0 {
		t.Errorf("%d received, %d sent, %d kicks", total, len(g.sent), g.kicks)
	}
	if _ = p.Wait(time.Second, 0); g.waited != time.Second {
		t.Errorf("waits for %v with nothing held", g.waited)
	}
}

// A port without buffers loses what was held back, like a kernel without memory.
func TestNoBufferForTheHeld(t *testing.T) {
	g := &good{buffers: 1}
	p := New(g, Config{Reorder: 1})
	b, _ := p.Lend()
	b.Bytes = append(b.Bytes, numbered(1)...)
	p.Send(b, wire.Addr{})
	g.buffers = 0
	p.Receive(1_000_000, nil)
	if p.Outstanding() != 0 || len(g.sent) != 0 || p.Faults().Lost != 1 {
		t.Errorf("%d held, %d sent, %+v", p.Outstanding(), len(g.sent), p.Faults())
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		good bool
	}{
		{Config{}, true}, {Config{Loss: 1, Duplicate: 0.5}, true},
		{Config{Loss: -0.1}, false}, {Config{Duplicate: 1.1}, false}, {Config{Reorder: Probability(math.NaN())}, false},
		{Config{Corrupt: 2}, false}, {Config{ReorderDelay: -1}, false},
	} {
		if err := c.cfg.Validate(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
}

func TestAllocatesNothing(t *testing.T) {
	g := &good{buffers: 4}
	p := New(g, Config{Seed: 1, Loss: 0.1, Duplicate: 0.2, Reorder: 0.3, Directions: Receive})
	payload, inbox := numbered(1), make([]dispatcher.Datagram, 8)
	var batch [16]dispatcher.Datagram
	now := clock.Time(1)
	turn := func() {
		for i := range inbox {
			inbox[i] = dispatcher.Datagram{Payload: payload}
		}
		g.inbox = inbox
		now += 20_000
		p.Receive(now, batch[:])
	}
	for range 1000 {
		turn()
	}
	if n := testing.AllocsPerRun(1000, turn); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
