//go:build linux

package neighbour

import (
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// table is where routes of a kernel table and of a family go, nil for the tables that its rules do not name: IPv6 has none for the
// default table (net/ipv6/fib6_rules.c).
func (r *routing) table(table int, four bool) *fib {
	i := slices.Index([]int{unix.RT_TABLE_LOCAL, unix.RT_TABLE_MAIN, unix.RT_TABLE_DEFAULT}, table)
	switch {
	case i < 0 || !four && table == unix.RT_TABLE_DEFAULT:
		return nil
	case four:
		return &r.four[i]
	}
	return &r.six[i]
}

// newRouting sorts the kernel's routes of all interfaces and both families: those of other interfaces matter, because a destination that
// is better reached through them must not be sent to through this one.
func newRouting(ifindex int, routes []netlink.Route, addrs []netlink.Addr) *routing {
	r := &routing{sources: sourcesOf(addrs)}
	for i := range routes {
		kernel := &routes[i]
		destination, four, ok := destinationOf(kernel)
		if !ok || kernel.Tos != 0 || kernel.Flags&unix.RTNH_F_DEAD != 0 {
			continue
		}
		if table := r.table(kernel.Table, four); table != nil {
			table.add(destination, routeOf(ifindex, kernel, addrs, four))
		}
	}
	for i := range r.four {
		r.four[i].finish()
		r.six[i].finish()
	}
	return r
}

// destinationOf reads what a route is for; a default route may come without a prefix.
func destinationOf(kernel *netlink.Route) (destination prefix, four, ok bool) {
	four = kernel.Family != netlink.FAMILY_V6
	if kernel.Dst == nil {
		if four {
			return prefix{address{low: 0xffff << 32}, mappedBits}, true, true
		}
		return prefix{}, false, true
	}
	destination, ok = prefixFrom(kernel.Dst)
	return destination, four, ok && destination.isIPv4() == four
}

// routeOf judges one kernel route.
func routeOf(ifindex int, kernel *netlink.Route, addrs []netlink.Addr, four bool) route {
	r := route{priority: kernel.Priority}
	switch kernel.Type {
	case unix.RTN_UNICAST:
	case unix.RTN_THROW:
		r.verdict = verdictThrow
		return r
	default:
		return r
	}
	gateway, ok := gatewayOf(ifindex, kernel)
	if !ok {
		return r
	}
	if gateway != nil {
		if r.gateway, ok = addressFrom(gateway); !ok || r.gateway.isIPv4() != four {
			return r // IPv4 by way of an IPv6 router
		}
	}
	if r.source, ok = addressFrom(kernel.Src); !ok && four {
		if r.source, ok = sourceFor(r.gateway, kernel.Dst, addrs); !ok {
			return r // an interface without an address has nothing to send from
		}
	}
	r.verdict = verdictHop
	return r
}

// gatewayOf returns the gateway through the interface, nil for none; false if the route does not lead through it, or
// is tunnelled. Of several next hops the first of ours is taken.
func gatewayOf(ifindex int, kernel *netlink.Route) (net.IP, bool) {
	if kernel.Encap != nil || kernel.Via != nil {
		return nil, false
	}
	if kernel.LinkIndex == ifindex {
		return kernel.Gw, true
	}
	for _, hop := range kernel.MultiPath {
		if hop.LinkIndex == ifindex && hop.Encap == nil && hop.Via == nil && hop.Flags&unix.RTNH_F_DEAD == 0 {
			return hop.Gw, true
		}
	}
	return nil, false
}
