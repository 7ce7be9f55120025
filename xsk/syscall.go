//go:build linux

package xsk

import "golang.org/x/sys/unix"

// The two calls of the packet path are raw: the scheduler is not told, for it would take the P away from a call of more
// than 20 us, which costs 9 us per 32 packets. Both return at once (MSG_DONTWAIT), so that no P is held up.

// wakeTx has the kernel send what is on the TX ring. No message goes with it.
func wakeTx(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

// wakeRx has the driver look at the fill ring again.
func wakeRx(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}
