//go:build linux

package asavie

import (
	"encoding/binary"
	"fmt"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// Queue is one socket of asavie/xdp on one NIC queue, with frames of its own. It has one user at a time, without a lock; no method allocates
// except Statistics, Audit, Close, and a kick that fails. Its methods do what those of [xsk.Queue] do, unless they say otherwise.
//
// Who owns a frame is written in books of our own: to asavie/xdp a frame is free as soon as it is received, so its own would lend
// out what the caller still reads.
type Queue struct {
	socket   *xdp.Socket // nil once closed
	pool     *frame.Pool
	start    frame.Addr // where a packet that we send starts in its frame
	zeroCopy bool

	fillLimit int        // frames that reception may hold: a full fill ring and a full RX ring
	txLimit   int        // frames that transmission may hold: a full TX ring
	fillShort bool       // the fill ring had room that the pool could not fill
	scratch   []xdp.Desc // for Refill
	pending   []xdp.Desc // submitted, and not on the TX ring yet
	waits     []bool     // by frame number: in pending
	unsettled int        // frames that were sent, and that the pool still books as the kernel's: which they are is not known yet
	losses    xsk.Losses
}

func newQueue(cfg *xsk.Config, socket *xdp.Socket, pool *frame.Pool, zeroCopy bool) *Queue {
	q := &Queue{
		socket: socket, pool: pool, start: unix.XDP_PACKET_HEADROOM + stampSize, zeroCopy: zeroCopy,
		fillLimit: cfg.FillRingSize + cfg.RxRingSize, txLimit: cfg.TxRingSize,
		scratch: make([]xdp.Desc, 0, cfg.FillRingSize), pending: make([]xdp.Desc, 0, cfg.TxRingSize),
		waits: make([]bool, cfg.FrameCount),
	}
	q.Refill()
	return q
}

// Receive takes up to len(batch) packets off the RX ring and returns how many. Their frames are the caller's until
// Release. The fill ring is topped up before it returns.
func (q *Queue) Receive(batch []frame.Desc) int {
	if len(batch) == 0 || q.socket.NumReceived() == 0 {
		if q.fillShort {
			q.Refill()
		}
		return 0
	}
	count := 0
	for _, d := range q.socket.Receive(len(batch)) {
		desc := frame.Desc{Addr: frame.Addr(d.Addr), Len: d.Len, Options: d.Options}
		if !q.pool.Contains(desc.Addr, desc.Len) || !q.pool.Move(desc.Addr, frame.Fill, frame.Rx) {
			q.losses.ReceiveInvalid++
			continue
		}
		batch[count] = desc
		count++
	}
	q.Refill()
	return count
}

// Refill tops the fill ring up from the pool and returns how many frames it added.
func (q *Queue) Refill() int {
	room := min(q.socket.NumFreeFillSlots(), q.fillLimit-q.pool.Count(frame.Fill))
	if q.pool.Count(frame.Free) < room {
		q.settle()
	}
	q.scratch = q.scratch[:0]
	for len(q.scratch) < room {
		addr, ok := q.pool.Take(frame.Fill, 0)
		if !ok {
			break
		}
		if q.zeroCopy {
			// A driver without metadata would leave the stamp of this frame's previous packet there.
			clear(q.bytes(addr+q.start-2*stampSize, 2*stampSize))
		}
		q.scratch = append(q.scratch, xdp.Desc{Addr: uint64(addr)})
	}
	q.fillShort = len(q.scratch) < room
	return q.socket.Fill(q.scratch)
}

// Release gives received frames back to the pool. The bytes of the batch must not be used after it.
func (q *Queue) Release(batch []frame.Desc) {
	for i := range batch {
		q.pool.Move(batch[i].Addr, frame.Rx, frame.Free)
	}
}

// Bytes returns a packet: the UMEM itself, valid until Release.
func (q *Queue) Bytes(d frame.Desc) []byte { return q.bytes(d.Addr, d.Len) }

func (q *Queue) bytes(addr frame.Addr, length uint32) []byte {
	packet := q.socket.GetFrame(xdp.Desc{Addr: uint64(addr), Len: length})
	return packet[:length:length]
}

// Stamp returns the 8 bytes before a received packet, where the XDP program wrote its arrival.
func (q *Queue) Stamp(d frame.Desc) uint64 {
	return binary.NativeEndian.Uint64(q.bytes(d.Addr-stampSize, stampSize))
}

// PacketSizeMax returns the longest packet that a frame holds, received or sent.
func (q *Queue) PacketSizeMax() int { return q.pool.Size() - int(q.start) }

// Lend lends a frame to build a packet in, which must go to Submit or to Drop. ok is false if there is none: kick, reclaim and try later.
func (q *Queue) Lend() (addr frame.Addr, packet []byte, ok bool) {
	if q.pool.Count(frame.Tx)+q.Outstanding() >= q.txLimit {
		return 0, nil, false
	}
	if q.pool.Count(frame.Free) == 0 {
		q.settle()
	}
	base, ok := q.pool.Take(frame.Tx, 0)
	if !ok {
		return 0, nil, false
	}
	addr = base + q.start
	return addr, q.bytes(addr, uint32(q.PacketSizeMax())), true
}

// Drop gives a lent frame back unsent.
func (q *Queue) Drop(addr frame.Addr) { q.pool.Move(addr, frame.Tx, frame.Free) }

// Statistics asks the kernel for its counters. Packets that a kick completed and dropped are not among them.
func (q *Queue) Statistics() (xsk.Statistics, error) {
	stats, err := q.socket.Stats()
	if err != nil {
		return xsk.Statistics{}, fmt.Errorf("asavie: read the statistics: %w", err)
	}
	kernel := &stats.KernelStats
	return xsk.Statistics{
		RxDropped:           kernel.Rx_dropped,
		RxInvalidDescs:      kernel.Rx_invalid_descs,
		TxInvalidDescs:      kernel.Tx_invalid_descs,
		RxRingFull:          kernel.Rx_ring_full,
		RxFillRingEmptyDesc: kernel.Rx_fill_ring_empty_descs,
		TxRingEmptyDescs:    kernel.Tx_ring_empty_descs,
		Losses:              q.losses,
	}, nil
}

// Audit checks that every frame has exactly one owner, and that asavie/xdp counts the same.
func (q *Queue) Audit() error {
	q.settle()
	if err := q.pool.Audit(); err != nil {
		return err
	}
	if sending := q.pool.Count(frame.Kernel) - len(q.pending); q.unsettled != 0 || sending != q.socket.NumTransmitted() {
		return fmt.Errorf("%w: %d frames are booked as being sent, asavie/xdp has %d; %d that were sent were not found",
			frame.ErrAudit, sending, q.socket.NumTransmitted(), q.unsettled)
	}
	if filled := q.pool.Count(frame.Fill); filled != q.socket.NumFilled() {
		return fmt.Errorf("%w: %d frames are booked as filled, asavie/xdp has %d", frame.ErrAudit, filled, q.socket.NumFilled())
	}
	return nil
}

// Frames returns how many frames an owner has.
func (q *Queue) Frames(owner frame.Owner) int {
	switch owner {
	case frame.Kernel:
		return q.Outstanding()
	case frame.Free:
		return q.pool.Count(frame.Free) + q.unsettled
	}
	return q.pool.Count(owner)
}

// FD returns the socket, for poll and for the XDP program's map; -1 once closed.
func (q *Queue) FD() int {
	if q.socket == nil {
		return -1
	}
	return q.socket.FD()
}

// Mode returns the mode in use: "copy" or "zero-copy".
func (q *Queue) Mode() string {
	if q.zeroCopy {
		return xsk.ModeZeroCopy.String()
	}
	return xsk.ModeCopy.String()
}

// Close closes the descriptor and unmaps the UMEM; no byte of it may be used after. The rings stay mapped, and with them the socket stays
// bound until the process ends: whoever steers packets to it has to stop before. It may be called again.
func (q *Queue) Close() error {
	if q.socket == nil {
		return nil
	}
	socket := q.socket
	q.socket = nil // a late use panics in Go, and does not write to foreign memory
	if err := socket.Close(); err != nil {
		return fmt.Errorf("asavie: close: %w", err)
	}
	return nil
}
