package udpport

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/wire"
)

// sockaddrOf is for the calls that are made once. A zone is the name or the number of an interface of the calling thread's namespace.
func sockaddrOf(ap netip.AddrPort, family uint16) (unix.Sockaddr, error) {
	if family == unix.AF_INET {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().Unmap().As4()}, nil
	}
	name := &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}
	if zone := ap.Addr().Zone(); zone != "" {
		index, err := strconv.ParseUint(zone, 10, 32)
		if err != nil {
			device, err := net.InterfaceByName(zone)
			if err != nil {
				return nil, fmt.Errorf("zone %s: %w", zone, err)
			}
			index = uint64(device.Index)
		}
		name.ZoneId = uint32(index)
	}
	return name, nil
}

// addrOf is its reverse.
func addrOf(name unix.Sockaddr) wire.Addr {
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		return wire.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port)))
	case *unix.SockaddrInet6:
		return wire.AddrFrom(netip.AddrPortFrom(netip.AddrFrom16(name.Addr), uint16(name.Port)))
	default:
		return wire.Addr{}
	}
}
