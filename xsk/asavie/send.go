//go:build linux

package asavie

import (
	"fmt"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// Submit takes a packet in a lent frame, to be sent by the next Kick: asavie/xdp has no call to put it on the TX ring alone. What the kernel
// would find invalid is refused and counted.
func (q *Queue) Submit(d frame.Desc) bool {
	if d.Len == 0 || !q.pool.Contains(d.Addr, d.Len) || d.Options != 0 {
		q.losses.SendRefused++
		q.pool.Move(d.Addr, frame.Tx, frame.Free)
		return false
	}
	if !q.Room() || !q.pool.Move(d.Addr, frame.Tx, frame.Kernel) {
		q.losses.SendRefused++
		return false
	}
	q.pending = append(q.pending, xdp.Desc{Addr: uint64(d.Addr), Len: d.Len})
	q.waits[q.number(uint64(d.Addr))] = true
	return true
}

// number is that of the frame around an address.
func (q *Queue) number(addr uint64) int { return int(addr / uint64(q.pool.Size())) }

// Room reports whether one more packet may be submitted.
func (q *Queue) Room() bool { return q.Outstanding() < q.txLimit }

// Outstanding returns how many sent frames the kernel still has, or will have at the next kick.
func (q *Queue) Outstanding() int { return q.pool.Count(frame.Kernel) - q.unsettled }

// Kick puts the submitted packets on the TX ring and has the kernel send them until the ring is empty or no more progress is made: one call
// carries 32 packets in copy mode. Packets that stay are sent by a later kick. [xsk.ErrLinkDown] and [xsk.ErrDeviceGone] are errors as with
// package xsk; losses are not seen.
func (q *Queue) Kick() error {
	// Each round sends up to a batch or gives up, so that this bound is met only by a kernel that sends by ones.
	for range q.txLimit {
		unread := q.unread()
		if unread == 0 && len(q.pending) == 0 {
			break
		}
		fresh := len(q.pending) > 0
		reclaimed := q.Reclaim()
		if err := q.transmit(); err != nil {
			return err
		}
		if !fresh && q.unread() == unread && reclaimed == 0 {
			break // no buffers, or no room: whoever holds them needs time, not calls
		}
	}
	q.Reclaim()
	return nil
}

// unread returns how many descriptors on the TX ring the kernel has not taken yet.
func (q *Queue) unread() int { return q.txLimit - q.socket.NumFreeTxSlots() }

// transmit hands the pending packets to asavie/xdp, which makes one call of sendto, with or without any.
func (q *Queue) transmit() (err error) {
	before := q.socket.NumTransmitted()
	defer func() {
		cause := recover()
		// It panics after it has put them on the ring, so what it has taken is counted, not what it returns.
		q.handedOver(q.socket.NumTransmitted() - before)
		if cause != nil {
			err = kickError(cause)
		}
	}()
	q.socket.Transmit(q.pending)
	return nil
}

// handedOver forgets the first pending packets, which are on the TX ring.
func (q *Queue) handedOver(count int) {
	for _, d := range q.pending[:count] {
		q.waits[q.number(d.Addr)] = false
	}
	q.pending = append(q.pending[:0], q.pending[count:]...)
}

// kickError makes an error of what asavie/xdp panicked with: the number of the errno stands in its text alone. Any other panic goes on.
func kickError(cause any) error {
	var answer uintptr
	var errno unix.Errno
	if text, ok := cause.(error); !ok {
		panic(cause)
	} else if n, _ := fmt.Sscanf(text.Error(), "sendto failed with rc=%d and errno=%d", &answer, &errno); n != 2 {
		panic(cause)
	}
	switch errno {
	case unix.ENOBUFS: // no memory for a socket buffer just now
		return nil
	case unix.ENETDOWN:
		return fmt.Errorf("asavie: %w (set it up; packets on the ring leave then): %w", xsk.ErrLinkDown, errno)
	case unix.ENXIO:
		return fmt.Errorf("asavie: %w (open it in a new process when it is back): %w", xsk.ErrDeviceGone, errno)
	}
	return fmt.Errorf("asavie: %w: %w", xsk.ErrKick, errno)
}

// Reclaim takes sent frames off the completion ring and returns how many.
func (q *Queue) Reclaim() int {
	count := q.socket.NumCompleted()
	if count > 0 {
		q.socket.Complete(count)
		q.unsettled += count
	}
	return count
}

// settle finds the frames that were sent: those that we book as the kernel's and asavie/xdp as free. Packets that it was not given yet are
// both as well, and wait. Each scan looks at all frames, so it is made when nothing else is free.
func (q *Queue) settle() {
	if q.unsettled == 0 {
		return
	}
	for _, d := range q.socket.GetDescs(q.pool.Total()) {
		addr := frame.Addr(d.Addr)
		if owner, _ := q.pool.Owner(addr); owner == frame.Kernel && !q.waits[q.number(d.Addr)] {
			q.pool.Move(addr, frame.Kernel, frame.Free)
			q.unsettled--
		}
	}
}
