//go:build linux

package rawudp

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Server echoes every datagram from the buffer that it came in.
type Server struct {
	fd       int
	addr     netip.AddrPort
	messages *batch
}

// NewServer binds an IPv4 address; port 0 lets the kernel choose one.
func NewServer(listen netip.AddrPort) (*Server, error) {
	fd, err := openSocket()
	if err != nil {
		return nil, fmt.Errorf("rawudp: listen on %v: %w", listen, err)
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(listen.Port()), Addr: listen.Addr().As4()}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("rawudp: listen on %v: bind: %w", listen, err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("rawudp: listen on %v: read the bound address: %w", listen, err)
	}
	port := uint16(name.(*unix.SockaddrInet4).Port)
	return &Server{fd: fd, addr: netip.AddrPortFrom(listen.Addr(), port), messages: newBatch(true)}, nil
}

// Addr is the bound address.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Run echoes until stop is set. It spins; what it cannot send is lost.
func (s *Server) Run(stop *atomic.Bool) error {
	for empty := 0; !stop.Load(); {
		got, errno := s.messages.receive(s.fd, batchMax)
		switch {
		case errno == 0:
			empty = 0
			s.messages.sizeAsReceived(got)
			s.messages.send(s.fd, got)
			s.messages.sizeToReceive(got)
		case errno == unix.EAGAIN || errno == unix.EINTR || errno == unix.ECONNREFUSED:
			if empty++; empty%yieldEvery == 0 {
				runtime.Gosched()
			}
		default:
			return fmt.Errorf("rawudp: serve: recvmmsg: %w", errno)
		}
	}
	return nil
}

// Close closes the socket.
func (s *Server) Close() error { return unix.Close(s.fd) }
