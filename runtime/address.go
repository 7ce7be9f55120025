package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/runtime/udpport"
	"github.com/stillwater-rpc/stillwater/wire"
)

// ErrUnreachable says that an endpoint has no address that it could send from to the one that was dialed.
var ErrUnreachable = errors.New("endpoint cannot send there")

// lookup turns host:port into the addresses that it may mean. A name may have some of each family: IPv4 comes first, as it does for the
// UDP of package net.
func lookup(ctx context.Context, address string) ([]netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(address); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}, nil
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "udp", service)
	if err != nil {
		return nil, err
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	all := make([]netip.AddrPort, len(found))
	for i, ip := range found {
		all[i] = netip.AddrPortFrom(ip.Unmap(), uint16(port))
	}
	return byFamily(all), nil
}

// byFamily puts IPv4 first, and keeps the resolver's order else.
func byFamily(all []netip.AddrPort) []netip.AddrPort {
	slices.SortStableFunc(all, func(a, b netip.AddrPort) int { return cmp.Compare(a.Addr().BitLen(), b.Addr().BitLen()) })
	return all
}

// routed puts those first that the kernel has a route to: of a name with both families, one may be of no use to this host.
func routed(all []netip.AddrPort) []netip.AddrPort {
	if len(all) < 2 {
		return all
	}
	var with, without []netip.AddrPort
	for _, ap := range all {
		conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(ap)) // nothing is sent
		if err != nil {
			without = append(without, ap)
			continue
		}
		conn.Close()
		with = append(with, ap)
	}
	return append(with, without...)
}

// pick is the first address that the endpoint can send to. The error is about the first of all.
func (e *Endpoint) pick(all []netip.AddrPort) (wire.Addr, error) {
	var first error
	for _, ap := range all {
		err := e.reach(ap.Addr())
		if err == nil {
			return wire.AddrFrom(ap), nil
		}
		first = cmp.Or(first, err)
	}
	return wire.Addr{}, first
}

// reach says why the endpoint cannot send to an address; nil if it can.
func (e *Endpoint) reach(to netip.Addr) error {
	if to.Is6() && to.IsLinkLocalUnicast() {
		return e.reachOnLink(to)
	}
	for _, own := range e.locals() {
		if own.Addr().Is4() == to.Is4() || own.Addr() == netip.IPv6Unspecified() {
			return nil
		}
	}
	family := "an IPv6"
	if to.Is4() {
		family = "an IPv4"
	}
	return fmt.Errorf("%w: %v is %s address, and the endpoint at %s has none of that family; leave its Address unset, or name one",
		ErrUnreachable, to, family, e.Addr())
}

// reachOnLink is for a link-local address: who sends to it must say on which link.
func (e *Endpoint) reachOnLink(to netip.Addr) error {
	link := e.cfg.Interface
	if e.bare.Name() != "xdp" {
		link = e.cfg.Address.Zone() // "" unless the address is a link-local one
	}
	if link == "" {
		return fmt.Errorf("%w: %v is link-local: have the endpoint at %s use AF_XDP on an Interface of that link, or a link-local Address with its zone",
			ErrUnreachable, to, e.Addr())
	}
	if zone := to.Zone(); zone != "" && zone != link {
		return fmt.Errorf("%w: %v is on another link than the endpoint, which is on %s", ErrUnreachable, to, link)
	}
	for _, own := range e.locals() {
		if own.Addr().Is6() {
			return nil
		}
	}
	return fmt.Errorf("%w: %v is an IPv6 address, and the endpoint at %s has none", ErrUnreachable, to, e.Addr())
}

// locals are the port's own addresses.
func (e *Endpoint) locals() (all []netip.AddrPort) {
	if many, ok := e.bare.(interface{ LocalAddrs() []wire.Addr }); ok {
		for _, a := range many.LocalAddrs() {
			all = append(all, a.AddrPort())
		}
		return all
	}
	return []netip.AddrPort{e.bare.LocalAddr().AddrPort()}
}

// Addr is the endpoint's own address; if it has two, the IPv4 one.
func (e *Endpoint) Addr() string { return e.bare.LocalAddr().String() }

// Addrs are all the endpoint's own addresses: one, or one of each family. What it sends comes from that of the receiver's family.
func (e *Endpoint) Addrs() (all []string) {
	for _, a := range e.locals() {
		all = append(all, a.String())
	}
	return all
}

// openUDP opens kernel UDP, with a port for each dispatcher. Without an address it is at all of the host's, of both families if the kernel has both.
func openUDP(address netip.Addr, port uint16, count int) ([]*udpport.Port, error) {
	if address.IsValid() {
		return udpport.OpenGroup(udpport.Config{Listen: netip.AddrPortFrom(address, port)}, count)
	}
	all, err := udpport.OpenGroup(udpport.Config{Listen: netip.AddrPortFrom(netip.IPv6Unspecified(), port)}, count)
	if errors.Is(err, unix.EAFNOSUPPORT) { // a kernel without IPv6
		return udpport.OpenGroup(udpport.Config{Listen: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}, count)
	}
	return all, err
}

// wildcard is all addresses of the family of a destination: who dials IPv4 need not be bound by the smaller payload of IPv6.
func wildcard(to netip.Addr) netip.Addr {
	if to.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}
