//go:build linux

package neighbour

import (
	"cmp"
	"slices"
)

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
	gateway  address // zero = the destination is on the link
	source   address // zero = chosen by the destination, which IPv6 may want
	priority int     // the metric: lower wins
}

// prefix is a route's destination.
type prefix struct {
	network address
	length  uint8 // 0 to 128
}

func (p prefix) isIPv4() bool { return p.length >= mappedBits && p.network.isIPv4() }

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
	length        uint8
	route         route
}

// add keeps the route of the lower metric, else the first. IPv6 has the same prefix on several interfaces with one metric, as each has
// fe80::/64: then it keeps the one that leads through ours.
func (f *fib) add(p prefix, r route) {
	if f.routes == nil {
		f.routes = make(map[prefix]route)
	}
	if old, found := f.routes[p]; found {
		nearer := r.verdict == verdictHop && old.verdict != verdictHop && !p.isIPv4()
		if old.priority < r.priority || old.priority == r.priority && !nearer {
			return
		}
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
			f.scan = append(f.scan, scanEntry{network: p.network, mask: mask(p.length), length: p.length, route: r})
		}
	}
	slices.SortFunc(f.lengths, func(a, b uint8) int { return cmp.Compare(b, a) })
	slices.SortFunc(f.scan, func(a, b scanEntry) int { return cmp.Compare(b.length, a.length) })
}

// match finds the route with the longest prefix.
func (f *fib) match(destination address) (route, bool) {
	for i := range f.scan {
		if e := &f.scan[i]; destination.masked(e.mask) == e.network {
			return e.route, true
		}
	}
	if f.scan != nil {
		return route{}, false
	}
	for _, length := range f.lengths {
		if r, found := f.routes[prefix{destination.masked(mask(length)), length}]; found {
			return r, true
		}
	}
	return route{}, false
}

// tables are those that the kernel looks into: local, main, default, in the order of its own rules.
type tables [3]fib

// routing is the kernel's routes as they concern one interface. It is immutable once built.
type routing struct {
	four, six tables // apart, since the IPv6 default route must not match IPv4
	sources   []source
}

// hop finds the next hop towards a destination, and the source address for it.
func (r *routing) hop(destination address) (next, source address, ok bool) {
	if !destination.unicast() {
		return address{}, address{}, false
	}
	tables := &r.six
	if destination.isIPv4() {
		tables = &r.four
	}
	for i := range tables {
		found, ok := tables[i].match(destination)
		if !ok || found.verdict == verdictThrow {
			continue
		}
		if found.verdict != verdictHop {
			return address{}, address{}, false
		}
		if next = found.gateway; next.isZero() {
			next = destination
		}
		if source = found.source; source.isZero() {
			source, ok = choose(r.sources, destination)
		}
		return next, source, ok
	}
	return address{}, address{}, false
}
