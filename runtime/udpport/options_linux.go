//go:build linux && !portable

package udpport

import "golang.org/x/sys/unix"

// socket makes a socket that never blocks.
func socket(family int) (int, error) {
	return unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_UDP)
}

// setReceiveBuffer goes beyond the limit of the host where that is allowed.
func setReceiveBuffer(fd, size int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size)
}

// askForStamps has the kernel say when each datagram arrived.
func (in *receiver) askForStamps(fd int) error {
	in.stamps = true
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
}

// info4Local is where struct in_pktinfo has our address of what is received: ipi_spec_dst, which is ours even if the packet was a broadcast.
const info4Local = info4Source
