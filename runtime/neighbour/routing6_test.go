//go:build linux

package neighbour

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ownAddrs6 are those of interface 2, in the kernel's order: the widest scope first, and of one scope the newest.
func ownAddrs6(t testing.TB) []netlink.Addr {
	t.Helper()
	one := func(text string, flags, scope int) netlink.Addr {
		network := cidr(t, text)
		network.IP, _, _ = net.ParseCIDR(text)
		return netlink.Addr{IPNet: network, Flags: flags, Scope: scope}
	}
	return append([]netlink.Addr{
		one("2001:db8::bad/64", unix.IFA_F_TENTATIVE, 0),
		one("2001:db8::dead/64", unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED, 0),
		one("2001:db8::01d/64", unix.IFA_F_DEPRECATED, 0),
		one("2001:db8::7e/64", unix.IFA_F_TEMPORARY, 0),
		one("2001:db8::1/64", unix.IFA_F_PERMANENT, 0),
		one("2001:db8:0:5::1/64", unix.IFA_F_PERMANENT, 0),
		one("fd77::1/64", unix.IFA_F_PERMANENT, 0),
		one("2002:a00:1::1/48", unix.IFA_F_PERMANENT, 0),
		one("fe80::1/64", unix.IFA_F_PERMANENT, int(netlink.SCOPE_LINK)),
	}, ownAddrs(t)...)
}

// kernelRoutes6 are those of a host with two interfaces, 2 being ours, behind those of IPv4.
func kernelRoutes6(t testing.TB) []netlink.Route {
	t.Helper()
	route := func(dst string, r netlink.Route) netlink.Route {
		if dst != "" {
			r.Dst = cidr(t, dst)
		}
		if r.Type == 0 {
			r.Type = unix.RTN_UNICAST
		}
		if r.Table == 0 {
			r.Table = unix.RT_TABLE_MAIN
		}
		r.Family = netlink.FAMILY_V6
		return r
	}
	router := net.ParseIP("fe80::fe")
	return append([]netlink.Route{
		route("2001:db8::1/128", netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, LinkIndex: 2}),
		route("fe80::1/128", netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, LinkIndex: 2}),
		route("2001:db8::/128", netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_ANYCAST, LinkIndex: 2}),
		route("ff00::/8", netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_MULTICAST, LinkIndex: 2, Priority: 256}),
		route("fe80::/64", netlink.Route{LinkIndex: 3, Priority: 256}),
		route("fe80::/64", netlink.Route{LinkIndex: 2, Priority: 256}),
		route("2001:db8::/64", netlink.Route{LinkIndex: 2, Priority: 256}),
		route("2001:db8:0:5::/64", netlink.Route{LinkIndex: 2, Priority: 256}),
		route("fd77::/64", netlink.Route{LinkIndex: 2, Priority: 256}),
		route("", netlink.Route{LinkIndex: 2, Gw: router, Priority: 1024}),
		route("2001:db8:3::/48", netlink.Route{LinkIndex: 3, Gw: router, Priority: 1024}),
		route("2001:db8:3:2::/64", netlink.Route{LinkIndex: 2, Gw: net.ParseIP("2001:db8::fd"), Src: net.ParseIP("2001:db8:0:5::1")}),
		route("2001:db8:4::/48", netlink.Route{Type: unix.RTN_UNREACHABLE, LinkIndex: 1}),
		route("2001:db8:6::/48", netlink.Route{MultiPath: []*netlink.NexthopInfo{{LinkIndex: 3, Gw: router}, {LinkIndex: 2, Gw: net.ParseIP("fe80::fc")}}}),
		route("2001:db8:7::/48", netlink.Route{LinkIndex: 2, Gw: net.ParseIP("fe80::fb"), Priority: 1}),
		route("2001:db8:7::/48", netlink.Route{LinkIndex: 3, Gw: router, Priority: 1}),
		route("2001:db8:8::/48", netlink.Route{LinkIndex: 2, Gw: net.ParseIP("fe80::fb"), Priority: 2}),
		route("2001:db8:8::/48", netlink.Route{LinkIndex: 3, Gw: router, Priority: 1}),
		route("2001:db8:9::/48", netlink.Route{LinkIndex: 2, Table: unix.RT_TABLE_DEFAULT, Gw: net.ParseIP("fe80::fa")}),
		route("2001:db8:a::/48", netlink.Route{LinkIndex: 2, Encap: &netlink.SEG6Encap{}}),
	}, kernelRoutes(t)...)
}

