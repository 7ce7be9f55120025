package session

import (
	"errors"
	"testing"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

// slowPeers is the obvious twin of Peers: a list.
type slowPeer struct {
	place  uint32
	conn   *Conn
	handle wire.SessionID
	id     wire.SessionID
	serial Serial
}

func TestPeersAgainstTwin(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 20 {
		p := NewPeers()
		var conns []*Conn
		for i := range uint32(5) {
			conns = append(conns, &Conn{index: i})
		}
		twin := map[uint32]slowPeer{}
		serials := map[Serial]bool{}
		for step := range 3000 {
			place := 1 + uint32(rng.IntN(40)) + uint32(rng.IntN(2))*2*peersPerChunk
			c := conns[rng.IntN(len(conns))]
			if e, taken := twin[place]; taken {
				if _, err := p.Add(place, c, 77_000, 0); !errors.Is(err, ErrHandleInUse) {
					t.Fatal("a place was given out twice")
				}
				p.Remove(place, e.conn)
				delete(twin, place)
				if p.Lookup(e.conn, e.id) != 0 || p.Find(e.conn, e.handle) != 0 || p.Serial(place) == e.serial {
					t.Fatal("found after its removal")
				}
			} else {
				handle := wire.SessionID(1 + step)
				if _, err := p.Add(place, c, handle, 0); err != nil {
					t.Fatal(err)
				}
				twin[place] = slowPeer{place, c, handle, p.ID(place), p.Serial(place)}
				if serials[p.Serial(place)] {
					t.Fatal("a serial twice")
				}
				serials[p.Serial(place)] = true
			}
			if step%50 == 0 {
				checkPeers(t, p, conns, twin)
			}
		}
		for _, c := range conns {
			for place := p.First(c); place != 0; place = p.First(c) {
				if twin[place].conn != c {
					t.Fatal("a session on the wrong connection's list")
				}
				delete(twin, place)
				p.Remove(place, c)
			}
			if c.Sessions() != 0 {
				t.Fatalf("%d sessions left", c.Sessions())
			}
		}
		if len(twin) != 0 || p.Len() != 0 {
			t.Fatalf("%d sessions were on no list", len(twin))
		}
	}
}

func checkPeers(t *testing.T, p *Peers, conns []*Conn, twin map[uint32]slowPeer) {
	t.Helper()
	counts := map[*Conn]int{}
	for place, e := range twin {
		counts[e.conn]++
		index, ok := p.Conn(place)
		if !ok || index != e.conn.index || p.At(place).Handle != e.handle {
			t.Fatalf("place %d: %+v", place, p.At(place))
		}
		for _, c := range conns {
			wantPlace := uint32(0)
			if c == e.conn {
				wantPlace = place
			}
			if p.Lookup(c, e.id) != wantPlace || p.Find(c, e.handle) != wantPlace {
				t.Fatalf("session %x is found on connection %d", e.id, c.index)
			}
		}
	}
	for _, c := range conns {
		if c.Sessions() != counts[c] {
			t.Fatalf("%d sessions, want %d", c.Sessions(), counts[c])
		}
	}
	if p.Len() != len(twin) {
		t.Fatalf("%d sessions, want %d", p.Len(), len(twin))
	}
}

func TestPeersForeignHandles(t *testing.T) {
	p, c := NewPeers(), &Conn{}
	for _, id := range []wire.SessionID{0, 1, PeersMax, ^wire.SessionID(0)} {
		if p.Lookup(c, id) != 0 {
			t.Errorf("%x found in nothing", id)
		}
	}
	if _, ok := p.Conn(12345); ok {
		t.Error("a connection of nothing")
	}
	_, _ = p.Add(7, c, 1, 0)
	for bit := range 32 {
		if p.Lookup(c, p.ID(7)^1<<bit) != 0 {
			t.Errorf("found with bit %d flipped", bit)
		}
	}
}

func TestPeersStale(t *testing.T) {
	p, c := NewPeers(), &Conn{}
	_, _ = p.Add(1, c, 5, 1000)
	for _, x := range []struct {
		at    wire.PacketNumber
		stale bool
	}{{999, true}, {1000, false}, {1001, false}, {1000 + 1<<31 - 1, false}, {0, true}} {
		if p.Stale(1, c, x.at) != x.stale {
			t.Errorf("packet %d: stale %v", x.at, !x.stale)
		}
	}
	p.End(1, c, 2000)
	_, _ = p.Add(1, c, 5, 1500)
	p.End(1, c, 1600) // an earlier end, overtaken
	for _, x := range []struct {
		at    wire.PacketNumber
		stale bool
	}{{1999, true}, {2000, false}, {2001, false}} {
		if p.Stale(0, c, x.at) != x.stale {
			t.Errorf("registration in packet %d: stale %v", x.at, !x.stale)
		}
	}
	_, _ = p.Add(1, c, 5, 1<<32+5) // the numbers wrap 32 bits, the comparison does not mind
	if p.Stale(1, c, 1<<32+6) || !p.Stale(1, c, 1<<32-1) {
		t.Error("wrong across 32 bits")
	}
}
