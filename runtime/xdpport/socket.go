//go:build linux

package xdpport

import (
	"errors"
	"fmt"

	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// ErrOneQueue says that sockets of another implementation serve one queue, and more were asked for.
var ErrOneQueue = errors.New("one queue only")

// Sockets is another implementation of AF_XDP sockets than package xsk. It serves one queue, and the queue is not opened anew while the port is
// open. What the methods of a socket must do is said by package xsk/xsktest/contract, whose cases hold an implementation to it.
type Sockets struct {
	Name string // for [Port.Mode] and errors
	// Open opens a socket on a queue, with frames of its own, in the network namespace of the calling thread.
	Open func(xsk.Config) (Socket, error)
}

// Socket is the socket of one queue, with its frames.
type Socket interface {
	frames
	rings
}

// frames is the memory that packets are in: a *xsk.UMEM that several queues share, or a Socket that has it to itself.
type frames interface {
	Release(batch []frame.Desc)
	Bytes(d frame.Desc) []byte
	Stamp(d frame.Desc) uint64
	PacketSizeMax() int
	Lend() (addr frame.Addr, packet []byte, ok bool)
	Drop(addr frame.Addr)
	Frames(owner frame.Owner) int
	Audit() error
	Close() error
}

// rings is one queue: a *xsk.Queue, or a Socket. Closing a Socket twice is closing it once.
type rings interface {
	Receive(batch []frame.Desc) int
	Submit(d frame.Desc) bool
	Room() bool
	Kick() error
	Reclaim() int
	Statistics() (xsk.Statistics, error)
	FD() int
	Mode() string
	Close() error
}

// open opens the one queue, and attaches the program. What is bound cannot be bound once more, so of auto the socket makes the choice.
func (s *Sockets) open(p *Port, ids []uint32) error {
	if len(p.ports) != 1 {
		return fmt.Errorf("%w: sockets of %s, so one dispatcher", ErrOneQueue, s.Name)
	}
	if len(ids) != 1 {
		return fmt.Errorf("%w: sockets of %s, and %s has %d queues: choose one of them, the others go through the kernel",
			ErrOneQueue, s.Name, p.device.name, len(ids))
	}
	cfg := memory(1)
	cfg.Interface, cfg.QueueID = p.device.index, ids[0]
	if allowed := p.cfg.Mode.sockets(); len(allowed) == 1 {
		cfg.Mode = allowed[0]
	}
	socket, err := s.Open(cfg)
	if err != nil {
		return err
	}
	p.umem = socket
	p.queues.add(ids[0], socket)
	p.sockets = s.Name
	return p.openProgram()
}
