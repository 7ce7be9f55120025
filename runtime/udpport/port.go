package udpport

import (
	"cmp"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

const (
	// DefaultPayloadMax is what an Ethernet link of 1500 bytes carries in one unfragmented UDP packet over IPv4.
	DefaultPayloadMax = 1500 - wire.IPv4HeaderBytes - wire.UDPHeaderBytes
	// DefaultPayloadMaxIPv6 is the same over IPv6.
	DefaultPayloadMaxIPv6 = 1500 - wire.IPv6HeaderBytes - wire.UDPHeaderBytes
	// DefaultBufferCount lets four full batches be built before one is transmitted.
	DefaultBufferCount = 256
	// DefaultReceiveBufferBytes holds about 1,300 small packets, each of which the kernel accounts at 768 bytes. The
	// kernel's own default of 208 KiB holds 277: less than 1 ms of traffic.
	DefaultReceiveBufferBytes = 1 << 20

	// receiveBatch is how many packets one Receive takes, as many as the dispatcher asks for.
	receiveBatch = 64
)

// Config says how to open a [Port].
type Config struct {
	// Listen is the address to bind; port 0 lets the kernel choose one. IPv4 or IPv6, and "[::]" takes both. A link-local address
	// needs its zone, and reaches link-local peers of that zone.
	Listen netip.AddrPort
	// PayloadMax is the largest payload in bytes, both ways; longer datagrams are dropped. 0 means DefaultPayloadMax to receive, and to
	// send too unless the port is one for IPv6, which sends at most DefaultPayloadMaxIPv6.
	PayloadMax int
	// BufferCount is how many buffers can be lent or queued at once. 0 means DefaultBufferCount.
	BufferCount int
	// ReceiveBufferBytes is the socket's receive buffer; 0 means DefaultReceiveBufferBytes. Beyond
	// net.core.rmem_max it needs CAP_NET_ADMIN, and without that is silently what the limit allows.
	ReceiveBufferBytes int
	// NoKernelStamps takes the time of Receive as the arrival of what it returns, instead of the kernel's stamp.
	// Then a wait in the socket's buffer is not part of the load signal. Without Linux it is always so.
	NoKernelStamps bool
}

// Port is a [dispatcher.Port] over a UDP socket.
type Port struct {
	fd         int
	family     uint16
	local      wire.Addr
	payloadMax int
	homes      *homes // nil unless the address is a wildcard

	in    receiver
	out   sender
	stats dispatcher.PortStats
}

var _ dispatcher.Port = (*Port)(nil)

// Open binds a socket and allocates all that the port will ever need.
func Open(cfg Config) (*Port, error) { return open(cfg, nil) }

// open is Open, with one more thing to do to the socket before it is bound.
func open(cfg Config, before func(fd int) error) (*Port, error) {
	four := cfg.Listen.Addr().Unmap().Is4()
	receiveMax := cmp.Or(cfg.PayloadMax, DefaultPayloadMax)
	if cfg.PayloadMax == 0 && !four {
		cfg.PayloadMax = DefaultPayloadMaxIPv6
	}
	cfg.PayloadMax = cmp.Or(cfg.PayloadMax, DefaultPayloadMax)
	cfg.BufferCount = cmp.Or(cfg.BufferCount, DefaultBufferCount)
	cfg.ReceiveBufferBytes = cmp.Or(cfg.ReceiveBufferBytes, DefaultReceiveBufferBytes)
	if cfg.PayloadMax < 1 || cfg.PayloadMax > wire.MaxUDPPayloadBytes {
		return nil, fmt.Errorf("udpport: open: payload max of %d bytes: legal are 1 to %d", cfg.PayloadMax, wire.MaxUDPPayloadBytes)
	}
	if cfg.BufferCount < 1 {
		return nil, fmt.Errorf("udpport: open: buffer count %d: at least 1", cfg.BufferCount)
	}
	if !cfg.Listen.IsValid() {
		return nil, fmt.Errorf("udpport: open: no address to listen on")
	}
	p := &Port{payloadMax: cfg.PayloadMax}
	p.family = unix.AF_INET6
	if four {
		p.family = unix.AF_INET
	}
	fd, err := socket(int(p.family))
	if err != nil {
		return nil, fmt.Errorf("udpport: open: socket: %w", err)
	}
	p.fd = fd
	if before != nil {
		err = before(fd)
	}
	if err == nil {
		err = p.configure(cfg)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("udpport: open %v: %w", cfg.Listen, err)
	}
	p.in.init(receiveMax)
	p.out.init(cfg.PayloadMax, cfg.BufferCount)
	return p, nil
}

// configure sets the socket's options and binds it.
func (p *Port) configure(cfg Config) error {
	if err := setReceiveBuffer(p.fd, cfg.ReceiveBufferBytes); err != nil {
		return fmt.Errorf("set the receive buffer: %w", err)
	}
	if !cfg.NoKernelStamps {
		if err := p.in.askForStamps(p.fd); err != nil {
			return fmt.Errorf("ask for arrival stamps: %w", err)
		}
	}
	if cfg.Listen.Addr().IsUnspecified() {
		if err := p.askForHomes(); err != nil {
			return fmt.Errorf("ask for destinations: %w", err)
		}
	}
	if p.family == unix.AF_INET6 {
		if err := unix.SetsockoptInt(p.fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0); err != nil {
			return fmt.Errorf("take IPv4 as well: %w", err)
		}
	}
	if err := forbidFragments(p.fd, p.family); err != nil {
		return fmt.Errorf("forbid fragments: %w", err)
	}
	name, err := sockaddrOf(cfg.Listen, p.family)
	if err != nil {
		return err
	}
	if err := unix.Bind(p.fd, name); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if name, err = unix.Getsockname(p.fd); err != nil {
		return fmt.Errorf("read the bound address: %w", err)
	}
	p.local = addrOf(name)
	return nil
}

// FD is the socket, for poll(2); -1 once closed.
func (p *Port) FD() int { return p.fd }

// LocalAddr is the bound address.
func (p *Port) LocalAddr() wire.Addr { return p.local }

// PayloadMax is the largest payload in bytes that can be sent.
func (p *Port) PayloadMax() int { return p.payloadMax }

// Name is "udp".
func (*Port) Name() string { return "udp" }

// Stats reads the counters. What the kernel dropped for want of room is asked of the kernel here, not counted per packet; only Linux tells.
func (p *Port) Stats() dispatcher.PortStats {
	stats := p.stats
	stats.ReceiveDropped += p.kernelDrops()
	return stats
}

// SendRefused is how many packets Send and Kick have dropped: see [dispatcher.SendRefused].
func (p *Port) SendRefused() uint64 { return p.stats.SendDropped }

// Close closes the socket. The port then receives nothing and loses what is sent.
func (p *Port) Close() error {
	if p.fd < 0 {
		return nil
	}
	p.stats.ReceiveDropped += p.kernelDrops()
	fd := p.fd
	p.fd = -1 // a later use must not hit whoever gets the number next
	if err := unix.Close(fd); err != nil {
		return fmt.Errorf("udpport: close: %w", err)
	}
	return nil
}
