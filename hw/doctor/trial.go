//go:build linux

package doctor

import (
	"errors"

	"golang.org/x/sys/unix"
)

// featureText is what the driver says of itself, for an item that was not tried.
func (n *NIC) featureText(feature string) string {
	if n.Features == nil {
		return ""
	}
	for _, f := range n.Features {
		if f == feature {
			return "; the driver says that it can"
		}
	}
	return "; the driver says that it cannot"
}

// untried says why a step was not made: for the reason of the whole trial, or since an earlier one failed.
func (e *examination) untried(s subject, feature string) []Item {
	why, cure := e.Trial.Skipped, e.Trial.Cure
	if why == "" {
		why, cure = "what comes before it failed", "# the cure of what failed"
	}
	return s.unknown("not tried: "+why+e.NIC.featureText(feature), cure)
}

var nicNative = onNIC(func(e *examination, n *NIC) []Item {
	s := subject{
		"nic.native", "XDP in the driver", "generic mode runs after the kernel has made a socket buffer of each packet, and costs most of what bypassing it gains",
		"# use an interface whose driver has native XDP, as mlx5_core, ice, i40e, ixgbe, igc, virtio_net and veth have",
	}
	err, tried := e.Trial.Results[StepNative]
	switch {
	case !tried:
		return e.untried(s, featureBasic)
	case err == nil:
		return s.ok("attached, and detached again")
	case errors.Is(err, unix.EOPNOTSUPP):
		return s.warn("the driver has none")
	case errors.Is(err, unix.ERANGE):
		s.cure = n.ask("ip link set dev %s mtu 1500")
	case errors.Is(err, unix.ENOSPC):
		s.cure = n.ask("ethtool -L %s rx 8 # at least as many as the other end of the pair has transmit queues")
	default:
		s.cure = "dmesg | tail # where the driver says why"
	}
	return s.fail("%v", err) // other than a missing feature, this is what opening a port fails with too
})

// nicGeneric is of interest only where native mode is not to be had.
var nicGeneric = onNIC(func(e *examination, _ *NIC) []Item {
	s := subject{
		"nic.generic", "XDP in the stack", "an interface with neither mode cannot have AF_XDP", "# use another interface",
	}
	err, tried := e.Trial.Results[StepGeneric]
	switch {
	case !tried:
		return nil
	case err != nil:
		return s.fail("%v", err)
	}
	return s.ok("attached, and detached again")
})

var nicZeroCopy = onNIC(func(e *examination, n *NIC) []Item {
	s := subject{
		"nic.zero_copy", "zero-copy", "in copy mode the kernel copies each packet, and takes about 1 us for each that is sent",
		"# use an interface whose driver has zero-copy, as mlx5_core, ice, i40e, ixgbe and igc have, if copy mode is too slow",
	}
	zeroCopy, tried := e.Trial.Results[StepZeroCopy]
	copied, copying := e.Trial.Results[StepCopy]
	switch {
	case !tried && copying && copied == nil:
		return s.warn("copy mode; generic XDP has no other")
	case !tried && copying:
		s.cure = n.ask("stillwater xdp status %s # names who else is there")
		return s.fail("%v", copied)
	case !tried:
		return e.untried(s, featureZeroCopy)
	case zeroCopy == nil:
		return s.ok("a socket was bound, and closed again")
	case !errors.Is(zeroCopy, unix.EOPNOTSUPP):
		s.cure = n.ask("stillwater xdp status %s # names who else is there")
		return s.fail("%v", zeroCopy)
	}
	if !copying || copied != nil {
		s.cure = n.ask("stillwater xdp status %s # names who else is there")
		return s.fail("neither zero-copy nor copy: %v", copied)
	}
	return s.warn("copy mode; the driver has no zero-copy")
})
