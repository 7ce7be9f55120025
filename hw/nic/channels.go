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

func (c *Channels) transmit() int { return int(c.TxCount + c.CombinedNow) }

func (c *Channels) transmitMax() int {
	return int(max(c.TxMax, c.TxCount) + max(c.CombinedMax, c.CombinedNow))
}

// ChannelsOf asks an interface for its queues (ETHTOOL_GCHANNELS). A driver that does not say, EOPNOTSUPP, has one.
func ChannelsOf(name string) (Channels, error) { return channelsBy(ethtool, name) }

func channelsBy(call caller, name string) (Channels, error) {
	c := Channels{command: unix.ETHTOOL_GCHANNELS}
	if err := call(name, unsafe.Pointer(&c)); err != nil {
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
	if err := ask(name, &c); err != nil {
		return fmt.Errorf("nic: set the number of queues of %s to %d: %w", name, c.Receive(), err)
	}
	return nil
}
