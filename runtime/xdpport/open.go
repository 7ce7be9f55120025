//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/nic"
	"github.com/stillwater-rpc/stillwater/runtime/neighbour"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// Config says where to open a port.
type Config struct {
	Interface string     // required
	Queue     uint32     // the first receive queue of the interface that gets a socket
	Queues    int        // how many queues from there on; 0 = all, at most QueuesMax
	Address   netip.Addr // of either family; unset or :: = the interface's first of each, 0.0.0.0 = of IPv4 only
	Port      uint16     // 0 = a free one
	Sockets   *Sockets   // another implementation of the sockets, on one queue; nil = package xsk
	PinPath   string     // of a program to share; "" = one of our own
	Mode      Mode       // which rung of the ladder; ModeUDP is not for this port
}

// QueuesMax is how many queues one port serves: each is looked at in every turn of the loop, and each has 3 MiB of frames or more.
const QueuesMax = 64

// ErrNoQueue says that the interface has no such queue.
var ErrNoQueue = errors.New("no such queue")

// Open attaches the program, opens the socket and joins the two. Everything belongs to the network namespace of the
// calling thread. It needs CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and CAP_NET_RAW, and with PinPath CAP_NET_RAW alone.
func Open(cfg Config) (*Port, error) {
	if !cfg.Mode.Known() || cfg.Mode == ModeUDP {
		return nil, fmt.Errorf("%w: %v with AF_XDP", ErrMode, cfg.Mode)
	}
	link, addresses, err := cfg.find()
	if err != nil {
		return nil, err
	}
	p := &Port{cfg: cfg, space: space{-1}, resize: make(chan resize), kept: make(chan struct{})}
	if err := p.open(cfg, addresses, link); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// open takes one step after the other; Close undoes those that were taken.
func (p *Port) open(cfg Config, addresses []netip.Addr, link netlink.Link) (err error) {
	if p.space, err = here(); err != nil {
		return err
	}
	p.device = device{name: cfg.Interface, index: link.Attrs().Index}
	if p.slow, err = openSlow(addresses, cfg.Port); err != nil {
		return err
	}
	p.local = p.slow.local()
	if p.hops, err = neighbour.Open(p.device.index); err != nil {
		return err
	}
	p.hop = p.hops.NewCache()
	ids, err := p.queueIDs(&cfg)
	if err != nil {
		return err
	}
	if cfg.Sockets != nil {
		err = cfg.Sockets.open(p, ids)
	} else {
		err = cfg.Mode.climb(func(sockets xsk.Mode) error { return p.openAs(ids, sockets) })
	}
	if err != nil {
		return errors.Join(err, cfg.holder(err))
	}
	p.payloadMax = p.payloadFor(link.Attrs().MTU)
	return p.steer()
}

// queueIDs looks which queues there are, and returns those that get a socket.
func (p *Port) queueIDs(cfg *Config) ([]uint32, error) {
	channels, err := nic.ChannelsOf(cfg.Interface)
	if err != nil {
		return nil, err
	}
	p.device.have, p.queues.transmit = channels.Receive(), channels.Transmit()
	ids, err := cfg.ids(channels)
	p.queuesRoom = max(len(ids), min(channels.ReceiveMax()-int(cfg.Queue), max(2*len(ids), manyQueues), QueuesMax))
	return ids, err
}

// openAs makes the UMEM, unless it is there, sockets on it, and attaches the program. On error only the UMEM is left.
func (p *Port) openAs(ids []uint32, sockets xsk.Mode) error {
	bound, err := p.bindFirst(ids, sockets)
	if err != nil {
		return err
	}
	if err = p.adopt(ids, bound); err == nil {
		err = p.openProgram()
	}
	if err != nil {
		return errors.Join(err, p.closeSockets())
	}
	return nil
}

// bindFirst makes the UMEM with room for more queues, or for these alone where the limit on locked memory leaves none for more.
func (p *Port) bindFirst(ids []uint32, sockets xsk.Mode) (bound []*xsk.Bound, err error) {
	for {
		if p.own == nil {
			cfg := memory(p.queuesRoom)
			cfg.Node = xsk.NodeAt(nic.NUMANode(p.device.name))
			umem, err := xsk.NewUMEM(cfg)
			if err != nil {
				return nil, err
			}
			p.umem, p.own = umem, umem
		}
		bound, err = p.bindAll(p.device.index, ids, sockets)
		if !errors.Is(err, unix.ENOBUFS) || p.queuesRoom == len(ids) {
			return bound, err
		}
		p.queuesRoom = len(ids)
		if err := p.closeQueues(); err != nil {
			return nil, err
		}
	}
}

// openProgram loads the program, or finds the one that is shared, and attaches it for the sockets that are there. It steers nothing to them yet.
func (p *Port) openProgram() error {
	program, err := p.cfg.program(p.umem.PacketSizeMax())
	if err != nil {
		return err
	}
	p.device.xdp, err = p.cfg.attach(program, p.device.index, p.cfg.Mode.program(p.queues.bound()))
	if err != nil {
		return errors.Join(err, program.Close())
	}
	p.program = program
	return nil
}

func (p *Port) closeSockets() error {
	var errs []error
	for _, q := range p.queues.open {
		errs = append(errs, q.Close())
	}
	p.queues = queues{transmit: p.queues.transmit}
	return errors.Join(errs...)
}

// closeQueues closes the sockets, and the memory that they share.
func (p *Port) closeQueues() error {
	errs := []error{p.closeSockets()}
	if p.umem != nil {
		errs = append(errs, p.umem.Close())
		p.umem, p.own = nil, nil
	}
	return errors.Join(errs...)
}

// ids are the queues that get a socket, of those that the interface has.
func (c *Config) ids(channels nic.Channels) ([]uint32, error) {
	have, count := channels.Receive(), c.Queues
	if count == 0 {
		count = min(have-int(c.Queue), QueuesMax)
	}
	switch last := int(c.Queue) + max(count, 1) - 1; {
	case c.Queues < 0 || c.Queues > QueuesMax:
		return nil, fmt.Errorf("%w: %d queues: at most %d", ErrNoQueue, c.Queues, QueuesMax)
	case int(c.Queue) >= channels.Transmit():
		return nil, fmt.Errorf("%w: queue %d: %s has %d transmit queues, so nothing could be sent by it",
			ErrNoQueue, c.Queue, c.Interface, channels.Transmit())
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

// MemoryBytes is how much memory a port of so many queues locks.
func MemoryBytes(queues int) int64 {
	cfg := memory(queues).WithDefaults()
	return int64(cfg.FrameCount) * int64(cfg.FrameSizeBytes)
}

// steer tells the program of sockets and service: from then on packets come.
func (p *Port) steer() error {
	for i, id := range p.queues.ids {
		if err := p.program.SetSocket(id, p.queues.open[i].FD()); err != nil {
			return err
		}
	}
	return p.register()
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
	errs = append(errs, p.closeQueues())
	if p.hops != nil {
		errs = append(errs, p.hops.Close())
		p.hops = nil
	}
	errs = append(errs, p.slow.close(), p.space.close())
	p.slow, p.space.fd = nil, -1
	return errors.Join(errs...)
}
