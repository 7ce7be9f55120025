//go:build linux

package xsk

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// entry is what a ring holds: addresses (fill, completion) or descriptors (RX, TX). They are different types, so that a
// fill address cannot be sent.
type entry interface{ frame.Addr | frame.Desc }

// RingMemory is the shared part of a ring. The indices run freely over 2^32 and are masked to the number of
// entries, which is a power of two; producer - consumer is the number of entries in the ring.
type RingMemory[T entry] struct {
	Producer *uint32 // written by the producer only: we on fill and TX, the kernel on RX and completion
	Consumer *uint32 // written by the consumer only
	Flags    *uint32 // written by the kernel only: XDP_RING_NEED_WAKEUP
	Entries  []T     // written by the producer before it publishes, read by the consumer after
}

// producer is our end of a ring that we fill.
//
// The kernel pairs our store of the producer index with an acquiring load (net/xdp/xsk_queue.h, __xskq_cons_read). Go's
// atomics are sequentially consistent, which is at least as strong.
type producer[T entry] struct {
	shared  RingMemory[T]
	mask    uint32
	next    uint32 // ours: the index of the next entry to write; published up to the last publish
	horizon uint32 // ours: consumer + size as last seen, so that horizon - next is the room without a load
}

func newProducer[T entry](shared RingMemory[T]) producer[T] {
	size := uint32(len(shared.Entries))
	return producer[T]{
		shared:  shared,
		mask:    size - 1,
		next:    atomic.LoadUint32(shared.Producer),
		horizon: atomic.LoadUint32(shared.Consumer) + size,
	}
}

// room returns how many entries may be put, at most want. It looks at the kernel's index only if the private copy
// does not grant that many.
func (r *producer[T]) room(want uint32) uint32 {
	room := r.horizon - r.next
	if room < want {
		r.horizon = atomic.LoadUint32(r.shared.Consumer) + r.mask + 1
		room = r.horizon - r.next
	}
	return min(room, want)
}

// put writes the next entry; room must have granted it. Nobody sees it before publish.
func (r *producer[T]) put(value T) {
	r.shared.Entries[r.next&r.mask] = value
	r.next++
}

// putAll is put of many.
func (r *producer[T]) putAll(values []T) {
	if n := copy(r.shared.Entries[r.next&r.mask:], values); n < len(values) {
		copy(r.shared.Entries, values[n:])
	}
	r.next += uint32(len(values))
}

// publish gives all entries put so far to the kernel.
func (r *producer[T]) publish() { atomic.StoreUint32(r.shared.Producer, r.next) }

// unread returns how many entries the kernel has not taken yet.
func (r *producer[T]) unread() uint32 { return r.next - atomic.LoadUint32(r.shared.Consumer) }

// needWakeup reports whether the kernel waits for a system call before it goes on with this ring.
func (r *producer[T]) needWakeup() bool {
	return atomic.LoadUint32(r.shared.Flags)&unix.XDP_RING_NEED_WAKEUP != 0
}

// consumer is our end of a ring that the kernel fills.
type consumer[T entry] struct {
	shared   RingMemory[T]
	mask     uint32
	next     uint32 // ours: the index of the next entry to read; given back up to the last release
	produced uint32 // ours: the kernel's producer index as last seen
}

func newConsumer[T entry](shared RingMemory[T]) consumer[T] {
	return consumer[T]{
		shared:   shared,
		mask:     uint32(len(shared.Entries)) - 1,
		next:     atomic.LoadUint32(shared.Consumer),
		produced: atomic.LoadUint32(shared.Producer),
	}
}

// available returns how many entries may be read, at most want. It looks at the kernel's index only if the private copy
// has nothing left, so that a batch costs one load; a short answer is not the end of the ring.
func (r *consumer[T]) available(want uint32) uint32 {
	if r.produced == r.next {
		r.produced = atomic.LoadUint32(r.shared.Producer)
	}
	return min(r.produced-r.next, want)
}

// get reads the next entry; available must have granted it.
func (r *consumer[T]) get() T {
	value := r.shared.Entries[r.next&r.mask]
	r.next++
	return value
}

// getAll is get of as many as fit.
func (r *consumer[T]) getAll(into []T) {
	if n := copy(into, r.shared.Entries[r.next&r.mask:]); n < len(into) {
		copy(into[n:], r.shared.Entries)
	}
	r.next += uint32(len(into))
}

// release gives the slots of all entries read so far back to the kernel.
func (r *consumer[T]) release() { atomic.StoreUint32(r.shared.Consumer, r.next) }
