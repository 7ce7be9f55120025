//go:build linux

package xsk

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// UMEM is the memory of packets, with the books of its frames. The queues on it share one pool: a frame that one of them received or that was lent
// on no account of theirs may be sent on any. It has one user at a time, together with all its queues, without a lock; no
// method allocates except Open, NewQueue, Audit and Close.
//
// It outlives its queues: when the last one is closed, frames that are lent or received stay valid, and another queue may be opened.
type UMEM struct {
	cfg     Config
	memory  []byte // nil once unmapped
	area    *area  // what it is of; nil if we did not map it
	pool    *frame.Pool
	queues  []*Queue   // by holder; nil = no queue
	start   frame.Addr // where a packet that we send starts in its frame
	txLimit int        // frames that transmission may hold on all queues together
}

var (
	// ErrQueuesMax means that a UMEM has as many queues as it was made for.
	ErrQueuesMax = errors.New("xsk: UMEM has all the queues that it was made for")
	// ErrUMEMInUse means that a UMEM cannot be closed, since queues are open on it.
	ErrUMEMInUse = errors.New("xsk: queues are open on the UMEM")
)

// NewUMEM maps memory for the queues that the configuration says; Interface and QueueID are not looked at. It is made of huge pages, near the
// configuration's node, as far as the kernel gives them: see [UMEM.Memory].
func NewUMEM(cfg Config) (*UMEM, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	size := cfg.FrameCount * cfg.FrameSizeBytes
	area, memory, err := newArea(&kernelCalls, size, cfg.Node)
	if err != nil {
		return nil, fmt.Errorf("xsk: map %d bytes of UMEM: %w", size, err)
	}
	u, err := newUMEM(cfg, memory)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("xsk: %w", err), area.unmap())
	}
	u.area = area
	return u, nil
}

// newUMEM takes a configuration that was validated.
func newUMEM(cfg Config, memory []byte) (*UMEM, error) {
	pool, err := frame.NewPool(frame.Config{
		Count: cfg.FrameCount, SizeBytes: cfg.FrameSizeBytes, Holders: cfg.Queues, Checked: cfg.Checked,
	})
	if err != nil {
		return nil, err
	}
	return &UMEM{
		cfg: cfg, memory: memory, pool: pool, queues: make([]*Queue, cfg.Queues),
		start: frame.Addr(packetHeadroom + cfg.Headroom + stampSize),
	}, nil
}

// Bound is a socket that is bound to a queue of an interface, and that no [Queue] uses yet.
type Bound struct {
	umem   *UMEM
	socket *socket
	memory Memory
	mode   Mode
}

// Bind registers the UMEM and binds a socket to a queue of an interface, in the network namespace of the calling thread. It needs
// CAP_NET_RAW. A busy queue is retried for up to a second, then the error is [ErrQueueBusy]. On error nothing is left open.
//
// It may be called from any goroutine, also while the UMEM's user works with it, so that nobody polls less while it waits. The UMEM
// may be registered several times; only those queues share their kernel's books that were bound by Share. The mode of the UMEM's
// configuration is not looked at.
func (u *UMEM) Bind(ifindex int, queueID uint32, mode Mode) (*Bound, error) {
	return u.bind(ifindex, queueID, -1, mode)
}

// Share binds a socket to another queue of any interface, with the UMEM as the given one registered it. It gets the same mode
// (net/xdp/xsk_buff_pool.c, xp_assign_dev_shared). As Bind, it may be called from any goroutine, while the given one stays open.
func (b *Bound) Share(ifindex int, queueID uint32) (*Bound, error) {
	return b.umem.bind(ifindex, queueID, b.socket.fd, b.mode)
}

// Share is [Bound.Share] for a socket that a queue uses.
func (q *Queue) Share(ifindex int, queueID uint32) (*Bound, error) {
	return q.bind(ifindex, queueID, q.socket.fd, q.mode)
}

