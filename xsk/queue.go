//go:build linux

package xsk

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// Queue is one AF_XDP socket on one NIC queue. It has one user at a time, without a lock; no method allocates except
// Statistics, Audit and Close.
type Queue struct {
	umem       []byte
	pool       *frame.Pool
	fill       producer[frame.Addr]
	completion consumer[frame.Addr]
	rx         consumer[frame.Desc]
	tx         producer[frame.Desc]
	wakeTx     func() unix.Errno
	wakeRx     func() unix.Errno

	fillLimit int        // frames that reception may hold: a full fill ring and a full RX ring
	txLimit   int        // frames that transmission may hold, so that TX and completion ring always have room
	start     frame.Addr // where a packet that we send starts in its frame
	fillShort bool       // the fill ring had room that the pool could not fill: try again without being asked
	mode      Mode
	losses    Losses
	socket    *socket // nil on plain memory
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
// Release. The fill ring is topped up before it returns, so that a slow caller does not starve reception.
func (q *Queue) Receive(batch []frame.Desc) int {
	granted := q.rx.available(uint32(len(batch)))
	if granted == 0 {
		if q.fillShort || q.fill.needWakeup() {
			q.Refill()
		}
		return 0
	}
	count := 0
	for range granted {
		desc := q.rx.get()
		if !q.pool.Contains(desc.Addr, desc.Len) || !q.pool.Move(desc.Addr, frame.Fill, frame.Rx) {
			q.losses.ReceiveInvalid++
			continue
		}
		batch[count] = desc
		count++
	}
	q.rx.release()
	q.Refill()
	return count
}

// Release gives received frames back to the pool. The bytes of the batch must not be used after it.
func (q *Queue) Release(batch []frame.Desc) {
	for i := range batch {
		q.pool.Move(batch[i].Addr, frame.Rx, frame.Free)
	}
}

// Refill tops the fill ring up from the pool and returns how many frames it added. Receive calls it whenever it is due;
// call it after Release only if no Receive follows soon.
func (q *Queue) Refill() int {
	room := q.fill.room(uint32(max(0, q.fillLimit-q.pool.Count(frame.Fill))))
	free := uint32(q.pool.Count(frame.Free))
	q.fillShort = room > free
	granted := min(room, free)
	for range granted {
		addr, _ := q.pool.Take(frame.Fill) // granted is at most what is free
		if q.mode == ModeZeroCopy {
			// A driver without metadata would leave the stamp of this frame's previous packet there.
			clear(q.umem[addr+q.start-2*stampSize:][:2*stampSize])
		}
		q.fill.put(addr)
	}
	if granted > 0 {
		q.fill.publish()
	}
	if q.fill.needWakeup() {
		q.wakeRx() // its errors (ENETDOWN, ENXIO) come back from the next kick, which reports them
	}
	return int(granted)
}

// Bytes returns a received packet, from the Ethernet header on: the UMEM itself, valid until Release.
func (q *Queue) Bytes(d frame.Desc) []byte {
	end := d.Addr + frame.Addr(d.Len)
	return q.umem[d.Addr:end:end]
}

// Stamp returns the metadata before a received packet: its arrival in nanoseconds of CLOCK_MONOTONIC if the XDP program
// stamped it, else 0. It is what the frame holds, so a caller that cannot trust the program must check it for sense.
func (q *Queue) Stamp(d frame.Desc) uint64 {
	return binary.NativeEndian.Uint64(q.umem[d.Addr-stampSize : d.Addr])
}

// PacketSizeMax returns the longest packet that a frame holds, received or sent.
func (q *Queue) PacketSizeMax() int { return q.pool.Size() - int(q.start) }

// Lend lends a frame to build a packet in: the address of its first byte, and its bytes, PacketSizeMax of them, with old
// contents. It must go to Submit or Drop. ok is false if the pool is empty or TxRingSize frames are lent or with
// the kernel already: kick, reclaim and try later.
func (q *Queue) Lend() (addr frame.Addr, packet []byte, ok bool) {
	if q.pool.Count(frame.Tx)+q.pool.Count(frame.Kernel) >= q.txLimit {
		return 0, nil, false
	}
	base, ok := q.pool.Take(frame.Tx)
	if !ok {
		return 0, nil, false
	}
	addr, end := base+q.start, base+frame.Addr(q.pool.Size())
	return addr, q.umem[addr:end:end], true
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
	// Lend keeps frames lent and sent below the ring's size, so room is only ever asked to look.
	if q.tx.room(1) == 0 || !q.pool.Move(d.Addr, frame.Tx, frame.Kernel) {
		q.losses.SendRefused++
		return false
	}
	q.tx.put(d)
	return true
}

// Drop gives a lent frame back unsent.
func (q *Queue) Drop(addr frame.Addr) { q.pool.Move(addr, frame.Tx, frame.Free) }

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
func (q *Queue) Outstanding() int { return q.pool.Count(frame.Kernel) }

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

// SocketError returns and clears the socket's pending error: ENETDOWN once, after the interface was deleted.
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

// Audit checks that every frame has exactly one owner.
func (q *Queue) Audit() error { return q.pool.Audit() }

// Frames returns how many frames an owner has.
func (q *Queue) Frames(owner frame.Owner) int { return q.pool.Count(owner) }

// Close unmaps the rings, closes the socket and unmaps the UMEM. The XDP program's map forgets the socket by itself.
// Only FD and Close may be called after it.
func (q *Queue) Close() error {
	if q.socket == nil {
		return nil
	}
	// No ring or byte of the mappings can be reached any more: a late use faults in Go, not in foreign memory.
	socket := q.socket
	*q = Queue{socket: socket, mode: q.mode}
	if err := socket.close(); err != nil {
		return fmt.Errorf("xsk: close: %w", err)
	}
	return nil
}
