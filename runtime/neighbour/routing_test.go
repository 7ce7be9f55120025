//go:build linux

package neighbour

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

func cidr(t testing.TB, s string) *net.IPNet {
	t.Helper()
	_, network, err := net.ParseCIDR(s)
	if err != nil {
		t.Fatal(err)
	}
	return network
}

func addr(t testing.TB, s string) address {
	t.Helper()
	a, ok := addressFrom(net.ParseIP(s))
	if !ok {
		t.Fatalf("%q is no address", s)
	}
	return a
}

// ownAddrs are those of interface 2.
func ownAddrs(t testing.TB) []netlink.Addr {
	t.Helper()
	first, second := cidr(t, "10.0.0.0/24"), cidr(t, "192.168.0.0/16")
	first.IP, second.IP = net.IPv4(10, 0, 0, 1), net.IPv4(192, 168, 0, 1)
	return []netlink.Addr{{IPNet: first}, {IPNet: second}}
}

// kernelRoutes are those of a host with two interfaces, 2 being ours.
func kernelRoutes(t testing.TB) []netlink.Route {
	t.Helper()
	unicast := func(dst string, r netlink.Route) netlink.Route {
		if dst != "" {
			r.Dst = cidr(t, dst)
		}
		if r.Type == 0 {
			r.Type = unix.RTN_UNICAST
		}
		if r.Table == 0 {
			r.Table = unix.RT_TABLE_MAIN
		}
		return r
	}
	return []netlink.Route{
		unicast("10.0.0.1/32", netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, LinkIndex: 2}),
		unicast("127.0.0.0/8", netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, LinkIndex: 1}),
		unicast("10.0.0.255/32", netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_BROADCAST, LinkIndex: 2}),
		unicast("10.0.0.0/24", netlink.Route{LinkIndex: 2, Src: net.IPv4(10, 0, 0, 1)}),
		unicast("192.168.0.0/16", netlink.Route{LinkIndex: 2}),
		unicast("", netlink.Route{LinkIndex: 2, Gw: net.IPv4(10, 0, 0, 254), Priority: 100}),
		unicast("0.0.0.0/0", netlink.Route{LinkIndex: 2, Gw: net.IPv4(10, 0, 0, 253), Priority: 50}),
		unicast("172.16.0.0/12", netlink.Route{LinkIndex: 3, Gw: net.IPv4(10, 9, 0, 1)}),
		unicast("172.16.5.0/24", netlink.Route{LinkIndex: 2, Gw: net.IPv4(192, 168, 7, 7)}),
		unicast("172.16.5.128/25", netlink.Route{Type: unix.RTN_UNREACHABLE}),
		unicast("172.16.5.192/26", netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_THROW}),
		unicast("172.17.0.0/16", netlink.Route{MultiPath: []*netlink.NexthopInfo{
			{LinkIndex: 3, Gw: net.IPv4(10, 9, 0, 1)}, {LinkIndex: 2, Gw: net.IPv4(10, 0, 0, 252)}}}),
		unicast("198.18.0.0/16", netlink.Route{LinkIndex: 2, Flags: unix.RTNH_F_DEAD}),
		unicast("198.19.0.0/16", netlink.Route{LinkIndex: 2, Gw: net.ParseIP("fe80::1")}),
		unicast("198.20.0.0/16", netlink.Route{LinkIndex: 2, Tos: 8}),
		unicast("198.21.0.0/16", netlink.Route{LinkIndex: 2, Table: 100}),
		unicast("198.22.0.0/16", netlink.Route{LinkIndex: 2, Encap: &netlink.SEG6Encap{}}),
	}
}

func TestHop(t *testing.T) {
	r := newRouting(2, kernelRoutes(t), ownAddrs(t))
	for _, c := range []struct{ to, next, source, why string }{
		{"10.0.0.7", "10.0.0.7", "10.0.0.1", "on the link"},
		{"192.168.3.4", "192.168.3.4", "192.168.0.1", "on the link, the source chosen by its subnet"},
		{"8.8.8.8", "10.0.0.253", "10.0.0.1", "by the default route of the lower metric"},
		{"172.16.5.1", "192.168.7.7", "192.168.0.1", "by the longer prefix"},
		{"172.17.1.1", "10.0.0.252", "10.0.0.1", "by our part of a multipath route"},
		{"172.16.5.200", "", "", "thrown from one table, unreachable in the next"},
		{"172.16.5.130", "", "", "unreachable"},
		{"172.16.9.1", "", "", "through another interface"},
		{"198.18.0.1", "10.0.0.253", "10.0.0.1", "a dead route is none"},
		{"198.19.0.1", "", "", "an IPv6 router"},
		{"198.20.0.1", "10.0.0.253", "10.0.0.1", "a route for another type of service"},
		{"198.21.0.1", "10.0.0.253", "10.0.0.1", "a route of another table"},
		{"198.22.0.1", "", "", "tunnelled"},
		{"10.0.0.1", "", "", "ours"},
		{"127.0.0.1", "", "", "loopback"},
		{"10.0.0.255", "", "", "broadcast"},
		{"224.0.0.1", "", "", "multicast"},
		{"255.255.255.255", "", "", "limited broadcast"},
		{"0.0.0.0", "", "", "unspecified"},
		{"2001:db8::1", "", "", "IPv6 does not go by the IPv4 default route"},
	} {
		next, source, ok := r.hop(addr(t, c.to))
		if ok != (c.next != "") {
			t.Errorf("%s (%s): %v", c.to, c.why, ok)
			continue
		}
		if ok && (next != addr(t, c.next) || source != addr(t, c.source)) {
			t.Errorf("%s (%s): next %v source %v", c.to, c.why, next.bytes(), source.bytes())
		}
	}
}

