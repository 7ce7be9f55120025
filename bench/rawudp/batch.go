//go:build linux

package rawudp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// PayloadMax is what an Ethernet link of 1500 bytes carries.
	PayloadMax = 1472

	batchMax   = 64
	yieldEvery = 64      // empty polls between two yields to other goroutines
	bufferSize = 4 << 20 // of the socket, both ways, as far as the kernel's limits allow
)

// batch is the arguments of recvmmsg and sendmmsg.
type batch struct {
	headers  [batchMax]unix.Mmsghdr
	vectors  [batchMax]unix.Iovec
	names    [batchMax]unix.RawSockaddrInet4
	payloads [batchMax][PayloadMax]byte
}

// newBatch links the arrays; named for sockets that are not connected.
func newBatch(named bool) *batch {
	b := new(batch)
	for i := range b.headers {
		b.vectors[i].Base = &b.payloads[i][0]
		header := &b.headers[i].Hdr
		header.Iov = &b.vectors[i]
		header.SetIovlen(1)
		if named {
			header.Name = (*byte)(unsafe.Pointer(&b.names[i]))
			header.Namelen = unix.SizeofSockaddrInet4 // and the kernel writes the same back
		}
	}
	b.sizeToReceive(batchMax)
	return b
}

// sizeAsReceived makes the first count messages as long as what they received.
func (b *batch) sizeAsReceived(count int) {
	for i := range count {
		b.vectors[i].SetLen(int(b.headers[i].Len))
	}
}

// sizeToReceive gives them their whole buffers again.
func (b *batch) sizeToReceive(count int) {
	for i := range count {
		b.vectors[i].SetLen(PayloadMax)
	}
}

// receive takes up to limit datagrams.
func (b *batch) receive(fd, limit int) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.headers[0])),
		uintptr(limit), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// send transmits the first count messages, and returns how many went out; a message that the kernel refuses is
// skipped, unless it refuses for want of room.
func (b *batch) send(fd, count int) (sent int) {
	for at := 0; at < count; {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.headers[at])),
			uintptr(count-at), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			at += int(n)
			sent += int(n)
		case unix.EAGAIN, unix.ENOBUFS:
			return sent
		default:
			at++
		}
	}
	return sent
}

// openSocket makes a non-blocking IPv4 socket with large buffers.
func openSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_UDP)
	if err != nil {
		return -1, err
	}
	for _, option := range []struct{ force, plain int }{
		{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF},
	} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, option.force, bufferSize) == nil {
			continue
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option.plain, bufferSize); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	return fd, nil
}
