//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/hw/nic"
	"github.com/stillwater-rpc/stillwater/runtime/neighbour"
	"github.com/stillwater-rpc/stillwater/runtime/udpport"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// Config says where to open a port.
type Config struct {
	Interface string     // required
	Queue     uint32     // the first receive queue of the interface that gets a socket
	Queues    int        // how many queues from there on; 0 = all, at most QueuesMax
	Address   netip.Addr // unset = the interface's first IPv4 address
	Port      uint16     // 0 = a free one
	PinPath   string     // of a program to share; "" = one of our own
}

// QueuesMax is how many queues one port serves: each is looked at in every turn of the loop, and each has 3 MiB of frames or more.
const QueuesMax = 64

// ErrNoAddress says that the interface has no IPv4 address.
var ErrNoAddress = errors.New("interface has no IPv4 address: give it one, or name the address")

// ErrNoQueue says that the interface has no such queue.
var ErrNoQueue = errors.New("no such queue")

// Open attaches the program, opens the socket and joins the two. Everything belongs to the network namespace of the
// calling thread. It needs CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and CAP_NET_RAW, and with PinPath CAP_NET_RAW alone.
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
	p.device = device{name: cfg.Interface, index: link.Attrs().Index}
	if p.slow, err = udpport.Open(udpport.Config{Listen: netip.AddrPortFrom(cfg.Address, cfg.Port)}); err != nil {
		return fmt.Errorf("holding UDP port %d of %v: %w", cfg.Port, cfg.Address, err)
	}
	p.local = p.slow.LocalAddr()
	if p.hops, err = neighbour.Open(p.device.index); err != nil {
		return err
	}
	p.hop = p.hops.NewCache()
	if err = p.openQueues(&cfg); err != nil {
		return errors.Join(err, cfg.holder(err))
	}
	p.payloadMax = min(link.Attrs().MTU+wire.EthernetHeaderBytes, p.umem.PacketSizeMax()) - wire.FrameHeaderBytes
	return p.attach(&cfg)
}

// openQueues makes the UMEM and a socket on each queue.
func (p *Port) openQueues(cfg *Config) error {
	channels, err := nic.ChannelsOf(cfg.Interface)
	if err != nil {
		return err
	}
	p.device.have = channels.Receive()
	ids, err := cfg.ids(p.device.have)
	if err != nil {
		return err
	}
	if p.umem, err = xsk.NewUMEM(memory(len(ids))); err != nil {
		return err
	}
	for _, id := range ids {
		q, err := p.umem.Open(p.device.index, id)
		if err != nil {
			return err
		}
		p.queues.add(id, q)
	}
	return nil
}

// ids are the queues that get a socket, of those that the interface has.
func (c *Config) ids(have int) ([]uint32, error) {
	count := c.Queues
	if count == 0 {
		count = min(have-int(c.Queue), QueuesMax)
	}
	switch last := int(c.Queue) + max(count, 1) - 1; {
	case c.Queues < 0 || c.Queues > QueuesMax:
		return nil, fmt.Errorf("%w: %d queues: at most %d", ErrNoQueue, c.Queues, QueuesMax)
	case last >= have:
		return nil, fmt.Errorf("%w: queue %d: %s has %d receive queues, from 0 on; `ethtool -L %s` changes how many",
			ErrNoQueue, last, c.Interface, have, c.Interface)
	}
	ids := make([]uint32, count)
	for i := range ids {
		ids[i] = c.Queue + uint32(i)
	}
	return ids, nil
}

// manyQueues is where rings become smaller: flows that are spread over more queues need less room on each.
const manyQueues = 4

// memory is the UMEM for so many queues.
func memory(queues int) xsk.Config {
	cfg := xsk.Config{Queues: queues}
	if queues > manyQueues {
		cfg.FillRingSize, cfg.RxRingSize, cfg.TxRingSize = 512, 512, 512
	}
	return cfg
}

// attach loads or adopts the program, tells it of sockets and service, and attaches it: from then on packets come.
func (p *Port) attach(cfg *Config) (err error) {
	if p.program, err = cfg.program(p.umem.PacketSizeMax()); err != nil {
		return err
	}
	for i, id := range p.queues.ids {
		if err = p.program.SetSocket(id, p.queues.open[i].FD()); err != nil {
			return err
		}
	}
	local := p.local.AddrPort()
	if err = p.program.RegisterService(local.Addr(), local.Port()); err != nil {
		return err
	}
	p.device.xdp, err = p.program.Attach(p.device.index, bpf.ModeAuto)
	return err
}

// Close detaches the program first, so that the kernel has the packets again before the rings go.
func (p *Port) Close() error {
	var errs []error
	if p.umem != nil {
		p.stats = p.Stats() // the kernel's counters go with the sockets
	}
	if p.program != nil {
		errs = append(errs, p.program.Close())
		p.program = nil
	}
	for _, q := range p.queues.open {
		errs = append(errs, q.Close())
	}
	p.queues = queues{}
	if p.umem != nil {
		errs = append(errs, p.umem.Close())
		p.umem = nil
	}
	if p.hops != nil {
		errs = append(errs, p.hops.Close())
		p.hops = nil
	}
	if p.slow != nil {
		errs = append(errs, p.slow.Close())
		p.slow = nil
	}
	return errors.Join(errs...)
}
