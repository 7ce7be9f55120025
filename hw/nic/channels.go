//go:build linux

package nic

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Channels is struct ethtool_channels of include/uapi/linux/ethtool.h: how many queues an interface has, and may have. A driver counts its queues
// either as receive and transmit queues or as combined ones, or mixes both.
type Channels struct {
	command                                   uint32
	RxMax, TxMax, OtherMax, CombinedMax       uint32
	RxCount, TxCount, OtherCount, CombinedNow uint32
}

// Receive is the number of receive queues. Their numbers begin at 0.
func (c *Channels) Receive() int { return int(c.RxCount + c.CombinedNow) }

// Transmit is the number of transmit queues. Their numbers begin at 0.
func (c *Channels) Transmit() int { return int(c.TxCount + c.CombinedNow) }

// ReceiveMax is how many receive queues the interface can be given.
func (c *Channels) ReceiveMax() int {
	return int(max(c.RxMax, c.RxCount) + max(c.CombinedMax, c.CombinedNow))
}

// ethtoolRequest is struct ifreq with a pointer in its union.
type ethtoolRequest struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte // the union is larger than a pointer
}

// ChannelsOf asks an interface for its queues (ETHTOOL_GCHANNELS). A driver that does not say, EOPNOTSUPP, has one.
func ChannelsOf(name string) (Channels, error) {
	c := Channels{command: unix.ETHTOOL_GCHANNELS}
	if err := ethtool(name, unsafe.Pointer(&c)); err != nil {
		if err == unix.EOPNOTSUPP {
			return oneQueue, nil
		}
		return Channels{}, fmt.Errorf("nic: read the number of queues of %s: %w", name, err)
	}
	return c, nil
}

// oneQueue is what a driver has that does not say.
var oneQueue = Channels{RxMax: 1, RxCount: 1, TxMax: 1, TxCount: 1}

// SetChannels gives an interface as many queues (ETHTOOL_SCHANNELS, as `ethtool -L` does). It needs CAP_NET_ADMIN. The kernel refuses, with EINVAL, to
// take away a queue that a socket is bound to.
func SetChannels(name string, c Channels) error {
	c.command = unix.ETHTOOL_SCHANNELS
	if err := ethtool(name, unsafe.Pointer(&c)); err != nil {
		return fmt.Errorf("nic: set the number of queues of %s to %d: %w", name, c.Receive(), err)
	}
	return nil
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

// ioctlEthtool allocates nothing.
func ioctlEthtool(fd int, name string, data unsafe.Pointer) unix.Errno {
	request := ethtoolRequest{data: data}
	copy(request.name[:], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	return errno
}
