//go:build linux

package udpport

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/wire"
)

// sockaddrBytes is the size of struct sockaddr_in6 (include/uapi/linux/in6.h), the larger of the two.
const sockaddrBytes = unix.SizeofSockaddrInet6

// sockaddr is struct sockaddr_in or sockaddr_in6: family in host order, port in network order, then
// either the address at 4, or flow information at 4, the address at 8 and the scope at 24.
type sockaddr [sockaddrBytes]byte

func (s *sockaddr) pointer() *byte { return &s[0] }

// addr reads what the kernel wrote; false if the family is neither IPv4 nor IPv6.
func (s *sockaddr) addr() (wire.Addr, bool) {
	a := wire.Addr{Port: binary.BigEndian.Uint16(s[2:])}
	switch binary.NativeEndian.Uint16(s[:]) {
	case unix.AF_INET:
		a.IP[10], a.IP[11] = 0xff, 0xff
		copy(a.IP[12:], s[4:8])
	case unix.AF_INET6:
		copy(a.IP[:], s[8:24])
	default:
		return wire.Addr{}, false
	}
	return a, true
}

// set writes a for a socket of the given family, and returns the length. An IPv4 socket has no way to IPv6; an IPv6
// socket takes IPv4 in its mapped form.
func (s *sockaddr) set(a wire.Addr, family uint16) (length uint32, ok bool) {
	binary.NativeEndian.PutUint16(s[:], family)
	binary.BigEndian.PutUint16(s[2:], a.Port)
	if family == unix.AF_INET {
		copy(s[4:8], a.IP[12:])
		clear(s[8:16])
		return unix.SizeofSockaddrInet4, a.IsIPv4()
	}
	clear(s[4:8])
	copy(s[8:24], a.IP[:])
	clear(s[24:28])
	return unix.SizeofSockaddrInet6, true
}

// sockaddrOf is for the calls that are made once. A zone is the name or the number of an interface of the calling thread's namespace.
func sockaddrOf(ap netip.AddrPort, family uint16) (unix.Sockaddr, error) {
	if family == unix.AF_INET {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().Unmap().As4()}, nil
	}
	name := &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}
	if zone := ap.Addr().Zone(); zone != "" {
		index, err := strconv.ParseUint(zone, 10, 32)
		if err != nil {
			device, err := net.InterfaceByName(zone)
			if err != nil {
				return nil, fmt.Errorf("zone %s: %w", zone, err)
			}
			index = uint64(device.Index)
		}
		name.ZoneId = uint32(index)
	}
	return name, nil
}

// addrOf is its reverse.
func addrOf(name unix.Sockaddr) wire.Addr {
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		return wire.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port)))
	case *unix.SockaddrInet6:
		return wire.AddrFrom(netip.AddrPortFrom(netip.AddrFrom16(name.Addr), uint16(name.Port)))
	default:
		return wire.Addr{}
	}
}
