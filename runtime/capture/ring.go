package capture

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/stillwater-rpc/stillwater/runtime/capture/pcapng"
)

// ring is a bounded queue of blocks between one producer and one consumer. A block that finds no room is not taken, and nobody ever waits.
//
// All positions are multiples of four, as the lengths of blocks are, so a block's length never lies on both sides of the end.
type ring struct {
	bytes []byte // a power of two of them
	head  atomic.Uint64
	tail  atomic.Uint64
	seen  uint64 // the producer's last look at tail: asking less often spares both the cache line
}

func newRing(size int) *ring { return &ring{bytes: make([]byte, 1<<bits.Len(uint(size-1)))} }

// put takes a copy of a block, or reports that there is no room for it.
func (r *ring) put(block []byte) bool {
	head := r.head.Load()
	if r.free(head) < len(block) {
		r.seen = r.tail.Load()
		if r.free(head) < len(block) {
			return false
		}
	}
	at := r.at(head)
	n := copy(r.bytes[at:], block)
	copy(r.bytes, block[n:])
	r.head.Store(head + uint64(len(block)))
	return true
}

// filling reports to the producer that a quarter is in use: the consumer should come soon.
func (r *ring) filling() bool {
	head := r.head.Load()
	if r.free(head) > len(r.bytes)/4*3 {
		return false
	}
	r.seen = r.tail.Load()
	return r.free(head) <= len(r.bytes)/4*3
}

// take moves whole blocks into the buffer: as many as fit into chunk bytes, and one in any case, for which the buffer must have room. The result is empty
// when the ring is.
func (r *ring) take(buffer []byte, chunk int) []byte {
	head, tail := r.head.Load(), r.tail.Load()
	size := 0
	for tail+uint64(size) < head {
		at := r.at(tail + uint64(size) + 4)
		length := int(binary.LittleEndian.Uint32(r.bytes[at:])) // as pcapng.BlockLength, which may lie on the other side of the end
		if size > 0 && size+length > chunk {
			break
		}
		size += length
	}
	at := r.at(tail)
	n := copy(buffer[:size], r.bytes[at:])
	copy(buffer[n:size], r.bytes)
	r.tail.Store(tail + uint64(size))
	return buffer[:size]
}

func (r *ring) free(head uint64) int   { return len(r.bytes) - int(head-r.seen) }
func (r *ring) at(position uint64) int { return int(position) & (len(r.bytes) - 1) }

// packets counts the packets among whole blocks.
func packets(blocks []byte) (n uint64) {
	for len(blocks) > 0 {
		if pcapng.IsPacket(blocks) {
			n++
		}
		blocks = blocks[pcapng.BlockLength(blocks):]
	}
	return n
}
