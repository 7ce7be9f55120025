package udpport

import (
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

// bufferState is who owns a buffer.
type bufferState uint8

const (
	bufferFree bufferState = iota
	bufferLent
	bufferQueued
)

// sender is the queue to the kernel, and the buffers that its entries point to. The queue has room for all
// buffers, so that it cannot overflow.
type sender struct {
	buffers [][]byte
	states  []bufferState
	free    []uint32 // last in, first out: the warmest in the cache

	queued int // entries of the following in use
	tokens []uint32
	queue  messages
}

func (out *sender) init(payloadMax, bufferCount int) {
	out.buffers = cut(bufferCount, payloadMax)
	out.states = make([]bufferState, bufferCount)
	out.free = make([]uint32, bufferCount)
	for i := range out.free {
		out.free[i] = uint32(bufferCount - 1 - i)
	}
	out.tokens = make([]uint32, bufferCount)
	out.queue.init(bufferCount)
}

// cut allocates count buffers of size bytes in one piece, each on cache lines of its own.
func cut(count, size int) [][]byte {
	stride := (size + 63) &^ 63
	slab := make([]byte, count*stride)
	buffers := make([][]byte, count)
	for i := range buffers {
		buffers[i] = slab[i*stride:][:size:size]
	}
	return buffers
}

// Lend returns a free buffer.
func (p *Port) Lend() (dispatcher.Buffer, bool) {
	out := &p.out
	last := len(out.free) - 1
	if last < 0 {
		p.stats.NoBuffer++
		return dispatcher.Buffer{}, false
	}
	token := out.free[last]
	out.free = out.free[:last]
	out.states[token] = bufferLent
	return dispatcher.Buffer{Bytes: out.buffers[token][:0], Token: uint64(token)}, true
}

// Drop gives a lent buffer back unsent.
func (p *Port) Drop(b dispatcher.Buffer) { p.out.release(p.out.take(b, bufferFree)) }

// Send queues a lent buffer until the next Kick. An address that the socket cannot send to counts as a drop.
func (p *Port) Send(b dispatcher.Buffer, to wire.Addr) {
	out := &p.out
	token := out.take(b, bufferQueued)
	if len(b.Bytes) > 0 && &b.Bytes[0] != &out.buffers[token][0] {
		panic("udpport: the payload is not in the lent buffer: something appended beyond its capacity")
	}
	at := out.queued
	if !out.queue.address(at, to, p.family) {
		out.release(token)
		p.stats.SendDropped++
		return
	}
	if p.homes != nil {
		out.queue.from(at, p.homes.of(&to), p.family)
	}
	out.queue.carry(at, out.buffers[token][:len(b.Bytes)])
	out.tokens[at] = token
	out.queued++
}

// take checks that a buffer is lent, and passes it on. A buffer with two owners sends one peer's answer to another,
// so the check is always on.
func (out *sender) take(b dispatcher.Buffer, to bufferState) uint32 {
	if b.Token >= uint64(len(out.states)) || out.states[b.Token] != bufferLent {
		panic("udpport: the buffer is not lent: it was sent or dropped before")
	}
	out.states[b.Token] = to
	return uint32(b.Token)
}

// release makes a buffer free.
func (out *sender) release(token uint32) {
	out.states[token] = bufferFree
	out.free = append(out.free, token)
}

// Kick hands the queue to the kernel. A full socket buffer loses the rest of the queue, any other refusal only the
// packet that it is about.
func (p *Port) Kick() {
	out := &p.out
	for head := 0; head < out.queued; {
		sent, errno := out.queue.transmit(p.fd, head, min(out.queued, head+sendBatch))
		p.stats.Kicks++
		switch {
		case errno == 0 && sent > 0:
			p.stats.Sent += uint64(sent)
			head += sent
		case errno == unix.EAGAIN || errno == unix.ENOBUFS || errno == unix.EBADF:
			p.stats.SendDropped += uint64(out.queued - head)
			head = out.queued
		case errno == unix.EINTR: // nothing was sent
		default:
			p.refused(head)
			head++
		}
	}
	for _, token := range out.tokens[:out.queued] {
		out.release(token)
	}
	out.queued = 0
}

// refused counts a packet that the kernel does not send. It may be the source that is refused.
func (p *Port) refused(at int) {
	p.stats.SendDropped++
	if p.homes == nil {
		return
	}
	if to, ok := p.out.queue.to(at); ok {
		p.homes.forget(&to)
	}
}

// Outstanding is 0: the kernel copies what it is given, and needs no second call.
func (*Port) Outstanding() int { return 0 }
