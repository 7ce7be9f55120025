//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/dispatcher/handover"
	"github.com/stillwater-rpc/stillwater/runtime/neighbour"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// ErrDispatchers says that an interface has fewer queues than ports were asked for.
var ErrDispatchers = errors.New("each dispatcher needs a queue of its own")

// card is what the ports of one interface have in common, usually one port. It is written while no port is in use but by the writer (see Own), so the user
// of any of them may read it.
type card struct {
	ports   []*Port
	cfg     Config
	program *bpf.Program
	hops    *neighbour.Table
	local   locals
	device  device
	space   space
	resize  chan resize
	kept    chan struct{} // closed when nobody keeps the ports
	trouble atomic.Pointer[string]
	sockets string // name of the implementation, where it is not package xsk

	payloadMax int
}

// at is the place of the port that has a queue: they are dealt out in turn, so that each has about as many, whatever their number.
func (c *card) at(id uint32) int { return int(id-c.cfg.Queue) % len(c.ports) }

func (c *card) portOf(id uint32) *Port { return c.ports[c.at(id)] }

// share are those queues that the i-th port has.
func (c *card) share(ids []uint32, i int) (own []uint32) {
	for _, id := range ids {
		if c.at(id) == i {
			own = append(own, id)
		}
	}
	return own
}

// ids are the queues that have sockets.
func (c *card) ids() (all []uint32) {
	for _, p := range c.ports {
		all = append(all, p.queues.ids...)
	}
	return all
}

// served is how many those are.
func (c *card) served() (count int) {
	for _, p := range c.ports {
		count += len(p.queues.ids)
	}
	return count
}

// room is how many queues can have sockets: as many as leave no port with more than its UMEM was made for.
func (c *card) room() int {
	room := QueuesMax
	for i, p := range c.ports {
		room = min(room, p.queuesRoom*len(c.ports)+i)
	}
	return room
}

// memory is what the UMEM of a port has to be like, for so many queues of its own.
func (c *card) memory(queues int) xsk.Config {
	cfg := memory(queues * len(c.ports))
	cfg.Queues = queues
	cfg.Node = c.cfg.node()
	if len(c.ports) > 1 { // what is at other dispatchers is missing from no ring
		cfg.FrameCount = cfg.WithDefaults().FrameCount + handover.AwayMax
	}
	return cfg
}

// checkQueues refuses fewer queues than there are ports, which would have nothing to receive from and to send by.
func (c *card) checkQueues(count, transmit int) error {
	if need := len(c.ports); count < need || transmit < int(c.cfg.Queue)+need {
		return fmt.Errorf("%w: %d dispatchers on %d of the queues of %s, from %d on, which has %d to send by; start fewer, or `ethtool -L %s` gives it more queues",
			ErrDispatchers, need, count, c.cfg.Interface, c.cfg.Queue, transmit, c.cfg.Interface)
	}
	return nil
}

// bound is the mode of the sockets, which all have the same.
func (c *card) bound() xsk.Mode { return c.ports[0].queues.bound() }

// setTransmit says how many transmit queues the interface has.
func (c *card) setTransmit(count int) {
	for _, p := range c.ports {
		p.queues.setTransmit(count)
	}
}

// setHops has the ports ask a mirror of the kernel's tables.
func (c *card) setHops(hops *neighbour.Table) {
	c.hops = hops
	for _, p := range c.ports {
		p.hop = hops.NewCache()
	}
}

// LocalAddr is the address that the program steers to us, of an interface with two the IPv4 one: see LocalAddrs.
func (c *card) LocalAddr() wire.Addr { return c.local.all()[0] }

// LocalAddrs are the addresses that the program steers to us: one, or one of each family. What is sent comes from that of its
// destination's family, so an answer comes from where the request was sent to.
func (c *card) LocalAddrs() []wire.Addr { return c.local.all() }

// PayloadMax is what fits into a packet of the interface's MTU; over IPv6, if the port has an IPv6 address.
func (c *card) PayloadMax() int { return c.payloadMax }

// Mode says how packets travel: interface, queues, native or generic XDP, copy or zero-copy, whose sockets if not ours, and what keeps it from
// being better where that was left open. It is for the user of all ports.
func (c *card) Mode() string {
	queues := &c.ports[0].queues
	text := fmt.Sprintf("AF_XDP on %s %s, %s XDP, %s mode", c.device.name, queuesText(c.ids()), c.device.xdp, queues.mode())
	if c.sockets != "" {
		text += ", sockets of " + c.sockets
	}
	if len(queues.open) == 0 {
		return text
	}
	return text + c.cfg.Mode.reason(c.device.xdp, queues.bound())
}

// Verdicts are the program's counters by reason.
func (c *card) Verdicts() ([]bpf.VerdictCount, error) {
	if c.program == nil {
		return nil, net.ErrClosed
	}
	return c.program.Verdicts()
}
