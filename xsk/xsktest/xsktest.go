//go:build linux

// Package xsktest is the other end of the four rings over plain memory: the test plays the kernel.
//
// It needs no root, no device and no system call. A [Kernel] takes frames off the fill ring and delivers packets in them,
// takes packets off the TX ring and completes them, with the kernel's own habits: 32 packets a wake-up, then EAGAIN; no
// descriptor without room; addresses with headroom and metadata. What it does wrong, it does because the test asked.
package xsktest

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

const (
	txBatchSize = 32  // TX_BATCH_SIZE of net/xdp/xsk.c
	headroom    = 256 // XDP_PACKET_HEADROOM of include/uapi/linux/bpf.h
	stampSize   = 8   // the metadata of our XDP program
)

// Ring is the kernel's end of a ring in plain memory. It is slow and obvious: every call loads and stores the shared indices.
type Ring[T frame.Addr | frame.Desc] struct {
	Memory xsk.RingMemory[T]
}

// NewRing returns an empty ring of size entries, a power of two, whose indices start at start (so that a test reaches
// their wrap at 2^32 at once). The kernel asks for wake-ups on it.
func NewRing[T frame.Addr | frame.Desc](size int, start uint32) *Ring[T] {
	producer, consumer, flags := start, start, uint32(unix.XDP_RING_NEED_WAKEUP)
	return &Ring[T]{xsk.RingMemory[T]{Producer: &producer, Consumer: &consumer, Flags: &flags, Entries: make([]T, size)}}
}

// Len returns how many published entries are in the ring.
func (r *Ring[T]) Len() int {
	return int(atomic.LoadUint32(r.Memory.Producer) - atomic.LoadUint32(r.Memory.Consumer))
}

// Push produces one entry; false if the ring is full.
func (r *Ring[T]) Push(value T) bool {
	if r.Len() == len(r.Memory.Entries) {
		return false
	}
	index := atomic.LoadUint32(r.Memory.Producer)
	r.Memory.Entries[index%uint32(len(r.Memory.Entries))] = value
	atomic.StoreUint32(r.Memory.Producer, index+1)
	return true
}

// Pop consumes one entry; false if the ring is empty.
func (r *Ring[T]) Pop() (value T, ok bool) {
	if r.Len() == 0 {
		return value, false
	}
	index := atomic.LoadUint32(r.Memory.Consumer)
	value = r.Memory.Entries[index%uint32(len(r.Memory.Entries))]
	atomic.StoreUint32(r.Memory.Consumer, index+1)
	return value, true
}

// SetNeedWakeup sets or clears the flag by which the kernel asks for system calls.
func (r *Ring[T]) SetNeedWakeup(need bool) {
	flags := uint32(0)
	if need {
		flags = unix.XDP_RING_NEED_WAKEUP
	}
	atomic.StoreUint32(r.Memory.Flags, flags)
}

// Kernel is a queue's kernel. It has one user at a time, the same as its queue.
type Kernel struct {
	Fill       *Ring[frame.Addr]
	Completion *Ring[frame.Addr]
	Rx         *Ring[frame.Desc]
	Tx         *Ring[frame.Desc]
	UMEM       []byte

	// Sent are the packets that wake-ups have sent, oldest first; the test may clear it.
	Sent [][]byte
	// OnWakeTx replaces what a wake-up does, which is Transmit(32).
	OnWakeTx func() unix.Errno
	// WakeTxCount and WakeRxCount count the system calls that a real kernel would have seen.
	WakeTxCount, WakeRxCount int

	cfg xsk.Config
}

// NewKernel returns the kernel for a queue of this configuration, with ring indices that start at start.
func NewKernel(cfg xsk.Config, start uint32) *Kernel {
	cfg = cfg.WithDefaults()
	k := &Kernel{
		Fill:       NewRing[frame.Addr](cfg.FillRingSize, start),
		Completion: NewRing[frame.Addr](cfg.CompletionRingSize, start),
		Rx:         NewRing[frame.Desc](cfg.RxRingSize, start),
		Tx:         NewRing[frame.Desc](cfg.TxRingSize, start),
		UMEM:       make([]byte, cfg.FrameCount*cfg.FrameSizeBytes),
		cfg:        cfg,
	}
	k.Fill.SetNeedWakeup(false) // as copy mode has it
	return k
}

// Beside returns the kernel of another queue on the same UMEM.
func (k *Kernel) Beside(start uint32) *Kernel {
	other := NewKernel(k.cfg, start)
	other.UMEM = k.UMEM
	return other
}

// Queue returns the queue at our end.
func (k *Kernel) Queue() (*xsk.Queue, error) { return xsk.NewQueue(k.cfg, k.memory()) }

// QueueOn returns the queue at our end, on the UMEM of another one.
func (k *Kernel) QueueOn(u *xsk.UMEM) (*xsk.Queue, error) { return u.NewQueue(k.memory()) }

func (k *Kernel) memory() xsk.Memory {
	return xsk.Memory{
		UMEM:       k.UMEM,
		Fill:       k.Fill.Memory,
		Completion: k.Completion.Memory,
		Rx:         k.Rx.Memory,
		Tx:         k.Tx.Memory,
		WakeTx:     k.wakeTx,
		WakeRx: func() unix.Errno {
			k.WakeRxCount++
			return 0
		},
	}
}

func (k *Kernel) wakeTx() unix.Errno {
	k.WakeTxCount++
	if k.OnWakeTx != nil {
		return k.OnWakeTx()
	}
	return k.Transmit(txBatchSize)
}

// Transmit sends up to limit packets off the TX ring, appends them to Sent, and completes them. It answers as sendto does:
// EAGAIN if packets are left.
func (k *Kernel) Transmit(limit int) unix.Errno {
	for k.Tx.Len() > 0 {
		// As the kernel does, the completion is reserved before the packet is taken.
		if limit == 0 || k.Completion.Len() == k.cfg.CompletionRingSize {
			return unix.EAGAIN
		}
		desc, _ := k.Tx.Pop()
		k.Sent = append(k.Sent, slices.Clone(k.UMEM[desc.Addr:][:desc.Len]))
		k.Completion.Push(desc.Addr)
		limit--
	}
	return 0
}

// Deliver receives one packet: into a frame of the fill ring, with the stamp as metadata before it unless it is 0. False
// means that it was lost, as it would be: no frame, no room on the RX ring, or longer than a frame holds.
func (k *Kernel) Deliver(packet []byte, stamp uint64) bool {
	if k.Rx.Len() == k.cfg.RxRingSize || len(packet) > k.cfg.FrameSizeBytes-headroom-k.cfg.Headroom-stampSize {
		return false
	}
	addr, ok := k.Fill.Pop()
	if !ok {
		return false
	}
	addr = addr&^frame.Addr(k.cfg.FrameSizeBytes-1) + frame.Addr(headroom+k.cfg.Headroom)
	if stamp != 0 {
		binary.NativeEndian.PutUint64(k.UMEM[addr:], stamp)
		addr += stampSize
	}
	copy(k.UMEM[addr:], packet)
	return k.Rx.Push(frame.Desc{Addr: addr, Len: uint32(len(packet))})
}
