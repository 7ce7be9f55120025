//go:build !linux || portable

package runtime

import (
	"errors"
	"fmt"
	"net/netip"
)

// Sockets is another implementation of AF_XDP sockets than package xsk's; without AF_XDP there is none.
type Sockets struct{}

// errNoXDP tells a trouble that can be cured from this one.
var errNoXDP = fmt.Errorf("%w: only a build for Linux has AF_XDP, elsewhere kernel UDP serves", errors.ErrUnsupported)

func openXDP(EndpointConfig) ([]xdpPort, error) { return nil, errNoXDP }

func tooFewQueues(error) bool { return false }

func addressesOn(string, netip.Addr) ([]netip.Addr, error) { return nil, errNoXDP }
