//go:build linux && !portable

package udpport

import (
	"encoding/binary"

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
