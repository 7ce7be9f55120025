//go:build linux

package neighbour

import (
	"math/bits"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// sourceFor chooses the IPv4 source address of a route that names none, as inet_select_addr does (net/ipv4/devinet.c): the
// first in the subnet of the next hop, else the first of all.
func sourceFor(gateway address, destination *net.IPNet, addrs []netlink.Addr) (address, bool) {
	near := gateway
	if near.isZero() && destination != nil {
		near, _ = addressFrom(destination.IP)
	}
	chosen, found := address{}, false
	for _, a := range addrs {
		own, ok := addressFrom(a.IP)
		if !ok || !own.isIPv4() || a.Scope > int(netlink.SCOPE_LINK) {
			continue
		}
		if subnet, ok := prefixFrom(a.IPNet); ok && near.masked(mask(subnet.length)) == subnet.network {
			return own, true
		}
		if !found {
			chosen, found = own, true
		}
	}
	return chosen, found
}

// source is an IPv6 address of the interface that may be sent from.
type source struct {
	address    address
	length     uint8 // of its prefix
	deprecated bool
	temporary  bool
}

// sourcesOf are those of the kernel's addresses, in its order. Addresses that are not known to be unique are not there yet.
func sourcesOf(addrs []netlink.Addr) (all []source) {
	for _, a := range addrs {
		own, ok := addressFrom(a.IP)
		if !ok || own.isIPv4() || a.Flags&unix.IFA_F_DADFAILED != 0 ||
			a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_OPTIMISTIC) == unix.IFA_F_TENTATIVE {
			continue
		}
		ones, _ := a.Mask.Size()
		all = append(all, source{
			address: own, length: uint8(ones),
			deprecated: a.Flags&(unix.IFA_F_DEPRECATED|unix.IFA_F_OPTIMISTIC) != 0, temporary: a.Flags&unix.IFA_F_TEMPORARY != 0,
		})
	}
	return all
}

// choose is ipv6_get_saddr_eval (net/ipv6/addrconf.c), which is RFC 6724, section 5, over the interface's own addresses. Temporary
// addresses are avoided, as net.ipv6.conf.*.use_tempaddr has it unless it is 2. Of equals the first is taken.
func choose(sources []source, destination address) (address, bool) {
	if len(sources) == 0 {
		return address{}, false
	}
	best := &sources[0]
	for i := range sources[1:] {
		if s := &sources[1+i]; s.better(best, destination) {
			best = s
		}
	}
	return best.address, true
}

// better goes by the first rule that tells the two apart.
func (s *source) better(than *source, destination address) bool {
	scope := destination.scope()
	if a, b := s.address.scope(), than.address.scope(); a != b { // rule 2
		if min(a, b) < scope {
			return a > b
		}
		return a < b
	}
	if s.deprecated != than.deprecated { // rule 3
		return than.deprecated
	}
	label := destination.label()
	if a, b := s.address.label() == label, than.address.label() == label; a != b { // rule 6
		return a
	}
	if s.temporary != than.temporary { // rule 7
		return than.temporary
	}
	return s.common(destination) > than.common(destination) // rule 8
}

// common is how many leading bits of its prefix an address has in common with a destination.
func (s *source) common(destination address) int {
	same := bits.LeadingZeros64(s.address.high ^ destination.high)
	if same == 64 {
		same += bits.LeadingZeros64(s.address.low ^ destination.low)
	}
	return min(same, int(s.length))
}

// The scopes of unicast addresses (RFC 4291, section 2.7, and RFC 4007).
const (
	scopeLink   = 0x2
	scopeSite   = 0x5
	scopeGlobal = 0xe
)

// scope is how far an IPv6 address reaches.
func (a address) scope() int {
	switch {
	case a.high>>54 == 0xfe80>>6, a == address{low: 1}:
		return scopeLink
	case a.high>>54 == 0xfec0>>6: // deprecated by RFC 3879, and still the kernel's
		return scopeSite
	}
	return scopeGlobal
}

// labels is the kernel's table (net/ipv6/addrlabel.c), after RFC 6724, section 2.1: the longest prefix first.
var labels = []struct {
	prefix prefix
	label  int
}{
	{prefix{address{low: 1}, 128}, 0},
	{prefix{address{low: 0xffff << 32}, 96}, 4},
	{prefix{address{}, 96}, 3},
	{prefix{address{high: 0x2001 << 48}, 32}, 6},
	{prefix{address{high: 0x20010010 << 32}, 28}, 7},
	{prefix{address{high: 0x2002 << 48}, 16}, 2},
	{prefix{address{high: 0x3ffe << 48}, 16}, 12},
	{prefix{address{high: 0xfec0 << 48}, 10}, 11},
	{prefix{address{high: 0xfc00 << 48}, 7}, 5},
}

// label says which addresses belong together.
func (a address) label() int {
	for i := range labels {
		if p := &labels[i].prefix; a.masked(mask(p.length)) == p.network {
			return labels[i].label
		}
	}
	return 1
}
