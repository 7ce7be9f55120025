//go:build linux

package xsk

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// Queue is one AF_XDP socket on one NIC queue, with the UMEM that it shares with others or has to itself. It has one user at a time,
// the same as its UMEM, without a lock; no method allocates except Statistics, Audit and Close.
type Queue struct {
	*UMEM
	holder     frame.Holder
	fill       producer[frame.Addr]
	completion consumer[frame.Addr]
	rx         consumer[frame.Desc]
	tx         producer[frame.Desc]
	wakeTx     func() unix.Errno
	wakeRx     func() unix.Errno

	fillLimit int  // frames that reception may hold: a full fill ring and a full RX ring
	txLimit   int  // frames that transmission may hold, so that TX and completion ring always have room
	fillShort bool // the fill ring had room that the pool could not fill: try again without being asked
	spent     int  // frames received since the fill ring was topped up
	spentMax  int  // that many make it due again
	mode      Mode
	losses    Losses
	socket    *socket // nil on plain memory
	owns      bool    // the UMEM goes with the queue
}

// Losses counts what this end of the rings saw go wrong. Each is zero in a sane world, but SendDropped.
type Losses struct {
	SendDropped     uint64 // kicks that answered EBUSY: the kernel completed a packet and dropped it
	SendRefused     uint64 // descriptors that Submit refused
	ReceiveInvalid  uint64 // descriptors on the RX ring that name no frame of the kernel's
	CompleteInvalid uint64 // addresses on the completion ring that name no frame of the kernel's
}

// Statistics is the kernel's struct xdp_statistics and our own Losses.
type Statistics struct {
	RxDropped           uint64 // no room in a frame, or other reasons
	RxInvalidDescs      uint64 // bad addresses on the fill ring
	TxInvalidDescs      uint64 // bad descriptors on the TX ring
	RxRingFull          uint64 // we were too slow
	RxFillRingEmptyDesc uint64 // we were too slow to refill
	TxRingEmptyDescs    uint64 // the kernel found nothing to send; harmless
	Losses
}

// Receive takes up to len(batch) packets off the RX ring and returns how many. Their frames are the caller's until
// Release. Before it returns, the fill ring is topped up if a sixteenth of it is missing, so that a slow caller does not starve reception, and
// a quick one does not pay for each packet what the kernel need not know yet.
func (q *Queue) Receive(batch []frame.Desc) int {
	granted := q.rx.available(uint32(len(batch)))
	if granted == 0 {
		q.refillIfDue()
		return 0
	}
	batch = batch[:granted]
	q.rx.getAll(batch)
	if !q.pool.ContainsAll(batch) {
		batch = slices.DeleteFunc(batch, func(d frame.Desc) bool { return !q.pool.Contains(d.Addr, d.Len) })
	}
	count := q.pool.MoveAll(batch, frame.Fill, frame.Rx)
	q.losses.ReceiveInvalid += uint64(int(granted) - count)
	q.rx.release()
	q.spent += int(granted)
	q.refillIfDue()
	return count
}

func (q *Queue) refillIfDue() {
	if q.spent >= q.spentMax || q.fillShort || q.fill.needWakeup() {
		q.Refill()
	}
}

// Refill tops the fill ring up from the pool and returns how many frames it added. Receive calls it whenever it is due;
// call it after Release only if no Receive follows soon.
func (q *Queue) Refill() int {
	room := q.fill.room(uint32(max(0, q.fillLimit-q.pool.Held(q.holder, frame.Fill))))
	free := uint32(q.pool.Count(frame.Free))
	q.spent = 0
	q.fillShort = room > free
	granted := min(room, free)
	if granted > 0 {
		taken := q.pool.TakeAll(int(granted), frame.Fill, q.holder)
		if q.mode == ModeZeroCopy {
			// A driver without metadata would leave the stamps of these frames' previous packets there.
			for _, addr := range taken {
				clear(q.memory[addr+q.start-2*stampSize:][:2*stampSize])
			}
		}
		q.fill.putAll(taken)
		q.fill.publish()
	}
	if q.fill.needWakeup() {
		q.wakeRx() // its errors (ENETDOWN, ENXIO) come back from the next kick, which reports them
	}
	return int(granted)
}

