//go:build linux

package udpport

import "golang.org/x/sys/unix"

// forbidFragments sets don't-fragment and ignores learnt path MTUs, as RFC 9000, section 14 wants of a protocol with
// its own packet size: an AF_XDP peer drops fragments, and a forged ICMP message must not shrink us.
func forbidFragments(fd int, family uint16) error {
	if family == unix.AF_INET6 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE); err != nil {
			return err
		}
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
}
