//go:build linux && !portable

package runtime

import (
	"net/netip"

	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
)

// Sockets is another implementation of AF_XDP sockets than package xsk's.
type Sockets = xdpport.Sockets

func openXDP(cfg EndpointConfig) (xdpPort, error) {
	return xdpport.Open(xdpport.Config{
		Interface: cfg.Interface, Queue: cfg.Queue, Queues: cfg.Queues, Address: cfg.Address, Port: cfg.Port,
		Sockets: cfg.Sockets, Mode: cfg.Mode,
		PinPath: cfg.PinPath,
	})
}

// addressesOn are those that a port over AF_XDP would have on an interface.
func addressesOn(name string, address netip.Addr) ([]netip.Addr, error) {
	return xdpport.Addresses(name, address)
}
