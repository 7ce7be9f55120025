//go:build linux

package xsk_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
	"github.com/stillwater-rpc/stillwater/xsk/xsktest/contract"
)

// patience bounds every wait; it is met only by a failure, so no test depends on how fast the machine is.
const patience = contract.Patience

// side is one end of a pair with a program and a queue on it.
type side = contract.Side[*xsk.Queue]

// newSide attaches a program natively at an end and opens a queue there, whose books are audited when the test ends.
func newSide(t testing.TB, end *lab.End, cfg xsk.Config) *side {
	t.Helper()
	return contract.NewSide(t, end, cfg, xsk.Open)
}

// TestContract holds a queue to what another implementation has to do as well: most of what a real link can show.
func TestContract(t *testing.T) { contract.Test(t, xsk.Open) }

// TestEveryQueueIsServed spreads kernel flows over two queues with a socket on each: which flow goes where is the kernel's hash,
// so only the sum counts.
func TestEveryQueueIsServed(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2})
	sides := [2]*side{newSide(t, pair.B, xsk.Config{})}
	sides[1] = &side{End: pair.B}
	if err := pair.B.Do(func() (err error) {
		sides[1].Queue, err = xsk.Open(xsk.Config{Interface: pair.B.Index, QueueID: 1, Checked: true})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sides[1].Close(t) })
	if err := sides[0].Steering.SetSocket(1, sides[1].Queue.FD()); err != nil {
		t.Fatal(err)
	}
	const flows = 64
	for range flows {
		var client *net.UDPConn
		if err := pair.A.Do(func() (err error) {
			client, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(pair.B.Address.Addr(), contract.Port)))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write([]byte("one of many")); err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
	}
	batch := make([]frame.Desc, 64)
	var got [2]int
	for deadline := time.Now().Add(patience); got[0]+got[1] < flows; {
		for i, s := range sides {
			n := s.Queue.Receive(batch)
			s.Queue.Release(batch[:n])
			got[i] += n
		}
		if time.Now().After(deadline) {
			t.Fatalf("received %v of %d", got, flows)
		}
	}
	t.Logf("queues received %v", got)
}

// TestTrafficInHugePages receives into every frame of a fill ring that is as large as several huge pages, of either legal size of frames: what
// was sent is what is read, wherever the kernel put it.
func TestTrafficInHugePages(t *testing.T) {
	const ring, perRound, hugePageBits = 4096, 64, 21
	for _, size := range []int{2048, 4096} {
		pair := labtest.NewPair(t, lab.PairConfig{})
		from := newSide(t, pair.A, xsk.Config{})
		to := newSide(t, pair.B, xsk.Config{FrameSizeBytes: size, FillRingSize: ring, Node: xsk.NodeAt(0)})
		t.Logf("frames of %d bytes, in %s", size, to.Queue.Memory())
		batch, pages, got := make([]frame.Desc, perRound), map[frame.Addr]bool{}, 0
		for got < ring {
			for i := range perRound {
				if !from.Send(t, pair.B, uint64(got+i), 1000) {
					t.Fatal("no frame to lend")
				}
			}
			from.Drain(t)
			for end := got + perRound; got < end; {
				received := to.Receive(t, batch)
				for _, desc := range received {
					if number := to.Number(desc); number != uint64(got) {
						t.Fatalf("packet %d, want %d", number, got)
					}
					pages[desc.Addr>>hugePageBits] = true
					got++
				}
				to.Queue.Release(received)
			}
		}
		if want := ring * size >> hugePageBits; len(pages) < want {
			t.Errorf("packets came into %d areas of 2 MiB, want %d", len(pages), want)
		}
	}
}
