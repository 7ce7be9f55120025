//go:build !linux

package udpport

import "golang.org/x/sys/unix"

// forbidFragments sets don't-fragment, as RFC 9000, section 14 wants of a protocol with its own packet size. A socket takes the option of
// its own family only, so what an IPv6 one sends to IPv4 peers is bounded by the payload alone.
func forbidFragments(fd int, family uint16) error {
	if family == unix.AF_INET6 {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_DONTFRAG, 1)
}
