//go:build linux && !portable

package udpport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// TestGroupSteers sends packets of every kind to groups of several sizes, over either family: the kernel gives each to the dispatcher whose it is.
func TestGroupSteers(t *testing.T) {
	random := seedtest.Rand(t)
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		for _, count := range []int{1, 2, 3, 5} {
			t.Run(fmt.Sprint(listen, " ", count), func(t *testing.T) {
				ports, err := OpenGroup(Config{Listen: netip.MustParseAddrPort(listen)}, count)
				if err != nil {
					t.Fatal(err)
				}
				defer closeGroup(ports)
				to := ports[0].LocalAddr().AddrPort()
				if to.Addr().IsUnspecified() {
					to = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), to.Port())
				}
				conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				for range 100 {
					id := wire.ConnectionID(random.Uint64())
					owner := random.IntN(count)
					ours := id&(1<<58-1) | wire.ConnectionID(owner)<<58
					arrives(t, conn, ports, owner, header(wire.Header{Connection: ours}, &wire.Busy{}))
					arrives(t, conn, ports, session.OpenOwner(id, count), header(wire.Header{Flags: wire.PacketHandshake}, &wire.Open{Connection: id}))
				}
				arrives(t, conn, ports, 0, header(wire.Header{}, &wire.Gone{Connection: 9}))
				arrives(t, conn, ports, 0, []byte{0})
			})
		}
	}
}

func header(h wire.Header, m interface{ Append([]byte) []byte }) []byte {
	return wire.FinishPacket(m.Append(wire.BeginPacket(make([]byte, 0, 256))), h, 0)
}

// arrives sends a packet and waits for it at one of the ports.
func arrives(t *testing.T, conn *net.UDPConn, ports []*Port, at int, payload []byte) {
	t.Helper()
	if _, err := conn.Write(payload); err != nil {
		t.Fatal(err)
	}
	var batch [4]dispatcher.Datagram
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
		for i, p := range ports {
			if p.Receive(clock.Now(), batch[:]) == 0 {
				continue
			}
			if i != at || string(batch[0].Payload) != string(payload) {
				t.Fatalf("port %d got %x, port %d should have got %x", i, batch[0].Payload, at, payload)
			}
			return
		}
	}
	t.Fatalf("%x did not arrive", payload)
}

// TestGroupAlone lets no other endpoint of the same user in, neither by itself nor as a group.
func TestGroupAlone(t *testing.T) {
	ports, err := OpenGroup(Config{Listen: netip.MustParseAddrPort("127.0.0.1:0")}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer closeGroup(ports)
	for _, count := range []int{1, 2} {
		other, err := OpenGroup(Config{Listen: ports[1].LocalAddr().AddrPort()}, count)
		if !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("a group of %d at the same port: %v", count, err)
			closeGroup(other)
		}
	}
	if got := ports[0].LocalAddr(); got != ports[1].LocalAddr() || got.Port == 0 {
		t.Errorf("the ports are at %v and %v", got, ports[1].LocalAddr())
	}
	for _, count := range []int{0, session.OwnersMax + 1} {
		if _, err := OpenGroup(Config{Listen: netip.MustParseAddrPort("127.0.0.1:0")}, count); err == nil {
			t.Errorf("a group of %d was opened", count)
		}
	}
}
