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
	ports, err := OpenAll(cfg, 1)
	if err != nil {
		return nil, err
	}
	return ports[0], nil
}

// OpenAll is Open for several dispatchers, among whose ports the queues are shared out. Each port may have a user of its own, and only all of them together
// may keep them, ask for their Mode, and close them: one after the other, when nobody uses any.
func OpenAll(cfg Config, count int) ([]*Port, error) {
	if !cfg.Mode.Known() || cfg.Mode == ModeUDP {
		return nil, fmt.Errorf("%w: %v with AF_XDP", ErrMode, cfg.Mode)
	}
	link, addresses, err := cfg.find()
	if err != nil {
		return nil, err
	}
	c := &card{cfg: cfg, space: space{-1}, resize: make(chan resize), kept: make(chan struct{})}
	for range count {
		c.ports = append(c.ports, &Port{card: c})
	}
	if err := c.open(addresses, link); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c.ports, nil
}

// open takes one step after the other; close undoes those that were taken.
func (c *card) open(addresses []netip.Addr, link netlink.Link) (err error) {
	if c.space, err = here(); err != nil {
		return err
	}
	c.device = device{name: c.cfg.Interface, index: link.Attrs().Index}
	first := c.ports[0]
	if first.slow, err = openSlow(addresses, c.cfg.Port); err != nil {
		return err
	}
	c.local = first.slow.local()
	hops, err := neighbour.Open(c.device.index)
	if err != nil {
		return err
	}
	c.setHops(hops)
	ids, err := c.queueIDs()
	if err != nil {
		return err
	}
	if c.cfg.Sockets != nil {
		err = c.cfg.Sockets.open(first, ids)
	} else {
		err = c.cfg.Mode.climb(func(sockets xsk.Mode) error { return c.openAs(ids, sockets) })
	}
	if err != nil {
		return errors.Join(err, c.cfg.holder(err))
	}
	c.payloadMax = c.payloadFor(link.Attrs().MTU)
	return c.steer()
}

// queueIDs looks which queues there are, and returns those that get a socket.
func (c *card) queueIDs() ([]uint32, error) {
	channels, err := nic.ChannelsOf(c.cfg.Interface)
	if err != nil {
		return nil, err
	}
	c.device.have = channels.Receive()
	c.setTransmit(channels.Transmit())
	ids, err := c.cfg.ids(channels)
	if err != nil {
		return nil, err
	}
	room := max(len(ids), min(channels.ReceiveMax()-int(c.cfg.Queue), max(2*len(ids), manyQueues), QueuesMax))
	for i, p := range c.ports {
		p.queuesRoom = (room - i + len(c.ports) - 1) / len(c.ports)
	}
	return ids, c.checkQueues(len(ids), channels.Transmit())
}

// openAs makes the UMEMs, unless they are there, sockets on them, and attaches the program. On error only the UMEMs are left.
func (c *card) openAs(ids []uint32, sockets xsk.Mode) (err error) {
	for i, p := range c.ports {
		var bound []*xsk.Bound
		own := c.share(ids, i)
		if bound, err = p.bindFirst(own, sockets); err == nil {
			err = p.adopt(own, bound)
		}
		if err != nil {
			break
		}
		sockets = c.bound() // all the same
	}
	if err == nil {
		err = c.openProgram()
	}
	if err == nil {
		return nil
	}
	errs := []error{err}
	for _, p := range c.ports {
		errs = append(errs, p.closeSockets())
	}
	return errors.Join(errs...)
}

// bindFirst makes the UMEM with room for more queues, or for these alone where the limit on locked memory leaves none for more.
func (p *Port) bindFirst(ids []uint32, sockets xsk.Mode) (bound []*xsk.Bound, err error) {
	for {
		if p.own == nil {
			umem, err := xsk.NewUMEM(p.memory(p.queuesRoom))
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
func (c *card) openProgram() error {
	program, err := c.cfg.program(c.ports[0].umem.PacketSizeMax())
	if err != nil {
		return err
	}
	c.device.xdp, err = c.cfg.attach(program, c.device.index, c.cfg.Mode.program(c.bound()))
	if err != nil {
		return errors.Join(err, program.Close())
	}
	c.program = program
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

// node is where the UMEM should be.
func (c *Config) node() xsk.Node { return xsk.NodeAt(nic.NUMANode(c.Interface)) }

// steer tells the program of sockets and service: from then on packets come.
func (c *card) steer() error {
	for _, p := range c.ports {
		for i, id := range p.queues.ids {
			if err := c.program.SetSocket(id, p.queues.open[i].FD()); err != nil {
				return err
			}
		}
	}
	return c.register()
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

func (c *card) close() error {
	var errs []error
	for _, p := range c.ports {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
