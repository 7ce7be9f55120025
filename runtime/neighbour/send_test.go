//go:build linux

package neighbour_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/neighbour"
	"github.com/stillwater-rpc/stillwater/wire"
)

// port is where packets go.
const port = 7701

// packet is a UDP packet from its IP header on.
func packet(from, to netip.Addr, payload string) []byte {
	d := &wire.Datagram{
		Source: wire.AddrFrom(netip.AddrPortFrom(from, 7700)), Destination: wire.AddrFrom(netip.AddrPortFrom(to, port)),
	}
	headers, encode := wire.FrameHeaderBytes, wire.EncodeUDPv4
	if to.Is6() {
		headers, encode = wire.FrameHeaderBytesIPv6, wire.EncodeUDPv6
	}
	frame := append(make([]byte, headers), payload...)
	encode(frame, d)
	return frame[wire.EthernetHeaderBytes:]
}

// ear hears what an end gets.
func ear(t *testing.T, end *lab.End) (fd int) {
	t.Helper()
	if err := end.Do(func() (err error) {
		const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network order
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all); err != nil {
			return err
		}
		t.Cleanup(func() { unix.Close(fd) })
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 30}); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: end.Index})
	}); err != nil {
		t.Fatal(err)
	}
	return fd
}

// hear waits for the next UDP packet to a port.
func hear(t *testing.T, fd int, to netip.Addr, port uint16) (payload string) {
	t.Helper()
	for frame := make([]byte, 4096); ; {
		n, err := unix.Read(fd, frame)
		if err != nil {
			t.Fatalf("no packet to %v: %v", to, err)
		}
		parse := wire.ParseUDPv4
		if to.Is6() {
			parse = wire.ParseUDPv6
		}
		if d, err := parse(frame[:n]); err == nil && d.Destination.AddrPort() == netip.AddrPortFrom(to, port) {
			return string(d.Payload)
		}
	}
}

