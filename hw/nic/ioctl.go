//go:build linux

package nic

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolRequest is struct ifreq with a pointer in its union.
type ethtoolRequest struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte // the union is larger than a pointer
}

// ethtool makes the ioctl; data begins with its command.
func ethtool(name string, data unsafe.Pointer) error {
	if len(name) >= unix.IFNAMSIZ {
		return unix.ENODEV
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if errno := ioctlEthtool(fd, name, data); errno != 0 {
		return errno
	}
	return nil
}

// ioctlEthtool makes it through a socket that is open already, and allocates nothing.
func ioctlEthtool(fd int, name string, data unsafe.Pointer) unix.Errno {
	request := ethtoolRequest{data: data}
	copy(request.name[:], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	return errno
}

// caller is ethtool, or what a test puts in its place.
type caller func(name string, data unsafe.Pointer) error

// ask fills a structure that begins with its command.
func ask[T any](name string, command *T) error { return ethtool(name, unsafe.Pointer(command)) }

// askWords makes a request whose length the kernel decides, in 32-bit words: the first is the command.
func askWords(name string, words []uint32) error { return ethtool(name, unsafe.Pointer(&words[0])) }

// unsupported reports whether an error says that the driver has no such thing.
func unsupported(err error) bool { return errors.Is(err, unix.EOPNOTSUPP) }
