//go:build !linux || portable

package runtime

import (
	"errors"
	"fmt"
)

// Sockets is another implementation of AF_XDP sockets than package xsk's; without AF_XDP there is none.
type Sockets struct{}

// errNoXDP tells a trouble that can be cured from this one.
var errNoXDP = fmt.Errorf("%w: only a build for Linux has AF_XDP, elsewhere kernel UDP serves", errors.ErrUnsupported)

func openXDP(EndpointConfig) (xdpPort, error) { return nil, errNoXDP }