func TestNoAddressNoHop(t *testing.T) {
	r := newRouting(2, kernelRoutes(t), nil)
	if _, _, ok := r.hop(addr(t, "8.8.8.8")); ok {
		t.Error("there is a hop without a source address")
	}
	if _, source, ok := r.hop(addr(t, "10.0.0.7")); !ok || source != addr(t, "10.0.0.1") {
		t.Error("a route that names its source needs no other")
	}
}

// draw makes an address whose bits are mostly zero, so that prefixes meet, of either family.
func draw(random *rand.Rand) address {
	if random.IntN(2) == 0 {
		return address{low: 0xffff<<32 | uint64(random.Uint32()&0x0f0f0f0f)}
	}
	return address{random.Uint64() & 0x0f0f0f0f0f0f0f0f, random.Uint64() & 0x0f0f0f0f0f0f0f0f}
}

// TestMatchTwin compares with the obvious way, for tables that are scanned and tables that are hashed.
func TestMatchTwin(t *testing.T) {
	random := seedtest.Rand(t)
	for try := range 40 {
		count := scanMax
		if try%2 == 0 {
			count = 200
		}
		f := new(fib)
		all := map[prefix]route{}
		for i := range count {
			length := uint8(random.IntN(129))
			p := prefix{draw(random).masked(mask(length)), length}
			if _, found := all[p]; !found {
				all[p] = route{gateway: address{low: uint64(i + 1)}}
				f.add(p, all[p])
			}
		}
		f.finish()
		if (f.scan != nil) != (len(all) <= scanMax) {
			t.Fatalf("%d routes, scanned: %v", len(all), f.scan != nil)
		}
		for range 200 {
			destination := draw(random)
			want, longest := route{}, -1
			for p, r := range all {
				if slowContains(p, destination) && int(p.length) > longest {
					want, longest = r, int(p.length)
				}
			}
			got, ok := f.match(destination)
			if ok != (longest >= 0) || got != want {
				t.Fatalf("%v: %+v, %v; want %+v", destination, got, ok, want)
			}
		}
	}
}

// slowContains compares bit by bit.
func slowContains(p prefix, a address) bool {
	network, ip := p.network.bytes(), a.bytes()
	for bit := range int(p.length) {
		if (network[bit/8]^ip[bit/8])>>(7-bit%8)&1 != 0 {
			return false
		}
	}
	return true
}

func TestAddressForms(t *testing.T) {
	for _, text := range []string{"10.1.2.3", "2001:db8::1", "::", "::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"} {
		ip := netip.MustParseAddr(text).As16()
		a := addressOf(&ip)
		if a.bytes() != ip || a.isIPv4() != netip.MustParseAddr(text).Is4() || a != addr(t, text) {
			t.Errorf("%s: %v", text, a)
		}
	}
	if _, ok := addressFrom(nil); ok {
		t.Error("nothing is an address")
	}
	for _, text := range []string{"0.0.0.0", "224.0.0.0", "255.255.255.255", "::", "ff00::", "ff02::1"} {
		if addr(t, text).unicast() {
			t.Errorf("%s passes for unicast", text)
		}
	}
	for _, text := range []string{"0.0.0.1", "223.255.255.255", "::1", "fe80::1", "feff::"} {
		if !addr(t, text).unicast() {
			t.Errorf("%s does not pass for unicast", text)
		}
	}
}

// TestResolveLimits runs the limiter through time.
func TestResolveLimits(t *testing.T) {
	r := new(resolver)
	start := clock.Time(1e12)
	one := addr(t, "fe80::1")
	if !r.due(one, start) || !r.allow(one, start) || r.due(one, start.Add(resolveInterval-1)) || !r.due(one, start.Add(resolveInterval)) {
		t.Error("one next hop is not asked for once a second")
	}
	r = new(resolver)
	allowed := 0
	for i := range 1000 {
		if r.allow(address{low: uint64(i)}, start) {
			allowed++
		}
	}
	if allowed != resolveBurst {
		t.Errorf("%d of 1000 at once were allowed, want %d", allowed, resolveBurst)
	}
	allowed = 0
	for i := range 10000 { // one next hop each 0.1 ms, for 1 s
		if r.allow(address{low: uint64(1000 + i)}, start.Add(time.Duration(i+1)*100*time.Microsecond)) {
			allowed++
		}
	}
	if allowed != resolveRate {
		t.Errorf("%d in a second were allowed, want %d", allowed, resolveRate)
	}
}
