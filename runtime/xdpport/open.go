//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/runtime/neighbour"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// Config says where to open a port.
type Config struct {
	Interface string     // required
	Queue     uint32     // receive queue of the interface
	Address   netip.Addr // unset = the interface's first IPv4 address
	Port      uint16     // 0 = a free one
}

// ErrNoAddress says that the interface has no IPv4 address.
var ErrNoAddress = errors.New("interface has no IPv4 address: give it one, or name the address")

// Open attaches the program, opens the socket and joins the two. Everything belongs to the network namespace of the
// calling thread. It needs CAP_NET_ADMIN, CAP_BPF and CAP_NET_RAW.
func Open(cfg Config) (*Port, error) {
	link, err := netlink.LinkByName(cfg.Interface)
	if err != nil {
		return nil, fmt.Errorf("finding interface %s: %w", cfg.Interface, err)
	}
	if !cfg.Address.IsValid() || cfg.Address.IsUnspecified() {
		if cfg.Address, err = firstAddress(link); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.Interface, err)
		}
	}
	p := &Port{}
	if err := p.open(cfg, link); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func firstAddress(link netlink.Link) (netip.Addr, error) {
	addresses, err := netlink.AddrList(link, unix.AF_INET)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("listing addresses: %w", err)
	}
	for _, a := range addresses {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok {
			return ip, nil
		}
	}
	return netip.Addr{}, ErrNoAddress
}

// open takes one step after the other; Close undoes those that were taken.
func (p *Port) open(cfg Config, link netlink.Link) (err error) {
	index := link.Attrs().Index
	if p.held, p.local, err = holdPort(cfg.Address, cfg.Port); err != nil {
		return err
	}
	if p.hops, err = neighbour.Open(index); err != nil {
		return err
	}
	p.hop = p.hops.NewCache()
	if p.queue, err = xsk.Open(xsk.Config{Interface: index, QueueID: cfg.Queue}); err != nil {
		return errors.Join(err, holder(cfg.Interface, err))
	}
	p.payloadMax = min(link.Attrs().MTU+wire.EthernetHeaderBytes, p.queue.PacketSizeMax()) - wire.FrameHeaderBytes
	if p.program, err = bpf.Load(bpf.Options{PacketSizeMax: p.queue.PacketSizeMax()}); err != nil {
		return err
	}
	if err = p.program.SetSocket(cfg.Queue, p.queue.FD()); err != nil {
		return err
	}
	local := p.local.AddrPort()
	if err = p.program.RegisterService(local.Addr(), local.Port()); err != nil {
		return err
	}
	mode, err := p.program.Attach(index, bpf.ModeAuto)
	if err != nil {
		return err
	}
	p.mode = fmt.Sprintf("AF_XDP on %s queue %d, %s XDP, %s mode", cfg.Interface, cfg.Queue, mode, p.queue.Mode())
	return nil
}

// holder says who has the program on the interface when its queue is busy: most likely the owner of the queue as well.
func holder(name string, err error) error {
	if !errors.Is(err, xsk.ErrQueueBusy) {
		return nil
	}
	status, err := bpf.Inspect(name)
	if err != nil || !status.Attached {
		return nil // the first error says it all
	}
	return &bpf.HeldError{
		Interface: name, ProgramID: status.ProgramID, Name: status.Name, Mode: status.Mode, LinkID: status.LinkID,
		Holders: status.Holders,
	}
}

// holdPort binds an ordinary UDP socket to the port. It is never read: what XDP passes on would only be dropped with it.
func holdPort(address netip.Addr, port uint16) (*net.UDPConn, wire.Addr, error) {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, port)))
	if err != nil {
		return nil, wire.Addr{}, fmt.Errorf("holding UDP port %d of %v: %w", port, address, err)
	}
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return conn, wire.AddrFrom(netip.AddrPortFrom(local.Addr().Unmap(), local.Port())), nil
}

// Close detaches the program first, so that the kernel has the packets again before the rings go.
func (p *Port) Close() error {
	var errs []error
	if p.queue != nil {
		p.stats = p.Stats() // the kernel's counters go with the socket
	}
	if p.program != nil {
		errs = append(errs, p.program.Close())
		p.program = nil
	}
	if p.queue != nil {
		errs = append(errs, p.queue.Close())
		p.queue = nil
	}
	if p.hops != nil {
		errs = append(errs, p.hops.Close())
		p.hops = nil
	}
	if p.held != nil {
		errs = append(errs, p.held.Close())
		p.held = nil
	}
	return errors.Join(errs...)
}
