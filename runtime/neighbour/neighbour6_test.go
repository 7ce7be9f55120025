//go:build linux

package neighbour_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/runtime/neighbour"
)

// linkLocal is the address that the kernel gave an end by itself.
func linkLocal(t testing.TB, end *lab.End) (found netip.Addr) {
	t.Helper()
	change(t, end, func(h *netlink.Handle, link netlink.Link) error {
		addrs, err := h.AddrList(link, netlink.FAMILY_V6)
		for _, a := range addrs {
			if a.IP.IsLinkLocalUnicast() {
				found, _ = netip.AddrFromSlice(a.IP)
			}
		}
		return err
	})
	if !found.IsValid() {
		t.Fatalf("%s has no link-local address", end.Interface)
	}
	return found
}

func addAddress(t testing.TB, end *lab.End, text string, preferred int) {
	t.Helper()
	ip, network, err := net.ParseCIDR(text)
	if err != nil {
		t.Fatal(err)
	}
	network.IP = ip
	change(t, end, func(h *netlink.Handle, link netlink.Link) error {
		const hour = 3600
		return h.AddrAdd(link, &netlink.Addr{IPNet: network, Flags: unix.IFA_F_NODAD, ValidLft: hour, PreferedLft: preferred})
	})
}

func addRoute(t testing.TB, end *lab.End, destination, gateway string) {
	t.Helper()
	route := &netlink.Route{LinkIndex: end.Index, Gw: net.ParseIP(gateway)}
	if destination != "" {
		_, route.Dst, _ = net.ParseCIDR(destination)
	} else {
		route.Dst = &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
	}
	change(t, end, func(h *netlink.Handle, _ netlink.Link) error { return h.RouteAdd(route) })
}

func TestResolveIPv6(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	table := openAt(t, pair.A, neighbour.Open)
	for name, peer := range map[string]netip.Addr{"global": pair.B.Address6.Addr(), "link-local": linkLocal(t, pair.B)} {
		if hop, ok := table.Lookup(peer.As16()); ok {
			t.Errorf("%s: a neighbour that nobody spoke to is %+v", name, hop)
		}
		eventually(t, name+" is resolved", func() bool { _, ok := resolved(table, peer.As16()); return ok })
		want := neighbour.Hop{SrcIP: pair.A.Address6.Addr().As16(), NextHop: peer.As16(), SrcMAC: macOf(pair.A), DstMAC: macOf(pair.B)}
		if peer.IsLinkLocalUnicast() {
			want.SrcIP = linkLocal(t, pair.A).As16()
		}
		if hop, _ := table.Lookup(peer.As16()); hop != want {
			t.Errorf("%s: hop is %+v, want %+v", name, hop, want)
		}
	}
	four := pair.B.Address.Addr().As16()
	eventually(t, "IPv4 is resolved beside it", func() bool { _, ok := resolved(table, four); return ok })
	for _, to := range []string{"fd77::1", "::1", "::", "ff02::1", "ff05::2", "2001:db8::1"} {
		if hop, ok := table.Lookup(ip(to)); ok || table.Resolve(ip(to)) {
			t.Errorf("%s has a hop: %+v", to, hop)
		}
	}
	if table.PolicyRuleCount() != 0 {
		t.Errorf("a new namespace has %d policy rules", table.PolicyRuleCount())
	}
	second := openAt(t, pair.A, neighbour.Open) // knows at once what the kernel knew before
	if hop, ok := second.Lookup(pair.B.Address6.Addr().As16()); !ok || hop.DstMAC != macOf(pair.B) {
		t.Errorf("hop is %+v, %v", hop, ok)
	}
}

// TestLinkLocalGateway is the usual IPv6 default route. Addresses and routes that come and go are followed.
func TestLinkLocalGateway(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	table := openAt(t, pair.A, neighbour.Open)
	far, gateway := ip("2001:db8:ffff::5"), linkLocal(t, pair.B)
	addRoute(t, pair.A, "", gateway.String())
	eventually(t, "the gateway is resolved", func() bool { _, ok := resolved(table, far); return ok })
	if hop, _ := table.Lookup(far); hop.NextHop != gateway.As16() || hop.DstMAC != macOf(pair.B) || hop.SrcIP != pair.A.Address6.Addr().As16() {
		t.Errorf("hop is %+v", hop)
	}
	addAddress(t, pair.A, "2001:db8::1/64", 3600)
	eventually(t, "the new address is used", func() bool { hop, ok := table.Lookup(far); return ok && hop.SrcIP == ip("2001:db8::1") })
	change(t, pair.A, func(h *netlink.Handle, _ netlink.Link) error {
		return h.RouteDel(&netlink.Route{LinkIndex: pair.A.Index, Dst: &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}})
	})
	eventually(t, "the route is gone", func() bool { _, ok := table.Lookup(far); return !ok })
}

