package session

import (
	"errors"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// dial adds a dialed connection and fails the test if there is no room.
func dial(t *testing.T, table *Table) *Conn {
	t.Helper()
	c, err := table.Dial(address(1, 7), 1)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTableIDs(t *testing.T) {
	const owner, epoch = 61, 0xabcdef
	table := NewTable(owner, epoch|0x7000000, 10) // the low 24 bits count
	seen := map[wire.ConnectionID]bool{}
	for range 10_000 {
		c := dial(t, table)
		if seen[c.Local] {
			t.Fatalf("id %x again", uint64(c.Local))
		}
		seen[c.Local] = true
		id := uint64(c.Local)
		if id>>58 != owner || id&0xffffff != epoch || id>>36&0x3fffff != uint64(c.Index()) {
			t.Fatalf("id %x of index %d", id, c.Index())
		}
		if table.Lookup(c.Local) != c || table.At(c.Index()) != c {
			t.Fatal("not found")
		}
		table.Remove(c)
		table.Remove(c) // twice is once
		if table.Lookup(c.Local) != nil || table.At(c.Index()) != nil || table.Len() != 0 {
			t.Fatal("found after its removal")
		}
		if len(table.entries) < 10 { // use all places in turn
			for len(table.entries) < 10 {
				dial(t, table)
			}
			for i := range uint32(10) {
				table.Remove(table.At(i))
			}
		}
	}
}

func TestTableOfZeroEpochGivesNoZeroID(t *testing.T) {
	table := NewTable(0, 0, 1)
	for range 1 << generationBits {
		c := dial(t, table)
		if c.Local == 0 {
			t.Fatal("a connection id of zero")
		}
		table.Remove(c)
	}
}

func TestTableForeignIDs(t *testing.T) {
	table := NewTable(1, 5, 10)
	c := dial(t, table)
	for bit := range 64 {
		if table.Lookup(c.Local^1<<bit) != nil {
			t.Errorf("found with bit %d flipped", bit)
		}
	}
	if table.Lookup(0) != nil || table.Lookup(^wire.ConnectionID(0)) != nil || NewTable(1, 6, 10).Lookup(c.Local) != nil {
		t.Error("found what is not there")
	}
	old := c.Local
	c.HasToken = true
	c.Received(7, wire.Header{Number: 9})
	c.Reset(table.NextID(c))
	if table.Lookup(old) != nil || table.Lookup(c.Local) != c || !c.HasToken || !c.Dialed || c.newest != 0 {
		t.Errorf("after a reset: %+v", c)
	}
}

func TestTableBound(t *testing.T) {
	table := NewTable(0, 1, 3)
	var last *Conn
	for range 3 {
		last = dial(t, table)
	}
	if _, err := table.Dial(address(1, 7), 1); !errors.Is(err, ErrTooManyConnections) {
		t.Errorf("one more: %v", err)
	}
	if _, _, err := table.Accept(address(2, 7), 5, 1); !errors.Is(err, ErrTooManyConnections) || len(table.dialers)+len(table.peers) != 0 {
		t.Errorf("one more: %v", err)
	}
	table.Remove(last)
	if c := dial(t, table); c.Index() != 2 || c.Local == last.Local {
		t.Error("the freed place is not used, or under its old id")
	}
}

func TestTableAccept(t *testing.T) {
	table := NewTable(0, 1, 100)
	a, fresh, err := table.Accept(address(1, 7), 5, 1)
	if err != nil || !fresh || a.Dialed || !a.Established() {
		t.Fatal(a, fresh, err)
	}
	if b, fresh, _ := table.Accept(address(1, 7), 5, 2); b != a || fresh {
		t.Error("a repeated open made another connection")
	}
	for i, other := range []struct {
		peer   wire.Addr
		remote wire.ConnectionID
	}{{address(1, 8), 5}, {address(2, 7), 5}, {address(1, 7), 6}} {
		if b, fresh, _ := table.Accept(other.peer, other.remote, 2); b == a || !fresh {
			t.Errorf("%d: somebody else got the connection", i)
		}
	}
	table.Remove(a)
	if b, fresh, _ := table.Accept(address(1, 7), 5, 3); b == a || !fresh {
		t.Error("a removed connection came back")
	}
}

func TestTableBoundOfOnePeer(t *testing.T) {
	table := NewTable(0, 1, 100)
	var all []*Conn
	for i := range PeerMax {
		c, _, err := table.Accept(address(1, 7), wire.ConnectionID(1+i), clock.Time(100-i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if _, _, err := table.Accept(address(1, 7), 99, 1); !errors.Is(err, ErrTooManyConnections) {
		t.Errorf("one more: %v", err)
	}
	if _, _, err := table.Accept(address(1, 8), 99, 1); err != nil {
		t.Errorf("somebody else: %v", err)
	}
	if table.Silent(address(1, 7), 93) != nil || table.Silent(address(9, 9), 1000) != nil {
		t.Error("silent since before it was heard")
	}
	if c := table.Silent(address(1, 7), 1000); c != all[PeerMax-1] {
		t.Error("not the most silent one")
	}
	for _, c := range all {
		table.Remove(c)
	}
	if len(table.peers) != 1 {
		t.Errorf("%d peers are remembered, one is there", len(table.peers))
	}
}

func TestTableSweepVisitsAll(t *testing.T) {
	table := NewTable(0, 1, 10)
	if table.Sweep() != nil {
		t.Error("swept something out of nothing")
	}
	seen := map[*Conn]int{}
	for range 5 {
		dial(t, table)
	}
	table.Remove(table.At(3))
	for range 10 {
		if c := table.Sweep(); c != nil {
			seen[c]++
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d of 4", len(seen))
	}
	for _, n := range seen {
		if n != 2 {
			t.Errorf("seen %d times in two rounds", n)
		}
	}
}

func TestConnEchoAndRoundTrip(t *testing.T) {
	us := clock.Time(1000)
	// a's clock is 1 s behind b's, and both wrap 32 bits in between.
	for _, skew := range []clock.Time{0, clock.Time(time.Second), 1<<32 - 50} {
		a, b := &Conn{Remote: 1}, &Conn{Remote: 2}
		now := clock.Time(1<<33 - 30*1000)
		for i := range 100 {
			h := a.Header(now)
			if h.Number != wire.PacketNumber(i) || h.Connection != 1 {
				t.Fatalf("header %+v", h)
			}
			now += 5 * us
			if newer, _ := b.Received(now+skew, h); !newer {
				t.Fatal("not newer")
			}
			now += 700 * us // held
			h = b.Header(now + skew)
			now += 5 * us
			if _, rtt := a.Received(now, h); rtt != 10*time.Microsecond {
				t.Fatalf("skew %d, round %d: round trip %v", skew, i, rtt)
			}
		}
		if a.RTT.Smoothed() != 10*time.Microsecond {
			t.Errorf("smoothed %v", a.RTT.Smoothed())
		}
	}
}

func TestConnHoldsNoEchoTooLong(t *testing.T) {
	c := &Conn{}
	if c.Header(5).Echo != 0 {
		t.Error("an echo of nothing")
	}
	c.Received(1000, wire.Header{Stamp: 77})
	if e := c.Header(1000 + clock.Time(time.Second) - 1).Echo; e == 0 {
		t.Error("no echo")
	}
	if e := c.Header(1000 + clock.Time(time.Second)).Echo; e != 0 {
		t.Errorf("held for a second and still echoed: %d", e)
	}
	c.Received(2000, wire.Header{Number: 1, Stamp: ^uint32(0)})
	if e := c.Header(2001).Echo; e != 1 {
		t.Errorf("the stamp that wraps to zero is echoed as %d", e)
	}
	if _, rtt := c.Received(5000, wire.Header{Number: 2, Echo: 6000}); rtt != 0 {
		t.Errorf("an echo of the future is a round trip of %v", rtt)
	}
}

func TestConnNewest(t *testing.T) {
	c := &Conn{}
	for _, p := range []struct {
		n     wire.PacketNumber
		newer bool
	}{{0, true}, {0, false}, {5, true}, {3, false}, {5, false}, {6, true}, {1 << 40, true}} {
		if newer, _ := c.Received(1, wire.Header{Number: p.n}); newer != p.newer {
			t.Errorf("packet %d: newer %v", p.n, newer)
		}
	}
}

func TestRTTIsRobust(t *testing.T) {
	var r RTT
	r.Sample(0)
	r.Sample(-5)
	if r.Smoothed() != 0 || r.Bound() != 0 {
		t.Error("no sample is one")
	}
	r.Sample(10_000)
	if r.Smoothed() != 10_000 || r.Bound() != 30_000 {
		t.Errorf("after the first: %v, %v", r.Smoothed(), r.Bound())
	}
	for range 100 {
		r.Sample(10_000)
	}
	if r.Bound() > 10_100 {
		t.Errorf("a steady path is bounded by %v", r.Bound())
	}
	r.Sample(time.Second)
	if r.Smoothed() > 11_300 {
		t.Errorf("one sample of a second made it %v", r.Smoothed())
	}
	for range 60 {
		r.Sample(time.Millisecond)
	}
	if r.Smoothed() < 900*time.Microsecond {
		t.Errorf("a path that became slower is not followed: %v", r.Smoothed())
	}
	for range 1000 {
		r.Doubt()
	}
	if r.Smoothed() > 64 {
		t.Errorf("doubt leaves %v", r.Smoothed())
	}
	r = RTT{}
	r.Sample(1)
	for range 200 {
		r.Sample(time.Microsecond)
	}
	if r.Smoothed() < 900 {
		t.Errorf("an estimate of a nanosecond grows to %v", r.Smoothed())
	}
}