// patient has an end's kernel ask for its neighbours so often that it does not give up on one within a test.
func patient(t *testing.T, end *lab.End) {
	t.Helper()
	if err := end.Do(func() error {
		for _, family := range []string{"ipv4", "ipv6"} {
			if err := os.WriteFile("/proc/sys/net/"+family+"/neigh/"+end.Interface+"/mcast_solicit", []byte("1000"), 0); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// appoint tells an end's kernel who has an address.
func appoint(t *testing.T, end, owner *lab.End, address netip.Addr) {
	t.Helper()
	change(t, end, func(h *netlink.Handle, _ netlink.Link) error {
		return h.NeighSet(&netlink.Neigh{
			LinkIndex: end.Index, State: netlink.NUD_PERMANENT, IP: address.AsSlice(), HardwareAddr: owner.Hardware,
		})
	})
}

// TestSendWaits gives the kernel what it may have for a neighbour that doesn't answer, and not one packet more, but asks for the neighbour each second. When that is
// known, all of it arrives, in order; and as nothing waits any more, there is no bound.
func TestSendWaits(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	patient(t, pair.A)
	table := openAt(t, pair.A, neighbour.Open)
	for from, to := range map[netip.Addr]netip.Addr{
		pair.A.Address.Addr(): netip.MustParseAddr("10.77.0.99"), pair.A.Address6.Addr(): netip.MustParseAddr("fd77::99"),
	} {
		start, number := clock.Time(1e12), 0
		give := func(now clock.Time, want int) {
			t.Helper()
			before := number
			for range 10 * neighbour.WaitingMax {
				if table.SendAt(packet(from, to, fmt.Sprint(number)), to.As16(), now) {
					number++
				}
			}
			if number-before != want {
				t.Errorf("to %v the kernel took %d packets, want %d", to, number-before, want)
			}
		}
		give(start, neighbour.WaitingMax)
		give(start.Add(neighbour.ResolveInterval-1), 0)
		give(start.Add(neighbour.ResolveInterval), 0)
		fd := ear(t, pair.B)
		appoint(t, pair.A, pair.B, to)
		for i := range number {
			if got := hear(t, fd, to, port); got != fmt.Sprint(i) {
				t.Fatalf("packet %d to %v is %q", i, to, got)
			}
		}
		hear(t, fd, to, neighbour.DiscardPort)
		give(start.Add(neighbour.ResolveInterval), 10*neighbour.WaitingMax)
		eventually(t, "the neighbour is known", func() bool { _, ok := table.Lookup(to.As16()); return ok })
	}
}

// TestSendToMany bounds the next hops that are asked for at once. One that is asked for already may be given more.
func TestSendToMany(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	table := openAt(t, pair.A, neighbour.Open)
	start, taken := clock.Time(1e12), 0
	for i := range 2 * neighbour.ResolveBurst {
		to := netip.AddrFrom4([4]byte{10, 77, 0, byte(100 + i)})
		for range 2 {
			if table.SendAt(packet(pair.A.Address.Addr(), to, "x"), to.As16(), start) {
				taken++
			}
		}
	}
	if taken != 2*neighbour.ResolveBurst {
		t.Errorf("of two packets to each of %d neighbours the kernel took %d, want %d", 2*neighbour.ResolveBurst, taken, 2*neighbour.ResolveBurst)
	}
}

// TestSendThroughGateway: the kernel resolves the gateway, and the packet that it was given goes there.
func TestSendThroughGateway(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	addRoute(t, pair.A, "203.0.113.0/24", pair.B.Address.Addr().String())
	addRoute(t, pair.A, "2001:db8::/32", pair.B.Address6.Addr().String())
	table, fd := openAt(t, pair.A, neighbour.Open), ear(t, pair.B)
	for from, far := range map[netip.Addr]netip.Addr{
		pair.A.Address.Addr(): netip.MustParseAddr("203.0.113.5"), pair.A.Address6.Addr(): netip.MustParseAddr("2001:db8::5"),
	} {
		if !table.Send(packet(from, far, "far away"), far.As16()) {
			t.Errorf("the kernel did not take a packet to %v", far)
		}
		if got := hear(t, fd, far, port); got != "far away" {
			t.Errorf("to %v arrived %q", far, got)
		}
		eventually(t, "the gateway is known", func() bool { _, ok := table.Lookup(far.As16()); return ok })
	}
}

// TestSendRefused: what the kernel refuses, as this packet that is larger than the link's, still has it resolve: AF_XDP may send what a firewall forbids.
func TestSendRefused(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	table := openAt(t, pair.A, neighbour.Open)
	for _, ends := range [][2]netip.Addr{{pair.A.Address.Addr(), pair.B.Address.Addr()}, {pair.A.Address6.Addr(), pair.B.Address6.Addr()}} {
		if table.Send(packet(ends[0], ends[1], string(bytes.Repeat([]byte{1}, 1500))), ends[1].As16()) {
			t.Error("the kernel took a packet that is larger than the link's")
		}
		eventually(t, "the peer is resolved", func() bool { _, ok := table.Lookup(ends[1].As16()); return ok })
	}
}

// TestSendCatchesUp: on one P that a goroutine keeps busy, which yields but is runnable at once, nobody looks into Go's poller but the scheduler's monitor, after some
// 10,000 yields. Send has the watcher look at the next one. It may be late where the host takes its CPU away, so some of many are enough.
func TestSendCatchesUp(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	patient(t, pair.A)
	table := openAt(t, pair.A, neighbour.Open)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const rounds, enough, few = 20, 5, 3
	silent := netip.MustParseAddr("10.77.0.99")
	at, atOnce := packet(pair.A.Address.Addr(), silent, "are you there"), 0
	for i := range rounds {
		peer := netip.AddrFrom4([4]byte{10, 77, 0, byte(3 + i)})
		spin(10 * time.Millisecond) // whatever was in the poller is out of it
		appoint(t, pair.A, pair.B, peer)
		table.Send(at, silent.As16())
		yields := 0
		for ; ; yields++ {
			if _, ok := table.Lookup(peer.As16()); ok {
				break
			}
			runtime.Gosched()
		}
		if yields <= few {
			atOnce++
		}
	}
	if atOnce < enough {
		t.Errorf("in %d of %d rounds a neighbour was known after %d yields, want %d", atOnce, rounds, few, enough)
	}
}

// spin keeps the P busy.
func spin(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		runtime.Gosched()
	}
}

// TestSendAllocates nothing, whether the kernel takes the packet or not.
func TestSendAllocates(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	table := openAt(t, pair.A, neighbour.Open)
	for from, to := range map[netip.Addr]netip.Addr{
		pair.A.Address.Addr(): netip.MustParseAddr("10.77.0.99"), pair.A.Address6.Addr(): netip.MustParseAddr("fd77::99"),
	} {
		p, now := packet(from, to, "x"), clock.Time(1e12)
		if n := testing.AllocsPerRun(3*neighbour.WaitingMax, func() { table.SendAt(p, to.As16(), now) }); n != 0 {
			t.Errorf("a packet to %v costs %v allocations", to, n)
		}
	}
}
