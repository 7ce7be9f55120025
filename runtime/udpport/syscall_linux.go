//go:build linux && !portable

package udpport

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// All that is unsafe on Linux, and all system calls of the data path, are in this file. The data path uses RawSyscall6:
// Syscall6 would let the scheduler retake the P after 20 us, which costs more than the batch itself; MSG_DONTWAIT
// makes sure that none of these calls waits. The arrays that are passed are on the Go heap, which does not
// move, and are reachable from the Port.

// recvmmsg receives up to len(headers) messages.
func recvmmsg(fd int, headers []unix.Mmsghdr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&headers[0])),
		uintptr(len(headers)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// sendmmsg sends up to len(headers) messages. An error is of the first one: after that it returns how many it sent.
func sendmmsg(fd int, headers []unix.Mmsghdr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&headers[0])),
		uintptr(len(headers)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// stampControl is the control message of SO_TIMESTAMPNS: struct cmsghdr and a timespec of CLOCK_REALTIME
// (Documentation/networking/timestamping.rst, section 1.1.2).
type stampControl struct {
	header unix.Cmsghdr
	when   unix.Timespec
}

// stampControlBytes is the room that the kernel is offered.
const stampControlBytes = int(unsafe.Sizeof(stampControl{}))

func (c *stampControl) pointer() *byte { return (*byte)(unsafe.Pointer(c)) }

// read reads the stamp in ns, if the kernel wrote one.
func (c *stampControl) read(message *unix.Msghdr) (int64, bool) {
	if int(message.Controllen) < stampControlBytes ||
		c.header.Level != unix.SOL_SOCKET || c.header.Type != unix.SO_TIMESTAMPNS {
		return 0, false
	}
	return c.when.Nano(), true
}

// received is where recvmmsg puts the control messages of one datagram: the stamp comes first, if there is one (net/ipv4/udp.c and
// net/ipv6/udp.c, sock_recv_cmsgs before the family's own).
type received struct {
	stamp stampControl
	info  infoControl
}

const infoControlBytes = int(unsafe.Sizeof(infoControl{}))

func (c *infoControl) pointer() *byte { return (*byte)(unsafe.Pointer(c)) }

// room is what the kernel is offered.
func (c *received) room(stamps, homes bool) (*byte, int) {
	first, size := c.stamp.pointer(), 0
	if !stamps {
		first = c.info.pointer()
	} else {
		size = stampControlBytes
	}
	if homes {
		c.info.header.Level, c.info.header.Type = 0, 0 // of the last one
		size += infoControlBytes
	}
	return first, size
}

// The places in what SO_MEMINFO returns, and the number of its words (include/uapi/linux/sock_diag.h).
const (
	meminfoReceiveAllocated = 0 // SK_MEMINFO_RMEM_ALLOC
	meminfoDrops            = 8 // SK_MEMINFO_DROPS
	meminfoWords            = 9 // SK_MEMINFO_VARS
)

// meminfo asks the kernel for the socket's memory and drops; zeros before Linux 4.12, and when it is closed.
func (p *Port) meminfo() (words [meminfoWords]uint32) {
	length := uint32(unsafe.Sizeof(words))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(p.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&words[0])), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return [meminfoWords]uint32{}
	}
	return words
}

// kernelDrops is how many packets the socket refused: buffer full, or a wrong checksum.
func (p *Port) kernelDrops() uint64 { return uint64(p.meminfo()[meminfoDrops]) }
