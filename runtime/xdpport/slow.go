//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/udpport"
)

// slowPorts are the kernel's sockets on our port, one at each of our addresses: nobody else can take it there, and what XDP passes on
// comes by them. One on [::] would take the host's other addresses too.
type slowPorts []*udpport.Port

// portTries bounds the search for a port that is free at both addresses. One that is free at the first is taken at the second only if
// somebody listens on that family alone.
const portTries = 16

// openSlow opens them; port 0 = one that is free at all addresses. On error none is left open.
func openSlow(addresses []netip.Addr, port uint16) (all slowPorts, err error) {
	for range portTries {
		if all, err = trySlow(addresses, port); err == nil {
			return all, nil
		}
		if port != 0 || !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	return nil, err
}

func trySlow(addresses []netip.Addr, port uint16) (all slowPorts, err error) {
	for _, address := range addresses {
		s, err := udpport.Open(udpport.Config{Listen: netip.AddrPortFrom(address, port)})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("holding UDP port %d of %v: %w", port, address, err), all.close())
		}
		all, port = append(all, s), s.LocalAddr().Port
	}
	return all, nil
}

// local are the addresses that the sockets are bound to.
func (s slowPorts) local() (l locals) {
	for _, p := range s {
		l.add(p.LocalAddr())
	}
	return l
}

func (s slowPorts) receive(now clock.Time, batch []dispatcher.Datagram) (n int) {
	for _, p := range s {
		n += p.Receive(now, batch[n:])
	}
	return n
}

// poll adds what poll(2) waits for.
func (s slowPorts) poll(fds []unix.PollFd) []unix.PollFd {
	for _, p := range s {
		fds = append(fds, unix.PollFd{Fd: int32(p.FD()), Events: unix.POLLIN})
	}
	return fds
}

func (s slowPorts) dropped() (n uint64) {
	for _, p := range s {
		n += p.Stats().ReceiveDropped
	}
	return n
}

func (s slowPorts) close() (err error) {
	for _, p := range s {
		err = errors.Join(err, p.Close())
	}
	return err
}
