//go:build !linux || portable

package udpport

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket makes a socket that never blocks.
func socket(family int) (int, error) {
	syscall.ForkLock.RLock() // a child that is forked between the calls would inherit the socket
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// setReceiveBuffer takes less where the host allows no more: some kernels refuse instead of cutting.
func setReceiveBuffer(fd, size int) error {
	err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size)
	for ; errors.Is(err, unix.ENOBUFS) && size > 1; size /= 2 {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size/2)
	}
	return err
}

// askForStamps does nothing: the stamps that other kernels offer are of a microsecond, or of another clock.
func (*receiver) askForStamps(int) error { return nil }

// kernelDrops is 0: there is no socket option that tells.
func (*Port) kernelDrops() uint64 { return 0 }

// info4Local is where struct in_pktinfo has our address of what is received: ipi_addr, the destination in the header; XNU fills in no other.
const info4Local = 8
