//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// ErrNoAddress says that the interface has no address to serve.
var ErrNoAddress = errors.New("interface has no address that others could send to: give it one, or name the address")

// Addresses are those that a port on an interface has, one of a family at most, for the address in its configuration.
func Addresses(interfaceName string, address netip.Addr) ([]netip.Addr, error) {
	_, all, err := (&Config{Interface: interfaceName, Address: address}).find()
	return all, err
}

// find finds the interface, and the addresses to serve.
func (c *Config) find() (netlink.Link, []netip.Addr, error) {
	link, err := netlink.LinkByName(c.Interface)
	if err != nil {
		return nil, nil, fmt.Errorf("finding interface %s: %w", c.Interface, err)
	}
	all, err := c.addresses(link)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Interface, err)
	}
	return link, all, nil
}

// addresses are those to serve: the one that is named, or else the interface's first of each family. Link-local ones are only
// served if named: peers would have to name their own interface with them.
func (c *Config) addresses(link netlink.Link) (all []netip.Addr, err error) {
	named := c.Address.Unmap()
	if named.IsLinkLocalUnicast() && named.Is6() {
		named = named.WithZone(c.Interface)
	}
	if named.IsValid() && !named.IsUnspecified() {
		return []netip.Addr{named}, nil
	}
	four, err := netlink.AddrList(link, unix.AF_INET)
	if err != nil {
		return nil, fmt.Errorf("listing addresses: %w", err)
	}
	if len(four) > 0 {
		all = appendAddr(all, &four[0])
	}
	if !named.Is4() {
		six, err := netlink.AddrList(link, unix.AF_INET6)
		if err != nil {
			return nil, fmt.Errorf("listing IPv6 addresses: %w", err)
		}
		if first := firstIPv6(six); first != nil {
			all = appendAddr(all, first)
		}
	}
	if len(all) == 0 {
		return nil, ErrNoAddress
	}
	return all, nil
}

func appendAddr(all []netip.Addr, a *netlink.Addr) []netip.Addr {
	if ip, ok := netip.AddrFromSlice(a.IP); ok {
		return append(all, ip.Unmap())
	}
	return all
}

// firstIPv6 is the first address that lasts, or else one that will not: deprecated, or of the temporary ones (RFC 8981), which are for
// clients. Nil if there is none, or none that is known to be unique.
func firstIPv6(addrs []netlink.Addr) (last *netlink.Addr) {
	for i := range addrs {
		a := &addrs[i]
		switch {
		case a.IP.IsLinkLocalUnicast() || a.Flags&unix.IFA_F_DADFAILED != 0:
		case a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_OPTIMISTIC) == unix.IFA_F_TENTATIVE: // bind(2) refuses it
		case a.Flags&(unix.IFA_F_DEPRECATED|unix.IFA_F_TEMPORARY) == 0:
			return a
		case last == nil:
			last = a
		}
	}
	return last
}

// locals are a port's own addresses, one of a family at most: so the source of a packet follows from the family of its
// destination. Port 0 is no address.
type locals struct{ four, six wire.Addr }

func (l *locals) add(a wire.Addr) {
	if a.IsIPv4() {
		l.four = a
	} else {
		l.six = a
	}
}

// has reports whether a packet is to us.
func (l *locals) has(to *wire.Addr) bool {
	own := l.of(to)
	return own.Port != 0 && *own == *to
}

// from is the source of a packet, nil if there is none of the family.
func (l *locals) from(to *wire.Addr) *wire.Addr {
	if own := l.of(to); own.Port != 0 {
		return own
	}
	return nil
}

// of is the address of the same family.
func (l *locals) of(a *wire.Addr) *wire.Addr {
	if a.IsIPv4() {
		return &l.four
	}
	return &l.six
}

// all are those that there are, IPv4 first.
func (l *locals) all() (all []wire.Addr) {
	for _, a := range []wire.Addr{l.four, l.six} {
		if a.Port != 0 {
			all = append(all, a)
		}
	}
	return all
}

// headers is the room before a payload: who lends a buffer does not know yet which family it will be sent to.
func (l *locals) headers() int {
	if l.six.Port != 0 {
		return wire.FrameHeaderBytesIPv6
	}
	return wire.FrameHeaderBytes
}

// encode writes the headers right before a payload whose room before it begins at addr. IPv4's are shorter, so that their packet may
// begin later.
func (p *Port) encode(addr frame.Addr, payload int, d *wire.Datagram) frame.Desc {
	if !d.Destination.IsIPv4() {
		desc := frame.Desc{Addr: addr, Len: uint32(wire.FrameHeaderBytesIPv6 + payload)}
		wire.EncodeUDPv6(p.umem.Bytes(desc), d)
		return desc
	}
	unused := p.local.headers() - wire.FrameHeaderBytes
	desc := frame.Desc{Addr: addr + frame.Addr(unused), Len: uint32(wire.FrameHeaderBytes + payload)}
	wire.EncodeUDPv4(p.umem.Bytes(desc), d)
	return desc
}