// TestSourceIsTheKernels asks the kernel for its own choice.
func TestSourceIsTheKernels(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	for _, text := range []string{"2001:db8::1/64", "2001:db8:0:5::1/64", "2002:a00:1::1/48", "fd77:0:0:1::1/64", "2001:db8::2/64"} {
		addAddress(t, pair.A, text, 3600)
	}
	addAddress(t, pair.A, "2001:db8:0:6::1/64", 0) // deprecated from the start
	addRoute(t, pair.A, "", linkLocal(t, pair.B).String())
	table := openAt(t, pair.A, neighbour.Open)
	eventually(t, "the gateway is resolved", func() bool { _, ok := resolved(table, ip("2600::1")); return ok })
	peer := linkLocal(t, pair.B)
	for _, text := range []string{
		"2600::1", "2001:db8:0:5:1::1", "2001:db8:0:6:1::1", "2001:db8:7::1", "2002:b00::1", "fd99::1", "fd77:0:0:2::1", "2001:0:1::1",
		"2001:10::1", "fec0::1", "3ffe::1", peer.String(),
	} {
		var want netip.Addr
		change(t, pair.A, func(h *netlink.Handle, _ netlink.Link) error {
			routes, err := h.RouteGetWithOptions(net.ParseIP(text), &netlink.RouteGetOptions{OifIndex: pair.A.Index})
			if err == nil {
				want, _ = netip.AddrFromSlice(routes[0].Src)
			}
			return err
		})
		to := ip(text)
		// On-link destinations have no neighbour: only the gateway and the peer have.
		change(t, pair.A, func(h *netlink.Handle, _ netlink.Link) error {
			return h.NeighSet(&netlink.Neigh{LinkIndex: pair.A.Index, Family: netlink.FAMILY_V6, State: netlink.NUD_PERMANENT,
				IP: net.ParseIP(text), HardwareAddr: pair.B.Hardware})
		})
		eventually(t, text+" has a hop", func() bool { _, ok := table.Lookup(to); return ok })
		if hop := mustLookup(t, table, to); hop.SrcIP != want.As16() {
			t.Errorf("to %s from %v, the kernel sends from %v", text, netip.AddrFrom16(hop.SrcIP), want)
		}
	}
}

// TestSilentMACChangeIPv6: neighbour unreachability detection is driven by our use, as for IPv4.
func TestSilentMACChangeIPv6(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	hasten(t, pair.A)
	table := openAt(t, pair.A, func(index int) (*neighbour.Table, error) {
		return neighbour.OpenProbing(index, 100*time.Millisecond)
	})
	peer := pair.B.Address6.Addr().As16()
	eventually(t, "the peer is resolved", func() bool { _, ok := resolved(table, peer); return ok })
	changed := setMAC(t, pair.B, "02:00:00:00:be:ef")
	addAddress(t, pair.B, pair.B.Address6.String(), 3600) // IPv6 addresses do not survive that the link goes down
	eventually(t, "the peer's new address is found out", func() bool {
		hop, ok := resolved(table, peer)
		return ok && hop.DstMAC == changed
	})
}

func TestNoAllocationIPv6(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	table := openAt(t, pair.A, neighbour.Open)
	peer, unknown := pair.B.Address6.Addr().As16(), ip("fd77::99")
	eventually(t, "the peer is resolved", func() bool { _, ok := resolved(table, peer); return ok })
	table.Resolve(unknown)
	if n := testing.AllocsPerRun(100, func() { table.Lookup(peer); table.Lookup(unknown) }); n != 0 {
		t.Errorf("Lookup costs %v allocations", n)
	}
}

func BenchmarkLookupIPv6(b *testing.B) {
	pair := labtest.NewPair(b, lab.PairConfig{IPv6: true})
	table := openAt(b, pair.A, neighbour.Open)
	peer := pair.B.Address6.Addr().As16()
	eventually(b, "the peer is resolved", func() bool { _, ok := resolved(table, peer); return ok })
	for b.Loop() {
		table.Lookup(peer)
	}
}
