//go:build linux && !portable

package runtime

import (
	"errors"
	"net/netip"

	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
)

// Sockets is another implementation of AF_XDP sockets than package xsk's.
type Sockets = xdpport.Sockets

// openXDP opens a port for each dispatcher.
func openXDP(cfg EndpointConfig) ([]*xdpport.Port, error) {
	return xdpport.OpenAll(xdpport.Config{
		Interface: cfg.Interface, Queue: cfg.Queue, Queues: cfg.Queues, Address: cfg.Address, Port: cfg.Port,
		Sockets: cfg.Sockets, Mode: cfg.Mode,
		PinPath: cfg.PinPath,
	}, cfg.Dispatchers)
}

// tooFewQueues is a slip in the number of dispatchers, which another port would hide.
func tooFewQueues(err error) bool { return errors.Is(err, xdpport.ErrDispatchers) }

// addressesOn are those that a port over AF_XDP would have on an interface.
func addressesOn(name string, address netip.Addr) ([]netip.Addr, error) {
	return xdpport.Addresses(name, address)
}
