//go:build linux && !portable

package udpport_test

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/udpport"
)

// TestArrivalIsTheKernels lets a packet wait in the socket: its arrival is before the instant at which it was already
// there, however long the test was held up, and not before it was sent.
func TestArrivalIsTheKernels(t *testing.T) {
	a, b := open(t, udpport.Config{}), open(t, udpport.Config{})
	batch := make([]dispatcher.Datagram, 64)
	// The kernel turns stamping on by a work item, after setsockopt has returned; until then packets are stamped when
	// they are taken off the socket (net/core/dev.c, net_enable_timestamp).
	for try := 0; ; try++ {
		b.Receive(clock.Now(), batch)
		sent := clock.Now()
		send(t, a, b.LocalAddr(), []byte("x"))
		a.Kick()
		if err := b.Wait(-1, -1); err != nil {
			t.Fatal(err)
		}
		there := clock.Now()
		now := clock.Now()
		for ; now == there; now = clock.Now() {
		}
		if n := b.Receive(now, batch); n != 1 {
			t.Fatalf("received %d datagrams", n)
		}
		// The two clocks are read one after the other, so a stamp may be off by the time between; the bound below
		// holds exactly, since the socket was empty before the packet was sent.
		if batch[0].Arrival.After(now) {
			t.Fatalf("arrived at %d, after %d", batch[0].Arrival, now)
		}
		if batch[0].Arrival.Before(there) && !batch[0].Arrival.Before(sent.Add(-1e6)) {
			return
		}
		if try == 10000 {
			t.Fatalf("no packet of %d has the kernel's stamp: there at %d, arrived at %d", try, there, batch[0].Arrival)
		}
	}
}

// TestArrivalSurvivesTheWallClock: whatever the wall clock is set to, an arrival is not in the future, and not before
// the socket was empty.
func TestArrivalSurvivesTheWallClock(t *testing.T) {
	p := open(t, udpport.Config{})
	for _, c := range []struct{ emptyAt, arrival, now, want clock.Time }{
		{100, 150, 200, 150}, {100, 50, 200, 100}, {100, 1e15, 200, 200}, {100, -1e15, 200, 100}, {0, 5, 200, 5},
	} {
		if got := udpport.Bound(p, c.emptyAt, c.arrival, c.now); got != c.want {
			t.Errorf("empty at %d, stamp %d, now %d: arrival %d, want %d", c.emptyAt, c.arrival, c.now, got, c.want)
		}
	}
}