// Submit puts a packet in a lent frame on the TX ring; Kick sends it. A descriptor that the kernel would find invalid
// (empty, or across frames) is refused, and so is a frame that was not lent; the former is dropped. Both are counted, since
// the kernel would lose the frame without a word.
func (q *Queue) Submit(d frame.Desc) bool {
	if d.Len == 0 || !q.pool.Contains(d.Addr, d.Len) || d.Options != 0 {
		q.losses.SendRefused++
		q.pool.Move(d.Addr, frame.Tx, frame.Free)
		return false
	}
	// Lend keeps frames lent and sent below the rings' sizes, so with one queue room is only ever asked to look.
	if !q.Room() || q.tx.room(1) == 0 || !q.pool.MoveOn(d.Addr, frame.Tx, frame.Kernel, q.holder) {
		q.losses.SendRefused++
		return false
	}
	q.tx.put(d)
	return true
}

// Room reports whether one more packet may be submitted. Of several queues on a UMEM, one always has room for a frame that was lent.
func (q *Queue) Room() bool { return q.pool.Held(q.holder, frame.Kernel) < q.txLimit }

// Received returns how many packets wait on the RX ring.
func (q *Queue) Received() int { return int(q.rx.available(uint32(len(q.rx.shared.Entries)))) }

// Reclaim takes sent frames off the completion ring back to the pool and returns how many.
func (q *Queue) Reclaim() int {
	count := 0
	for {
		granted := q.completion.available(uint32(q.txLimit))
		if granted == 0 {
			return count
		}
		for range granted {
			if q.pool.Move(q.completion.get(), frame.Kernel, frame.Free) {
				count++
			} else {
				q.losses.CompleteInvalid++
			}
		}
		q.completion.release()
	}
}

// Outstanding returns how many sent frames the kernel still has. While it is not zero, kick again now and then.
func (q *Queue) Outstanding() int { return q.pool.Held(q.holder, frame.Kernel) }

// Statistics asks the kernel for its counters.
func (q *Queue) Statistics() (Statistics, error) {
	if q.socket == nil {
		return Statistics{Losses: q.losses}, nil
	}
	var kernel kernelStatistics
	if err := getOption(q.socket.fd, unix.XDP_STATISTICS, &kernel); err != nil {
		return Statistics{}, fmt.Errorf("xsk: read the statistics: %w", err)
	}
	return Statistics{
		RxDropped:           kernel.Rx_dropped,
		RxInvalidDescs:      kernel.Rx_invalid_descs,
		TxInvalidDescs:      kernel.Tx_invalid_descs,
		RxRingFull:          kernel.Rx_ring_full,
		RxFillRingEmptyDesc: kernel.Rx_fill_ring_empty_descs,
		TxRingEmptyDescs:    kernel.Tx_ring_empty_descs,
		Losses:              q.losses,
	}, nil
}

// SocketError returns and clears the socket's pending error: ENETDOWN once, after the interface was deleted or moved to another namespace
// (net/xdp/xsk.c, xsk_notifier). It may be called from any goroutine while the queue is open.
func (q *Queue) SocketError() error {
	if q.socket == nil {
		return nil
	}
	errno, err := unix.GetsockoptInt(q.socket.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return fmt.Errorf("xsk: read the socket's error: %w", err)
	}
	if errno != 0 {
		return fmt.Errorf("xsk: socket: %w", unix.Errno(errno))
	}
	return nil
}

// FD returns the socket, for poll and for the XDP program's map; -1 on plain memory or once closed.
func (q *Queue) FD() int {
	if q.socket == nil {
		return -1
	}
	return q.socket.fd
}

// Mode returns the mode in use: "copy" or "zero-copy".
func (q *Queue) Mode() string { return q.mode.String() }

// Unbind unmaps the rings and closes the socket; the XDP program's map forgets it by itself. It takes milliseconds, so it may be called
// from any goroutine, once the queue's user uses it no more; nothing may be called after it but Remove, by that user.
func (q *Queue) Unbind() error {
	if q.socket == nil {
		return nil
	}
	if err := q.socket.close(); err != nil {
		return fmt.Errorf("xsk: close: %w", err)
	}
	return nil
}

// Remove gives the frames that an unbound queue's rings held back to the UMEM, and takes the queue off it.
func (q *Queue) Remove() {
	if q.UMEM == nil {
		return
	}
	q.remove(q)
	// No ring or byte of the mappings can be reached any more: a late use faults in Go, not in foreign memory.
	*q = Queue{socket: q.socket, mode: q.mode}
}

// Close is Unbind and Remove. The UMEM is closed as well if [Open] made it.
func (q *Queue) Close() error {
	umem, owns := q.UMEM, q.owns
	err := q.Unbind()
	q.Remove()
	if owns {
		err = errors.Join(err, umem.Close())
	}
	return err
}
