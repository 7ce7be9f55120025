//go:build linux

package neighbour_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/runtime/neighbour"
	"github.com/stillwater-rpc/stillwater/wire"
)

// openAt opens the table of an end.
func openAt(t testing.TB, end *lab.End, open func(int) (*neighbour.Table, error)) *neighbour.Table {
	t.Helper()
	var table *neighbour.Table
	if err := end.Do(func() (err error) {
		table, err = open(end.Index)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	return table
}

// change works on an end's namespace by netlink.
func change(t testing.TB, end *lab.End, fn func(h *netlink.Handle, link netlink.Link) error) {
	t.Helper()
	if err := end.Do(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		link, err := h.LinkByIndex(end.Index)
		if err != nil {
			return err
		}
		return fn(h, link)
	}); err != nil {
		t.Fatal(err)
	}
}

func ip(s string) [16]byte { return netip.MustParseAddr(s).As16() }

func macOf(end *lab.End) wire.MAC { return wire.MAC(end.Hardware) }

// eventually waits for what the kernel will tell. The limit is for when it never does.
func eventually(t testing.TB, what string, fn func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !fn(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// resolved looks up, and resolves as long as that finds nothing.
func resolved(table *neighbour.Table, to [16]byte) (neighbour.Hop, bool) {
	hop, ok := table.Lookup(to)
	if !ok {
		table.Resolve(to)
	}
	return hop, ok
}

// setMAC changes an end's address, which takes the link down; neighbours do not hear of it.
func setMAC(t testing.TB, end *lab.End, mac string) wire.MAC {
	t.Helper()
	hardware, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	change(t, end, func(h *netlink.Handle, link netlink.Link) error {
		return errors.Join(h.LinkSetDown(link), h.LinkSetHardwareAddr(link, hardware), h.LinkSetUp(link))
	})
	return wire.MAC(hardware)
}

func TestResolveAndLookup(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	table := openAt(t, pair.A, neighbour.Open)
	peer := pair.B.Address.Addr().As16()
	if hop, ok := table.Lookup(peer); ok {
		t.Errorf("a neighbour that nobody spoke to is %+v", hop)
	}
	if !table.Resolve(peer) {
		t.Error("Resolve did not send")
	}
	if table.PolicyRuleCount() != 0 {
		t.Errorf("a new namespace has %d policy rules", table.PolicyRuleCount())
	}
	eventually(t, "the peer is resolved", func() bool { _, ok := resolved(table, peer); return ok })
	want := neighbour.Hop{
		SrcIP: pair.A.Address.Addr().As16(), NextHop: peer, SrcMAC: macOf(pair.A), DstMAC: macOf(pair.B),
	}
	if hop, _ := table.Lookup(peer); hop != want {
		t.Errorf("hop is %+v, want %+v", hop, want)
	}
	greeting := packet(pair.A.Address.Addr(), pair.B.Address.Addr(), "to whom it concerns")
	for _, to := range []string{"10.77.0.1", "127.0.0.1", "10.77.0.255", "224.0.0.1", "255.255.255.255", "8.8.8.8", "::1", "2001:db8::1"} {
		if hop, ok := table.Lookup(ip(to)); ok || table.Resolve(ip(to)) || table.Send(greeting, ip(to)) {
			t.Errorf("%s has a hop: %+v", to, hop)
		}
	}
	second := openAt(t, pair.A, neighbour.Open) // knows at once what the kernel knew before
	if hop, ok := second.Lookup(peer); !ok || hop != want {
		t.Errorf("hop is %+v, %v", hop, ok)
	}
}

func TestUnreachableNeighbour(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	table := openAt(t, pair.A, neighbour.Open)
	nobody := ip("10.77.0.99")
	if !table.Resolve(nobody) {
		t.Error("Resolve did not send")
	}
	eventually(t, "the kernel gives up on the neighbour", func() bool {
		failed := false
		change(t, pair.A, func(h *netlink.Handle, link netlink.Link) error {
			neighs, err := h.NeighList(pair.A.Index, netlink.FAMILY_V4)
			for _, n := range neighs {
				failed = failed || (n.IP.String() == "10.77.0.99" && n.State == netlink.NUD_FAILED)
			}
			return err
		})
		return failed
	})
	if hop, ok := table.Lookup(nobody); ok {
		t.Errorf("nobody is %+v", hop)
	}
}

func TestGateway(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	table := openAt(t, pair.A, neighbour.Open)
	gateway := pair.B.Address.Addr()
	far := ip("203.0.113.5")
	_, network, _ := net.ParseCIDR("203.0.113.0/24")
	r := &netlink.Route{LinkIndex: pair.A.Index, Dst: network, Gw: gateway.AsSlice()}
	change(t, pair.A, func(h *netlink.Handle, _ netlink.Link) error { return h.RouteAdd(r) })
	eventually(t, "the gateway is resolved", func() bool { _, ok := resolved(table, far); return ok })
	hop, _ := table.Lookup(far)
	if hop.NextHop != gateway.As16() || hop.DstMAC != macOf(pair.B) || hop.SrcIP != pair.A.Address.Addr().As16() {
		t.Errorf("hop is %+v", hop)
	}
	change(t, pair.A, func(h *netlink.Handle, _ netlink.Link) error { return h.RouteDel(r) })
	eventually(t, "the route is gone", func() bool { _, ok := table.Lookup(far); return !ok })
	change(t, pair.A, func(h *netlink.Handle, _ netlink.Link) error {
		return h.RouteAdd(&netlink.Route{LinkIndex: pair.A.Index, Gw: gateway.AsSlice()})
	})
	eventually(t, "the default route leads there", func() bool { _, ok := table.Lookup(far); return ok })
}

// TestAnnouncedMACChange: the peer changes its address and is heard of again, so the kernel learns it.
func TestAnnouncedMACChange(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	table := openAt(t, pair.A, neighbour.Open)
	peer := pair.B.Address.Addr().As16()
	eventually(t, "the peer is resolved", func() bool { _, ok := resolved(table, peer); return ok })
	cache := table.NewCache()
	before, _ := cache.Lookup(peer)
	if again, ok := cache.Lookup(peer); !ok || again != before || again != mustLookup(t, table, peer) {
		t.Fatalf("cached %+v, then %+v", before, again)
	}
	changed := setMAC(t, pair.B, "02:00:00:00:be:ef")
	var speaker *net.UDPConn
	if err := pair.B.Do(func() (err error) {
		speaker, err = net.DialUDP("udp4", nil, &net.UDPAddr{IP: pair.A.Address.Addr().AsSlice(), Port: 9})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer speaker.Close()
	eventually(t, "the peer's new address is followed", func() bool {
		_, _ = speaker.Write([]byte("here I am")) // its kernel asks for us first, and so says who it is; refused is no matter
		hop, ok := resolved(table, peer)
		return ok && hop.DstMAC == changed
	})
	if hop, ok := cache.Lookup(peer); !ok || hop.DstMAC != changed {
		t.Errorf("the cache says %+v, %v", hop, ok)
	}
	if _, ok := cache.Lookup(ip("10.77.0.99")); ok {
		t.Error("the cache answers for another address")
	}
}

func mustLookup(t *testing.T, table *neighbour.Table, ip [16]byte) neighbour.Hop {
	t.Helper()
	hop, ok := table.Lookup(ip)
	if !ok {
		t.Fatal("not found")
	}
	return hop
}

// hasten makes the kernel's neighbour clocks run fast in an end's namespace.
func hasten(t testing.TB, end *lab.End) {
	t.Helper()
	if err := end.Do(func() error {
		for _, setting := range []string{"base_reachable_time_ms=200", "delay_first_probe_time=0", "retrans_time_ms=100"} {
			name, value, _ := strings.Cut(setting, "=")
			for _, family := range []string{"ipv4", "ipv6"} {
				if err := os.WriteFile("/proc/sys/net/"+family+"/neigh/"+end.Interface+"/"+name, []byte(value), 0); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestSilentMACChange: the peer changes its address and says nothing. Our use of it must make the kernel find out,
// though the kernel sees none of it.
func TestSilentMACChange(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	hasten(t, pair.A)
	table := openAt(t, pair.A, func(index int) (*neighbour.Table, error) {
		return neighbour.OpenProbing(index, 100*time.Millisecond)
	})
	peer := pair.B.Address.Addr().As16()
	eventually(t, "the peer is resolved", func() bool { _, ok := resolved(table, peer); return ok })
	changed := setMAC(t, pair.B, "02:00:00:00:be:ef")
	eventually(t, "the peer's new address is found out", func() bool {
		hop, ok := resolved(table, peer)
		return ok && hop.DstMAC == changed
	})
}

func TestOwnMACAndLinkAreFollowed(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	table := openAt(t, pair.A, neighbour.Open)
	peer := pair.B.Address.Addr().As16()
	eventually(t, "the peer is resolved", func() bool { _, ok := resolved(table, peer); return ok })
	change(t, pair.A, func(h *netlink.Handle, link netlink.Link) error { return h.LinkSetDown(link) })
	eventually(t, "a link that is down leads nowhere", func() bool { _, ok := table.Lookup(peer); return !ok })
	changed := setMAC(t, pair.A, "02:00:00:00:ca:fe")
	eventually(t, "our own new address is used", func() bool {
		hop, ok := resolved(table, peer)
		return ok && hop.SrcMAC == changed
	})
	change(t, pair.A, func(h *netlink.Handle, link netlink.Link) error { return h.LinkDel(link) })
	eventually(t, "a link that is gone leads nowhere", func() bool { _, ok := table.Lookup(peer); return !ok })
}

// TestLostEvents: a burst that the subscription has no room for ends in the kernel's state all the same.
func TestLostEvents(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	table := openAt(t, pair.A, neighbour.Open)
	if err := neighbour.LoseEvents(table); err != nil {
		t.Fatal(err)
	}
	const count = 200
	mac := func(i, round int) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, byte(round), 0, byte(i)} }
	address := func(i int) net.IP { return net.IPv4(10, 77, 0, byte(3+i)) }
	for round := range 3 {
		change(t, pair.A, func(h *netlink.Handle, _ netlink.Link) error {
			for i := range count {
				if err := h.NeighSet(&netlink.Neigh{LinkIndex: pair.A.Index, Family: netlink.FAMILY_V4,
					State: netlink.NUD_PERMANENT, IP: address(i), HardwareAddr: mac(i, round)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	eventually(t, "all neighbours are as last set", func() bool {
		for i := range count {
			to, _ := netip.AddrFromSlice(address(i))
			if hop, ok := table.Lookup(to.As16()); !ok || hop.DstMAC != wire.MAC(mac(i, 2)) {
				return false
			}
		}
		return true
	})
}

// TestConcurrentUse looks up while everything changes; the race detector is the judge.
func TestConcurrentUse(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	table := openAt(t, pair.A, neighbour.Open)
	peer := pair.B.Address.Addr().As16()
	var stop atomic.Bool
	done := make(chan bool)
	go func() {
		found := false
		for !stop.Load() {
			hop, ok := resolved(table, peer)
			found = found || ok && hop.DstMAC == (wire.MAC{2, 0, 0, 0, 0, 19})
			runtime.Gosched()
		}
		done <- found
	}()
	for i := range 20 {
		change(t, pair.A, func(h *netlink.Handle, _ netlink.Link) error {
			return h.NeighSet(&netlink.Neigh{LinkIndex: pair.A.Index, Family: netlink.FAMILY_V4,
				State: netlink.NUD_PERMANENT, IP: pair.B.Address.Addr().AsSlice(), HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, byte(i)}})
		})
	}
	eventually(t, "the last address is known", func() bool {
		hop, ok := table.Lookup(peer)
		return ok && hop.DstMAC == (wire.MAC{2, 0, 0, 0, 0, 19})
	})
	stop.Store(true)
	<-done
}

func TestClose(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	table := openAt(t, pair.A, neighbour.Open)
	peer := pair.B.Address.Addr().As16()
	eventually(t, "the peer is resolved", func() bool { _, ok := resolved(table, peer); return ok })
	for range 2 {
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if hop, ok := table.Lookup(peer); ok || table.Resolve(peer) || table.Send(packet(pair.A.Address.Addr(), pair.B.Address.Addr(), "x"), peer) {
		t.Errorf("a closed table knows %+v", hop)
	}
}

func TestOpenErrors(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	for name, index := range map[string]int{"no such interface": 12345, "loopback": 1} {
		if err := pair.A.Do(func() error {
			table, err := neighbour.Open(index)
			if err == nil {
				t.Errorf("%s: opened", name)
				return table.Close()
			}
			t.Logf("%s: %v", name, err)
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	table := openAt(t, pair.A, neighbour.Open)
	peer := pair.B.Address.Addr().As16()
	eventually(t, "the peer is resolved", func() bool { _, ok := resolved(table, peer); return ok })
	unknown := ip("10.77.0.99")
	table.Resolve(unknown)
	if n := testing.AllocsPerRun(100, func() { table.Lookup(peer); table.Lookup(unknown) }); n != 0 {
		t.Errorf("Lookup costs %v allocations", n)
	}
}

func BenchmarkCachedLookup(b *testing.B) {
	pair := labtest.NewPair(b, lab.PairConfig{})
	table := openAt(b, pair.A, neighbour.Open)
	peer := pair.B.Address.Addr().As16()
	eventually(b, "the peer is resolved", func() bool { _, ok := resolved(table, peer); return ok })
	cache := table.NewCache()
	for b.Loop() {
		cache.Lookup(peer)
	}
}

func BenchmarkLookup(b *testing.B) {
	pair := labtest.NewPair(b, lab.PairConfig{})
	table := openAt(b, pair.A, neighbour.Open)
	peer := pair.B.Address.Addr().As16()
	eventually(b, "the peer is resolved", func() bool { _, ok := resolved(table, peer); return ok })
	for b.Loop() {
		table.Lookup(peer)
	}
}
