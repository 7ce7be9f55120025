//go:build linux

package xdpport

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// queues are the XSKs of a port, which share one UMEM: any of them may bring a packet of any flow, and any may send it.
type queues struct {
	open []rings       // each a *xsk.Queue, unless the sockets are of another implementation
	ids  []uint32      // of the interface's queues, beside open
	poll []unix.PollFd // beside open, with room for polledBeside more
	// sending are those of open that packets leave by: a socket on a queue without a transmit queue of that number keeps what it is given
	// for ever (net/xdp/xsk.c, __xsk_generic_xmit).
	sending  []rings
	transmit int                  // the interface's transmit queues
	retired  []uint32             // will be given up
	gone     dispatcher.PortStats // what the kernel counted for sockets that are closed
	next     int                  // in open, of the first to be asked by the next receive
}

// polledBeside the queues are the kernel's sockets, one of a family, and the eventfd that wakes.
const polledBeside = 3

// add takes a queue into service.
func (s *queues) add(id uint32, q rings) {
	s.open, s.ids = append(s.open, q), append(s.ids, id)
	s.rebuild()
}

// retire keeps a queue from being sent by; what it brings is taken all the same.
func (s *queues) retire(id uint32) {
	s.retired = append(s.retired, id)
	s.rebuild()
}

// setTransmit says how many transmit queues the interface has.
func (s *queues) setTransmit(count int) {
	s.transmit = count
	s.rebuild()
}

// drained reports whether nothing is on a queue's rings.
func (s *queues) drained(id uint32) bool {
	i := slices.Index(s.ids, id)
	if i < 0 {
		return true
	}
	q, ok := s.open[i].(*xsk.Queue)
	return !ok || q.Received()+q.Outstanding() == 0
}

// remove takes a queue out of service. What it counted stays in the statistics.
func (s *queues) remove(id uint32) rings {
	i := slices.Index(s.ids, id)
	q := s.open[i]
	count(&s.gone, q)
	s.retired = slices.DeleteFunc(s.retired, func(other uint32) bool { return other == id })
	s.open, s.ids = slices.Delete(s.open, i, i+1), slices.Delete(s.ids, i, i+1)
	s.rebuild()
	return q
}

func (s *queues) has(id uint32) bool { return slices.Contains(s.ids, id) }

// beyond are the queues from a number on.
func (s *queues) beyond(id uint32) (ids []uint32) {
	for _, have := range s.ids {
		if have >= id {
			ids = append(ids, have)
		}
	}
	return ids
}

// rebuild makes what follows from the open queues.
func (s *queues) rebuild() {
	s.next = 0
	s.poll = make([]unix.PollFd, len(s.open), len(s.open)+polledBeside)
	s.sending = nil
	for i, q := range s.open {
		if int(s.ids[i]) < s.transmit && !slices.Contains(s.retired, s.ids[i]) {
			s.sending = append(s.sending, q)
		}
		s.poll[i] = unix.PollFd{Fd: int32(q.FD()), Events: unix.POLLIN}
	}
}

// receive takes packets off all RX rings, beginning with another queue each time, so that none starves behind a busy one.
func (s *queues) receive(batch []frame.Desc) (taken int) {
	n := len(s.open)
	for i := range n {
		at := s.next + i
		if at >= n {
			at -= n
		}
		taken += s.open[at].Receive(batch[taken:])
	}
	if s.next++; s.next >= n {
		s.next = 0
	}
	return taken
}

// to is the queue that packets to a peer leave by: always the same one while it has room, so that they stay in order. It is nil when no
// queue has room, or there is none.
func (s *queues) to(peer *wire.Addr) rings {
	n := len(s.sending)
	if n == 0 {
		return nil
	}
	at := 0
	if n > 1 {
		at = int(hash(peer) % uint32(n))
	}
	for range n {
		if q := s.sending[at]; q.Room() {
			return q
		}
		if at++; at == n {
			at = 0
		}
	}
	return nil
}

// hash spreads peers: multiplicative, of the last bytes of the address and the port.
func hash(peer *wire.Addr) uint32 {
	const golden = 0x9e3779b1 // 2^32 divided by the golden ratio
	h := (binary.BigEndian.Uint32(peer.IP[12:]) ^ binary.BigEndian.Uint32(peer.IP[8:])) * golden
	return (h^uint32(peer.Port))*golden>>16 ^ h>>24
}

// kick has the kernel send what is on the TX rings. What it refuses to, since the link is down or the device gone, is the keeper's business.
func (s *queues) kick() {
	for _, q := range s.open {
		_ = q.Kick()
	}
}

func (s *queues) reclaim() {
	for _, q := range s.open {
		q.Reclaim()
	}
}

// statistics adds what the kernel counts.
func (s *queues) statistics(to *dispatcher.PortStats) {
	to.ReceiveDropped += s.gone.ReceiveDropped
	to.SendDropped += s.gone.SendDropped
	for _, q := range s.open {
		count(to, q)
	}
}

func count(to *dispatcher.PortStats, q rings) {
	if kernel, err := q.Statistics(); err == nil {
		to.ReceiveDropped += kernel.RxDropped + kernel.RxRingFull + kernel.ReceiveInvalid
		to.SendDropped += kernel.SendDropped
	}
}

// mode is copy or zero-copy: those that share a UMEM have the same.
func (s *queues) mode() string {
	if len(s.open) == 0 {
		return "no"
	}
	return s.open[0].Mode()
}

// bound is the same as a value, of sockets that are open.
func (s *queues) bound() xsk.Mode {
	if s.mode() == xsk.ModeZeroCopy.String() {
		return xsk.ModeZeroCopy
	}
	return xsk.ModeCopy
}

// queuesText names queues: "queue 0", "queues 0-3", "queues 0,2".
func queuesText(ids []uint32) string {
	slices.Sort(ids)
	switch n := len(ids); {
	case n == 0:
		return "without a queue"
	case n == 1:
		return fmt.Sprintf("queue %d", ids[0])
	case ids[n-1]-ids[0] == uint32(n-1):
		return fmt.Sprintf("queues %d-%d", ids[0], ids[n-1])
	}
	text := "queues "
	for i, id := range ids {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(id)
	}
	return text
}
