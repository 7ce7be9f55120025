//go:build linux

package main

import (
	"errors"
	"fmt"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// ring is one arm: a socket on queue 0, at the grain that the measures need. An indirect call is paid per burst, by both.
type ring interface {
	fd() int
	// send copies the packet so many times and sends the copies with one kick. It returns how many it had frames for.
	send(packet []byte, count int) (int, error)
	// receive takes what there is, up to batchMax packets, reads the length of each, and gives their frames back.
	receive() int
	// waiting is how many packets are there.
	waiting() int
	// wait sleeps in poll(2) until a packet is there, or for a few milliseconds.
	wait() error
	// outstanding is how many frames the kernel has, after another look and another kick.
	outstanding() (int, error)
	close() error
}

// batchMax is how many packets are received at a time.
const batchMax = 64

// sleepMs is how long a wait sleeps at most, in milliseconds: what goes on without packets must still be noticed.
const sleepMs = 5

// The arms by their names in results and on the hidden command line.
const (
	armOwn    = "own"
	armAsavie = "asavie/xdp"        // as its examples use it
	armTuned  = "asavie/xdp, tuned" // spared what its interface makes slow where a careful user can spare it
)

// openRing opens an arm's socket on an interface of the calling thread's network namespace.
func openRing(arm string, ifindex int) (ring, error) {
	cfg := xsk.Config{Interface: ifindex, Mode: xsk.ModeCopy}.WithDefaults()
	switch arm {
	case armOwn:
		q, err := xsk.Open(cfg)
		if err != nil {
			return nil, err
		}
		return &ownRing{
			queue: q, batch: make([]frame.Desc, batchMax), poll: []unix.PollFd{{Fd: int32(q.FD()), Events: unix.POLLIN}},
		}, nil
	case armAsavie, armTuned:
		return openAsavie(&cfg, arm == armTuned)
	}
	return nil, fmt.Errorf("no rings %q", arm)
}

// ownRing is package xsk.
type ownRing struct {
	queue    *xsk.Queue
	batch    []frame.Desc
	poll     []unix.PollFd
	received int // bytes
}

func (r *ownRing) fd() int { return r.queue.FD() }

func (r *ownRing) send(packet []byte, count int) (sent int, err error) {
	for range count {
		addr, room, ok := r.queue.Lend()
		if !ok {
			break
		}
		copy(room, packet)
		if !r.queue.Submit(frame.Desc{Addr: addr, Len: uint32(len(packet))}) {
			return sent, errors.New("a good packet was refused")
		}
		sent++
	}
	return sent, r.queue.Kick()
}

func (r *ownRing) receive() int {
	n := r.queue.Receive(r.batch)
	for _, d := range r.batch[:n] {
		r.received += len(r.queue.Bytes(d))
	}
	r.queue.Release(r.batch[:n])
	return n
}

func (r *ownRing) waiting() int { return r.queue.Received() }

func (r *ownRing) wait() error {
	if _, err := unix.Poll(r.poll, sleepMs); err != nil && err != unix.EINTR { // the Go runtime interrupts by SIGURG
		return fmt.Errorf("poll: %w", err)
	}
	return nil
}

func (r *ownRing) outstanding() (int, error) {
	err := r.queue.Kick()
	return r.queue.Outstanding(), err
}

func (r *ownRing) close() error { return errors.Join(r.queue.Audit(), r.queue.Close()) }

// asavieRing is asavie/xdp. Its examples ask for as many free frames as the ring has places, for which it looks at all frames from the first
// one on. Tuned, the fill ring has the last frames, and received ones go straight back, so that it finds what is asked for at once.
type asavieRing struct {
	socket   *xdp.Socket
	tuned    bool
	received int // bytes
}

func openAsavie(cfg *xsk.Config, tuned bool) (*asavieRing, error) {
	socket, err := xdp.NewSocket(cfg.Interface, int(cfg.QueueID), &xdp.SocketOptions{
		NumFrames: cfg.FrameCount, FrameSize: cfg.FrameSizeBytes,
		FillRingNumDescs: cfg.FillRingSize, CompletionRingNumDescs: cfg.CompletionRingSize,
		RxRingNumDescs: cfg.RxRingSize, TxRingNumDescs: cfg.TxRingSize,
	})
	if err != nil {
		return nil, err
	}
	r := &asavieRing{socket: socket, tuned: tuned}
	if all := socket.GetDescs(cfg.FrameCount); tuned {
		socket.Fill(all[len(all)-cfg.FillRingSize:])
	} else {
		r.refill()
	}
	return r, nil
}

func (r *asavieRing) fd() int { return r.socket.FD() }

func (r *asavieRing) send(packet []byte, count int) (int, error) {
	room := r.socket.NumFreeTxSlots()
	if r.tuned {
		room = min(room, count)
	}
	descs := r.socket.GetDescs(room)
	descs = descs[:min(len(descs), count)]
	for i := range descs {
		descs[i].Len = uint32(copy(r.socket.GetFrame(descs[i]), packet))
	}
	sent := r.socket.Transmit(descs) // panics on a fault: the child dies of it, and its last words say of what
	r.complete()
	return sent, nil
}

func (r *asavieRing) complete() {
	if n := r.socket.NumCompleted(); n > 0 {
		r.socket.Complete(n)
	}
}

func (r *asavieRing) receive() int {
	n := min(r.socket.NumReceived(), batchMax)
	if n == 0 {
		return 0
	}
	descs := r.socket.Receive(n)
	for _, d := range descs {
		r.received += len(r.socket.GetFrame(d))
	}
	if r.tuned {
		r.socket.Fill(descs)
	} else {
		r.refill()
	}
	return n
}

func (r *asavieRing) refill() { r.socket.Fill(r.socket.GetDescs(r.socket.NumFreeFillSlots())) }

func (r *asavieRing) waiting() int { return r.socket.NumReceived() }

func (r *asavieRing) wait() error {
	_, _, err := r.socket.Poll(sleepMs)
	return err
}

func (r *asavieRing) outstanding() (int, error) {
	r.complete()
	if r.socket.NumTransmitted() > 0 {
		r.socket.Transmit(nil)
		r.complete()
	}
	return r.socket.NumTransmitted(), nil
}

func (r *asavieRing) close() error { return r.socket.Close() }