func TestHopIPv6(t *testing.T) {
	r := newRouting(2, kernelRoutes6(t), ownAddrs6(t))
	for _, c := range []struct{ to, next, source, why string }{
		{"2001:db8::7", "2001:db8::7", "2001:db8::1", "on the link: neither unproved nor deprecated nor temporary"},
		{"2001:db8:0:5::7", "2001:db8:0:5::7", "2001:db8:0:5::1", "the longest prefix in common"},
		{"fd77::7", "fd77::7", "fd77::1", "the same label, unique local"},
		{"fd99::7", "fe80::fe", "fd77::1", "the same, by way of the router"},
		{"2002:b00::1", "fe80::fe", "2002:a00:1::1", "the same label, 6to4"},
		{"2600::1", "fe80::fe", "2001:db8::1", "the default route, a link-local next hop"},
		{"fe80::7", "fe80::7", "fe80::1", "link-local is on our own link, and is sent to from its own scope"},
		{"2001:db8:3:2::1", "2001:db8::fd", "2001:db8:0:5::1", "a route that names its source"},
		{"2001:db8:3:3::1", "", "", "through another interface"},
		{"2001:db8:4::1", "", "", "unreachable"},
		{"2001:db8:6::1", "fe80::fc", "2001:db8::1", "our part of a multipath route"},
		{"2001:db8:7::1", "fe80::fb", "2001:db8::1", "of two with one metric, ours"},
		{"2001:db8:8::1", "", "", "the lower metric is another interface's"},
		{"2001:db8:9::1", "fe80::fe", "2001:db8::1", "IPv6 does not look into the default table"},
		{"2001:db8:a::1", "", "", "tunnelled"},
		{"2001:db8::1", "", "", "ours"},
		{"fe80::1", "", "", "ours"},
		{"2001:db8::", "", "", "anycast to the routers, of which we are one"},
		{"ff02::1", "", "", "multicast"},
		{"::", "", "", "unspecified"},
		{"10.0.0.7", "10.0.0.7", "10.0.0.1", "IPv4 beside it"},
		{"8.8.8.8", "10.0.0.253", "10.0.0.1", "IPv4 has a default route of its own"},
	} {
		next, source, ok := r.hop(addr(t, c.to))
		if ok != (c.next != "") {
			t.Errorf("%s (%s): %v", c.to, c.why, ok)
			continue
		}
		if ok && (next != addr(t, c.next) || source != addr(t, c.source)) {
			t.Errorf("%s (%s): next %x source %x", c.to, c.why, next.bytes(), source.bytes())
		}
	}
}

// TestSourceRules takes two addresses at a time, and gives them in both orders: no rule may go by the order.
func TestSourceRules(t *testing.T) {
	at := func(text string, edit func(*source)) source {
		s := source{address: addr(t, text), length: 64}
		if edit != nil {
			edit(&s)
		}
		return s
	}
	deprecated := func(s *source) { s.deprecated = true }
	temporary := func(s *source) { s.temporary = true }
	for _, c := range []struct {
		why          string
		to           string
		chosen, left source
	}{
		{"the scope of the destination", "2001:db8::9", at("2001:db8::1", nil), at("fe80::1", nil)},
		{"the scope of the destination, link-local", "fe80::9", at("fe80::1", nil), at("2001:db8::1", nil)},
		{"the wider scope, if none is wide enough", "2001:db8::9", at("fec0::1", nil), at("fe80::1", nil)},
		{"the smallest scope that is wide enough", "fec0::9", at("fec0::1", nil), at("2001:db8::1", nil)},
		{"scope before deprecation", "2001:db8::9", at("2001:db8::1", deprecated), at("fe80::1", nil)},
		{"not deprecated", "2001:db8::9", at("2001:db8:1::1", nil), at("2001:db8::1", deprecated)},
		{"deprecation before label", "fd77::9", at("2001:db8::1", nil), at("fd77::1", deprecated)},
		{"label", "fd77::9", at("fd88::1", nil), at("2001:db8::1", nil)},
		{"label before temporary", "fd77::9", at("fd88::1", temporary), at("2001:db8::1", nil)},
		{"not temporary", "2001:db8::9", at("2001:db9::1", nil), at("2001:db8::1", temporary)},
		{"the longest prefix", "2001:db8::9", at("2001:db8::1", nil), at("2001:db9::1", nil)},
		{"Teredo with its like", "2001::9", at("2001::1", nil), at("2001:db8::1", nil)},
	} {
		for _, sources := range [][]source{{c.chosen, c.left}, {c.left, c.chosen}} {
			if got, ok := choose(sources, addr(t, c.to)); !ok || got != c.chosen.address {
				t.Errorf("%s: chose %x", c.why, got.bytes())
			}
		}
	}
	same := []source{at("2001:db8::1", nil), at("2001:db8::2", nil)} // beyond the prefix nothing counts
	if got, _ := choose(same, addr(t, "2001:db8::3")); got != same[0].address {
		t.Errorf("of equals, %x was chosen", got.bytes())
	}
	if _, ok := choose(nil, addr(t, "2001:db8::3")); ok {
		t.Error("chose from nothing")
	}
}

func TestNoAddressNoHopIPv6(t *testing.T) {
	r := newRouting(2, kernelRoutes6(t), ownAddrs6(t)[:2]) // both of no use yet
	for to, want := range map[string]bool{"2001:db8::7": false, "2001:db8:3:2::1": true} {
		if _, _, ok := r.hop(addr(t, to)); ok != want {
			t.Errorf("%s: %v", to, ok)
		}
	}
}
