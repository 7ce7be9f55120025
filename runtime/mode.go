package runtime

import (
	"fmt"
	"net/netip"

	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
)

// Mode is how an endpoint's packets are carried: a rung of the ladder, or the best that is to be had.
type Mode = xdpport.Mode

// The modes, best first.
const (
	ModeAuto     = xdpport.ModeAuto     // the first of the following that works
	ModeZeroCopy = xdpport.ModeZeroCopy // AF_XDP, the NIC reads and writes our memory
	ModeCopy     = xdpport.ModeCopy     // AF_XDP with the program in the driver; the kernel copies
	ModeGeneric  = xdpport.ModeGeneric  // AF_XDP with the program in the kernel's stack, on any Ethernet interface; the kernel copies
	ModeUDP      = xdpport.ModeUDP      // kernel UDP
)

// ErrMode says that a mode is none, does not go with the rest of a configuration, or is not to be had on the interface.
var ErrMode = xdpport.ErrMode

// ParseMode reads a mode's name, as its String writes it.
func ParseMode(text string) (Mode, error) { return xdpport.ParseMode(text) }

// settleMode refuses a mode that contradicts the rest, and finds the address of kernel UDP on an interface: of those that AF_XDP would have
// there, the IPv4 one unless IPv6 is meant.
func (c *EndpointConfig) settleMode() error {
	switch {
	case !c.Mode.Known():
		return fmt.Errorf("%w: %v", ErrMode, c.Mode)
	case c.Mode != ModeUDP:
		if c.Mode != ModeAuto && c.Interface == "" {
			return fmt.Errorf("%w: %v without an Interface: AF_XDP has to know where", ErrMode, c.Mode)
		}
		return nil
	case c.RequireXDP || c.PinPath != "" || c.Sockets != nil:
		return fmt.Errorf("%w: %v with RequireXDP, PinPath or Sockets, which are for AF_XDP", ErrMode, c.Mode)
	case c.Interface == "":
		return nil
	}
	all, err := addressesOn(c.Interface, c.Address)
	if err != nil {
		return fmt.Errorf("opening kernel UDP: %w", err)
	}
	if c.Address == netip.IPv6Unspecified() {
		c.Address = all[len(all)-1]
	} else {
		c.Address = all[0]
	}
	return nil
}