// bind shares the UMEM of a socket, unless that is below zero.
func (u *UMEM) bind(ifindex int, queueID uint32, share int, mode Mode) (*Bound, error) {
	cfg := u.cfg
	cfg.Interface, cfg.QueueID, cfg.Mode = ifindex, queueID, mode
	s, memory, err := openSocket(&cfg, u.memory, share >= 0)
	if err != nil {
		return nil, fmt.Errorf("xsk: %w", err)
	}
	b := &Bound{umem: u, socket: s, memory: memory, mode: mode}
	if share >= 0 {
		err = s.bindShared(&cfg, share)
	} else {
		b.mode, err = s.bind(&cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("xsk: %w", errors.Join(err, s.close()))
	}
	return b, nil
}

// FD returns the socket, for the XDP program's map.
func (b *Bound) FD() int { return b.socket.fd }

// Mode is the mode in use: copy or zero-copy.
func (b *Bound) Mode() Mode { return b.mode }

// Close gives up a socket that no queue uses.
func (b *Bound) Close() error { return b.socket.close() }

// Adopt makes a queue of a socket, and fills its fill ring. When it fails, the socket is still the caller's to close.
func (u *UMEM) Adopt(b *Bound) (*Queue, error) {
	holder, ok := u.vacant()
	if !ok {
		return nil, u.errFull()
	}
	q := u.newQueue(holder, b.memory, b.mode)
	q.socket = b.socket
	return q, nil
}

// Open is Bind in the mode of the UMEM's configuration, or Share with any queue that is open, and Adopt.
func (u *UMEM) Open(ifindex int, queueID uint32) (q *Queue, err error) {
	if _, ok := u.vacant(); !ok {
		return nil, u.errFull()
	}
	var b *Bound
	if other := u.bound(); other != nil {
		b, err = other.Share(ifindex, queueID)
	} else {
		b, err = u.Bind(ifindex, queueID, u.cfg.Mode)
	}
	if err != nil {
		return nil, err
	}
	return u.Adopt(b)
}

func (u *UMEM) errFull() error { return fmt.Errorf("%w (%d)", ErrQueuesMax, len(u.queues)) }

// NewQueue returns a queue on given rings, without a socket: package xsktest plays the kernel at the other end. The UMEM of the memory is not
// looked at.
func (u *UMEM) NewQueue(memory Memory) (*Queue, error) {
	holder, ok := u.vacant()
	if !ok {
		return nil, u.errFull()
	}
	return u.newQueue(holder, memory, ModeCopy), nil
}

func (u *UMEM) vacant() (frame.Holder, bool) {
	for i, q := range u.queues {
		if q == nil {
			return frame.Holder(i), true
		}
	}
	return 0, false
}

// bound returns a queue with a socket, whose UMEM another socket can share, or nil.
func (u *UMEM) bound() *Queue {
	for _, q := range u.queues {
		if q != nil && q.socket != nil {
			return q
		}
	}
	return nil
}

// newQueue fills the fill ring too, which the mode has a say in.
func (u *UMEM) newQueue(holder frame.Holder, memory Memory, mode Mode) *Queue {
	q := &Queue{
		UMEM:       u,
		holder:     holder,
		fill:       newProducer(memory.Fill),
		completion: newConsumer(memory.Completion),
		rx:         newConsumer(memory.Rx),
		tx:         newProducer(memory.Tx),
		wakeTx:     memory.WakeTx,
		wakeRx:     memory.WakeRx,
		fillLimit:  u.cfg.FillRingSize + u.cfg.RxRingSize,
		txLimit:    u.cfg.TxRingSize,
		spentMax:   max(1, u.cfg.FillRingSize/16),
		mode:       mode,
	}
	u.queues[holder] = q
	u.txLimit += q.txLimit
	q.Refill()
	return q
}

// remove takes a queue off the UMEM, whose kernel has let go of its frames.
func (u *UMEM) remove(q *Queue) {
	u.queues[q.holder] = nil
	u.txLimit -= q.txLimit
	u.pool.Revoke(q.holder)
}

// Release gives received frames back to the pool. The bytes of the batch must not be used after it.
func (u *UMEM) Release(batch []frame.Desc) {
	u.pool.MoveAll(batch, frame.Rx, frame.Free)
}

// Bytes returns a received packet, from the Ethernet header on: the UMEM itself, valid until Release.
func (u *UMEM) Bytes(d frame.Desc) []byte {
	end := d.Addr + frame.Addr(d.Len)
	return u.memory[d.Addr:end:end]
}

// HandOver keeps a received frame from being released, while somebody else reads it: its bytes stay as they are until TakeBack. It is refused if
// the frame was not received.
func (u *UMEM) HandOver(d frame.Desc) bool { return u.pool.Move(d.Addr, frame.Rx, frame.Away) }

// TakeBack gives a frame that was handed over back to the pool. Nobody may read it any more.
func (u *UMEM) TakeBack(addr frame.Addr) { u.pool.Move(addr, frame.Away, frame.Free) }

// Stamp returns the metadata before a received packet: its arrival in nanoseconds of CLOCK_MONOTONIC if the XDP program
// stamped it, else 0. It is what the frame holds, so a caller that cannot trust the program must check it for sense.
func (u *UMEM) Stamp(d frame.Desc) uint64 {
	return binary.NativeEndian.Uint64(u.memory[d.Addr-stampSize : d.Addr])
}

// PacketSizeMax returns the longest packet that a frame holds, received or sent.
func (u *UMEM) PacketSizeMax() int { return u.pool.Size() - int(u.start) }

// Lend lends a frame to build a packet in: the address of its first byte, and its bytes, PacketSizeMax of them, with old
// contents. It must go to Submit of one of the queues, or to Drop. ok is false if the pool is empty or TxRingSize frames a queue are lent or with
// the kernel already: kick, reclaim and try later.
func (u *UMEM) Lend() (addr frame.Addr, packet []byte, ok bool) {
	if u.pool.Count(frame.Tx)+u.pool.Count(frame.Kernel) >= u.txLimit {
		return 0, nil, false
	}
	base, ok := u.pool.Take(frame.Tx, 0)
	if !ok {
		return 0, nil, false
	}
	addr, end := base+u.start, base+frame.Addr(u.pool.Size())
	return addr, u.memory[addr:end:end], true
}

// Drop gives a lent frame back unsent.
func (u *UMEM) Drop(addr frame.Addr) { u.pool.Move(addr, frame.Tx, frame.Free) }

// Memory says what the UMEM is made of: "2 MiB pages" of the pool that was reserved for such, "transparent huge pages", or "4 KiB pages"; and on which
// node it begins, where one was asked for and there are several. It reads /proc, which takes milliseconds in a large process.
func (u *UMEM) Memory() string {
	if u.area == nil {
		return "memory of the caller"
	}
	return u.area.text(u.memory)
}

// Audit checks that every frame has exactly one owner.
func (u *UMEM) Audit() error { return u.pool.Audit() }

// Frames returns how many frames an owner has.
func (u *UMEM) Frames(owner frame.Owner) int { return u.pool.Count(owner) }

// Close unmaps the memory. All queues must be closed; no byte of it may be used after. It may be called again.
func (u *UMEM) Close() error {
	for _, q := range u.queues {
		if q != nil {
			return ErrUMEMInUse
		}
	}
	u.memory = nil // a late use faults in Go, not in foreign memory
	if u.area == nil {
		return nil
	}
	area := u.area
	u.area = nil
	if err := area.unmap(); err != nil {
		return fmt.Errorf("xsk: unmap the UMEM: %w", err)
	}
	return nil
}
