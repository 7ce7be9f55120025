//go:build linux

package xdpport

import (
	"errors"
	"fmt"
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

// drop gives up all that is bound to an interface that is gone: queues, program, neighbours. The UMEM stays, with what the user has of it.
func (k *keeper) drop() error {
	p := k.port
	if len(p.queues.ids) == 0 {
		return nil
	}
	var queues []*xsk.Queue
	program, hops := p.program, p.hops
	if !k.own(func() {
		for len(p.queues.ids) > 0 {
			queues = append(queues, p.queues.remove(p.queues.ids[0]).(*xsk.Queue))
		}
	}) {
		return nil // the port closes it all
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
	ids, err := k.port.cfg.ids(now.Channels)
	if err != nil {
		return err
	}
	ids = ids[:min(len(ids), k.port.queuesRoom)]
	return k.port.cfg.Mode.climb(func(sockets xsk.Mode) error { return k.reopenAs(now, ids, sockets) })
}

// reopenAs makes all anew with sockets of a mode. The program is attached before anything is exchanged: what it cannot steer yet goes through
// the kernel. Where another program is in the way, the sockets can send all the same, and attaching is tried again.
func (k *keeper) reopenAs(now nic.State, ids []uint32, sockets xsk.Mode) error {
	p, index := k.port, now.Index
	hops, err := neighbour.Open(index)
	if err != nil {
		return err
	}
	bound, err := p.bindAll(index, ids, sockets)
	if err != nil {
		return errors.Join(err, hops.Close())
	}
	program, err := p.cfg.program(p.umem.PacketSizeMax())
	if err != nil {
		return errors.Join(err, hops.Close(), closeAll(bound))
	}
	mode, attachErr := p.cfg.attach(program, index, p.cfg.Mode.program(bound[0].Mode()))
	if notToBeHad(attachErr) {
		return errors.Join(attachErr, hops.Close(), closeAll(bound), program.Close())
	}
	done := k.own(func() {
		p.program, p.hops, p.hop = program, hops, hops.NewCache()
		p.device.index, p.device.have, p.queues.transmit = index, now.Channels.Receive(), now.Channels.Transmit()
		p.device.xdp = mode
		p.payloadMax = p.payloadFor(now.MTU)
		err = p.adopt(ids, bound)
	})
	if !done {
		return errors.Join(hops.Close(), closeAll(bound), program.Close())
	}
	return errors.Join(err, attachErr, p.steer())
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

func closeAll(bound []*xsk.Bound) error {
	var errs []error
	for _, b := range bound {
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

// setQueues makes the port serve so many queues, from its first one on.
func (k *keeper) setQueues(count int) error {
	p := k.port
	if p.own == nil {
		return fmt.Errorf("%w: sockets of %s", ErrOneQueue, p.sockets)
	}
	if count < 1 || count > p.queuesRoom || int(p.cfg.Queue)+count > p.device.have {
		return fmt.Errorf("%w: %d queues from number %d on: %s has %d, and this port has room for %d",
			ErrNoQueue, count, p.cfg.Queue, p.device.name, p.device.have, p.queuesRoom)
	}
	if len(p.queues.ids) == 0 {
		return fmt.Errorf("%s is gone", p.device.name)
	}
	first := p.queues.open[0].(*xsk.Queue)
	for i := range count {
		id := p.cfg.Queue + uint32(i)
		if p.queues.has(id) {
			continue
		}
		b, err := first.Share(p.device.index, id)
		if err != nil {
			return err
		}
		if !k.own(func() { err = p.adopt([]uint32{id}, []*xsk.Bound{b}) }) {
			return b.Close()
		}
		if err = errors.Join(err, p.program.SetSocket(id, b.FD())); err != nil {
			return err
		}
	}
	return errors.Join(k.giveUp(p.queues.beyond(p.cfg.Queue+uint32(count))), p.register())
}

// giveUp takes queues out of service: first the program leaves their packets to the kernel, then what is on their rings is handled, then they go.
func (k *keeper) giveUp(ids []uint32) error {
	p := k.port
	var errs []error
	for _, id := range ids {
		errs = append(errs, p.program.ClearSocket(id))
		k.own(func() { p.queues.retire(id) })
	}
	for _, id := range ids {
		k.drain(id)
		var q *xsk.Queue
		if !k.own(func() { q = p.queues.remove(id).(*xsk.Queue) }) {
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
			if !k.port.queues.drained(id) {
				empty = 0
			}
		}) {
			return
		}
	}
}
