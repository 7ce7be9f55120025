//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/nic"
	"github.com/stillwater-rpc/stillwater/runtime/neighbour"
	"github.com/stillwater-rpc/stillwater/xsk"
)

const (
	// drainPatience bounds the wait for the packets on the rings of a queue that is given up. It is far above what they need, and only
	// a link that is down, which keeps what is to be sent, takes so long.
	drainPatience = 200 * time.Millisecond
	drainPause    = time.Millisecond
)

// drop gives up all that is bound to an interface that is gone: queues, program, neighbours. The UMEMs stay, with what the users have of them.
func (k *keeper) drop() error {
	if k.served() == 0 {
		return nil
	}
	var queues []*xsk.Queue
	program, hops := k.program, k.hops
	if !k.own(func() {
		for _, id := range k.ids() {
			queues = append(queues, k.portOf(id).queues.remove(id).(*xsk.Queue))
		}
	}) {
		return nil // the ports close it all
	}
	var errs []error
	for _, q := range queues {
		errs = append(errs, q.Unbind())
	}
	errs = append(errs, program.Close(), hops.Close())
	k.finally(func() {
		for _, q := range queues {
			q.Remove()
		}
	})
	return errors.Join(errs...)
}

// finally runs what must be done even if the port's user has stopped meanwhile. Nobody else touches the port then.
func (k *keeper) finally(f func()) {
	if !k.own(f) {
		f()
	}
}

// reopen makes all anew on an interface that has come back, under whatever index.
func (k *keeper) reopen(now nic.State) error {
	ids, err := k.cfg.ids(now.Channels)
	if err == nil {
		err = k.checkQueues(len(ids), now.Channels.Transmit())
	}
	if err != nil {
		return err
	}
	ids = ids[:min(len(ids), k.room())]
	return k.cfg.Mode.climb(func(sockets xsk.Mode) error { return k.reopenAs(now, ids, sockets) })
}

// reopenAs makes all anew with sockets of a mode. The program is attached before anything is exchanged: what it cannot steer yet goes through
// the kernel. Where another program is in the way, the sockets can send all the same, and attaching is tried again.
func (k *keeper) reopenAs(now nic.State, ids []uint32, sockets xsk.Mode) error {
	index := now.Index
	hops, err := neighbour.Open(index)
	if err != nil {
		return err
	}
	bound, err := k.bindEach(index, ids, sockets)
	if err != nil {
		return errors.Join(err, hops.Close())
	}
	program, err := k.cfg.program(k.ports[0].umem.PacketSizeMax())
	if err != nil {
		return errors.Join(err, hops.Close(), closeAll(bound...))
	}
	mode, attachErr := k.cfg.attach(program, index, k.cfg.Mode.program(bound[0][0].Mode()))
	if notToBeHad(attachErr) {
		return errors.Join(attachErr, hops.Close(), closeAll(bound...), program.Close())
	}
	done := k.own(func() {
		k.program = program
		k.setHops(hops)
		k.device.index, k.device.have, k.device.xdp = index, now.Channels.Receive(), mode
		k.setTransmit(now.Channels.Transmit())
		k.payloadMax = k.payloadFor(now.MTU)
		for i, p := range k.ports {
			err = errors.Join(err, p.adopt(k.share(ids, i), bound[i]))
		}
	})
	if !done {
		return errors.Join(hops.Close(), closeAll(bound...), program.Close())
	}
	return errors.Join(err, attachErr, k.steer())
}

// bindEach binds the sockets of each port. They have all the same mode.
func (c *card) bindEach(index int, ids []uint32, mode xsk.Mode) (all [][]*xsk.Bound, err error) {
	for i, p := range c.ports {
		bound, err := p.bindAll(index, c.share(ids, i), mode)
		if err != nil {
			return nil, errors.Join(err, closeAll(all...))
		}
		all = append(all, bound)
		mode = bound[0].Mode()
	}
	return all, nil
}

// bindAll binds a socket to each queue; they share one registration of the UMEM.
func (p *Port) bindAll(index int, ids []uint32, mode xsk.Mode) (bound []*xsk.Bound, err error) {
	for i, id := range ids {
		var b *xsk.Bound
		if i == 0 {
			b, err = p.own.Bind(index, id, mode)
		} else {
			b, err = bound[0].Share(index, id)
		}
		if err != nil {
			return nil, errors.Join(err, closeAll(bound))
		}
		bound = append(bound, b)
	}
	return bound, nil
}

func closeAll(all ...[]*xsk.Bound) error {
	var errs []error
	for _, b := range slices.Concat(all...) {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// adopt takes sockets into service. What cannot be taken is closed.
func (p *Port) adopt(ids []uint32, bound []*xsk.Bound) error {
	for i, b := range bound {
		q, err := p.own.Adopt(b)
		if err != nil {
			return errors.Join(err, closeAll(bound[i:]))
		}
		p.queues.add(ids[i], q)
	}
	return nil
}

// setQueues makes the ports serve so many queues, from the first one on.
func (k *keeper) setQueues(count int) error {
	if k.ports[0].own == nil {
		return fmt.Errorf("%w: sockets of %s", ErrOneQueue, k.sockets)
	}
	if room := k.room(); count < 1 || count > room || int(k.cfg.Queue)+count > k.device.have {
		return fmt.Errorf("%w: %d queues from number %d on: %s has %d, and this endpoint has room for %d",
			ErrNoQueue, count, k.cfg.Queue, k.device.name, k.device.have, room)
	}
	if err := k.checkQueues(count, k.ports[0].queues.transmit); err != nil {
		return err
	}
	if k.served() == 0 {
		return fmt.Errorf("%s is gone", k.device.name)
	}
	for i := range count {
		if err := k.addQueue(k.cfg.Queue + uint32(i)); err != nil {
			return err
		}
	}
	var beyond []uint32
	for _, p := range k.ports {
		beyond = append(beyond, p.queues.beyond(k.cfg.Queue+uint32(count))...)
	}
	return errors.Join(k.giveUp(beyond), k.register())
}

// addQueue gives a queue a socket, unless it has one.
func (k *keeper) addQueue(id uint32) error {
	p := k.portOf(id)
	if p.queues.has(id) {
		return nil
	}
	b, err := p.queues.open[0].(*xsk.Queue).Share(k.device.index, id)
	if err != nil {
		return err
	}
	if !k.own(func() { err = p.adopt([]uint32{id}, []*xsk.Bound{b}) }) {
		return b.Close()
	}
	return errors.Join(err, k.program.SetSocket(id, b.FD()))
}

// giveUp takes queues out of service: first the program leaves their packets to the kernel, then what is on their rings is handled, then they go.
func (k *keeper) giveUp(ids []uint32) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, k.program.ClearSocket(id))
		k.own(func() { k.portOf(id).queues.retire(id) })
	}
	for _, id := range ids {
		k.drain(id)
		var q *xsk.Queue
		if !k.own(func() { q = k.portOf(id).queues.remove(id).(*xsk.Queue) }) {
			return nil // the port closes it
		}
		errs = append(errs, q.Unbind())
		k.finally(q.Remove)
	}
	return errors.Join(errs...)
}

// drain waits until a queue's rings are empty, in two looks: a batch of the kernel's may still have been on its way at the first.
func (k *keeper) drain(id uint32) {
	empty := 0
	for until := time.Now().Add(drainPatience); empty < 2 && time.Now().Before(until); time.Sleep(drainPause) {
		if !k.own(func() {
			empty++
			if !k.portOf(id).queues.drained(id) {
				empty = 0
			}
		}) {
			return
		}
	}
}
