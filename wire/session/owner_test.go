package session

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/wire"
)

// TestOwnerOfID reads back from connection ids whose they are, for every owner and after many generations.
func TestOwnerOfID(t *testing.T) {
	for owner := range OwnersMax {
		table := NewTable(uint8(owner), 0xffffff, 16)
		c, err := table.Dial(wire.Addr{Port: 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 5000 { // more than the generations that an id can tell apart
			if id := table.NextID(c); Owner(id) != owner {
				t.Fatalf("owner %d of %#x, want %d", Owner(id), id, owner)
			}
		}
	}
}

// TestOpenOwner has the opens of many clients fall on all dispatchers, none of which gets twice its share, and each one always on the same.
func TestOpenOwner(t *testing.T) {
	const clients = 4096
	for _, count := range []int{1, 2, 3, 4, 7, 16} {
		got := make([]int, count)
		for i := range clients {
			// Clients that have just started: their first connection, of an epoch of their own.
			table := NewTable(0, uint32(i)*2654435761, 1)
			c, _ := table.Dial(wire.Addr{Port: 1}, 1)
			owner := OpenOwner(c.Local, count)
			if owner < 0 || owner >= count || owner != OpenOwner(c.Local, count) {
				t.Fatalf("owner %d of %d", owner, count)
			}
			got[owner]++
		}
		for owner, n := range got {
			if share := clients / count; n < share/2 || n > 2*share {
				t.Errorf("of %d opens, dispatcher %d of %d got %d", clients, owner, count, n)
			}
		}
	}
}

// TestOpenOwnerOfOneClient has the connections of one process, by any of its dispatchers, come to more than one of the server's.
func TestOpenOwnerOfOneClient(t *testing.T) {
	seen := map[int]bool{}
	for owner := range 4 {
		c, _ := NewTable(uint8(owner), 77, 1).Dial(wire.Addr{Port: 1}, 1)
		seen[OpenOwner(c.Local, 4)] = true
	}
	if len(seen) < 2 {
		t.Error("four connections came to one dispatcher")
	}
}

// TestDialer has no server dialed by more dispatchers than it has room for, and each of these dialing in its turn.
func TestDialer(t *testing.T) {
	to := wire.Addr{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}, Port: 7700}
	for _, count := range []int{1, 2, 4, 5, 64} {
		seen := map[int]bool{}
		for n := range 1000 {
			d := Dialer(&to, n, count)
			if d < 0 || d >= count || d != Dialer(&to, n+Dialers(count), count) {
				t.Fatalf("dispatcher %d of %d", d, count)
			}
			seen[d] = true
		}
		if len(seen) != Dialers(count) || len(seen) > PeerMax/2 {
			t.Errorf("%d of %d dispatchers dial one server", len(seen), count)
		}
	}
}
