//go:build linux

package neighbour

import (
	"cmp"
	"encoding/binary"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// address is an IPv4 address in host order, so that prefixes are masks.
type address uint32

// addressOf reads the IPv4-mapped form (RFC 4291, section 2.5.5.2).
func addressOf(ip *[16]byte) (address, bool) {
	if binary.BigEndian.Uint64(ip[0:]) != 0 || binary.BigEndian.Uint32(ip[8:]) != 0xffff {
		return 0, false
	}
	return address(binary.BigEndian.Uint32(ip[12:])), true
}

// addressFrom reads what package net has; false if it is no IPv4 address.
func addressFrom(ip net.IP) (address, bool) {
	four := ip.To4()
	if four == nil {
		return 0, false
	}
	return address(binary.BigEndian.Uint32(four)), true
}

// mapped is the IPv4-mapped form.
func (a address) mapped() (ip [16]byte) {
	ip[10], ip[11] = 0xff, 0xff
	binary.BigEndian.PutUint32(ip[12:], uint32(a))
	return ip
}

// multicast covers the reserved class and limited broadcast too: none of them has a neighbour.
func (a address) multicast() bool { return a >= 224<<24 }

// verdict is what a matching route says.
type verdict uint8

const (
	verdictRefuse verdict = iota // ours, broadcast, unreachable, or out of another interface
	verdictHop
	verdictThrow // go on with the next table
)

// route is what is left of a kernel route.
type route struct {
	verdict  verdict
	gateway  address // 0 = the destination is on the link
	source   address
	priority int // the metric: lower wins
}

// prefix is a route's destination.
type prefix struct {
	network address
	length  uint8
}

// scanMax is up to how many routes a table is scanned instead of hashed: one comparison each, against some 25 ns for a
// map access per prefix length. Hosts have fewer.
const scanMax = 32

// fib is one routing table.
type fib struct {
	scan    []scanEntry // all routes, longest prefix first, if they are few
	lengths []uint8     // the prefix lengths that occur, longest first
	routes  map[prefix]route
}

// scanEntry is a route with its prefix taken apart.
type scanEntry struct {
	network, mask address
	route         route
}

func (f *fib) add(p prefix, r route) {
	if f.routes == nil {
		f.routes = make(map[prefix]route)
	}
	if old, found := f.routes[p]; found && old.priority <= r.priority {
		return
	}
	f.routes[p] = r
}

// finish prepares match, after the last add.
func (f *fib) finish() {
	for p, r := range f.routes {
		if !slices.Contains(f.lengths, p.length) {
			f.lengths = append(f.lengths, p.length)
		}
		if len(f.routes) <= scanMax {
			f.scan = append(f.scan, scanEntry{network: p.network, mask: mask(p.length), route: r})
		}
	}
	slices.SortFunc(f.lengths, func(a, b uint8) int { return cmp.Compare(b, a) })
	slices.SortFunc(f.scan, func(a, b scanEntry) int { return cmp.Compare(b.mask, a.mask) })
}

// match finds the route with the longest prefix.
func (f *fib) match(destination address) (route, bool) {
	for i := range f.scan {
		if e := &f.scan[i]; destination&e.mask == e.network {
			return e.route, true
		}
	}
	if f.scan != nil {
		return route{}, false
	}
	for _, length := range f.lengths {
		if r, found := f.routes[prefix{destination & mask(length), length}]; found {
			return r, true
		}
	}
	return route{}, false
}

// mask has the first length bits set.
func mask(length uint8) address { return address(^uint32(0) << (32 - uint(length))) }

// routing is the kernel's routes as they concern one interface. It is immutable once built.
type routing struct {
	tables [3]fib // local, main, default: the order of the kernel's own rules
}

// hop finds the next hop towards a destination, and the source address for it.
func (r *routing) hop(destination address) (next, source address, ok bool) {
	if destination.multicast() {
		return 0, 0, false
	}
	for i := range r.tables {
		found, ok := r.tables[i].match(destination)
		if !ok || found.verdict == verdictThrow {
			continue
		}
		if found.verdict != verdictHop {
			return 0, 0, false
		}
		if next = found.gateway; next == 0 {
			next = destination
		}
		return next, found.source, true
	}
	return 0, 0, false
}

// tableIndex is the place of a kernel table in routing, -1 for the others.
func tableIndex(table int) int {
	return slices.Index([]int{unix.RT_TABLE_LOCAL, unix.RT_TABLE_MAIN, unix.RT_TABLE_DEFAULT}, table)
}

// newRouting sorts the kernel's routes of all interfaces: those of others matter, because a destination that is
// better reached through them must not be sent to through this one.
func newRouting(ifindex int, routes []netlink.Route, addrs []netlink.Addr) *routing {
	r := new(routing)
	for i := range routes {
		kernel := &routes[i]
		table := tableIndex(kernel.Table)
		if table < 0 || kernel.Tos != 0 || kernel.Flags&unix.RTNH_F_DEAD != 0 {
			continue
		}
		destination := prefix{}
		if kernel.Dst != nil {
			network, ok := addressFrom(kernel.Dst.IP)
			if !ok {
				continue
			}
			ones, _ := kernel.Dst.Mask.Size()
			destination = prefix{network & mask(uint8(ones)), uint8(ones)}
		}
		r.tables[table].add(destination, routeOf(ifindex, kernel, addrs))
	}
	for i := range r.tables {
		r.tables[i].finish()
	}
	return r
}

// routeOf judges one kernel route.
func routeOf(ifindex int, kernel *netlink.Route, addrs []netlink.Addr) route {
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
		if r.gateway, ok = addressFrom(gateway); !ok {
			return r // IPv4 by way of an IPv6 router
		}
	}
	if r.source, ok = addressFrom(kernel.Src); !ok {
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

// sourceFor chooses the source address of a route that names none, as inet_select_addr does (net/ipv4/devinet.c): the
// first in the subnet of the next hop, else the first of all.
func sourceFor(gateway address, destination *net.IPNet, addrs []netlink.Addr) (address, bool) {
	near := gateway
	if near == 0 && destination != nil {
		near, _ = addressFrom(destination.IP)
	}
	chosen, found := address(0), false
	for _, a := range addrs {
		own, ok := addressFrom(a.IP)
		if !ok || a.Scope > int(netlink.SCOPE_LINK) {
			continue
		}
		ones, _ := a.Mask.Size()
		if (own^near)&mask(uint8(ones)) == 0 {
			return own, true
		}
		if !found {
			chosen, found = own, true
		}
	}
	return chosen, found
}
