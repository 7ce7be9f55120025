package grpcadmit

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/middleware"
)

// front refuses requests before gRPC sees them. In grpc-go a refusal costs a quarter of what a small call costs, nearly all of it for what comes before the tap handle
// and after it: decoding headers, contexts, metadata, and the status on its way back. Here it costs less than a microsecond.
//
// It must not decode headers, since their compression has a state that is gRPC's (RFC 7541). So it knows a request by the bytes of its header block: the same bytes mean the
// same headers for as long as no block changed the table, and what they mean is learnt from the tap handle. Blocks that change the table, or that are new, go through,
// and are decided about there. All decisions are made once: a request that is let through here takes its pass along.
//
// It belongs to the goroutine that reads, which calls the tap handle as well; only end comes from elsewhere.
type front struct {
	control *middleware.Control
	known   map[string]known // by header block
	refused map[uint32]bool  // streams whose clients have not finished
	last    uint32           // the largest stream so far
	preface int              // bytes of the client's preface still to come
	skip    int              // bytes of the frame that is let through, or taken out
	out     bool             // it is taken out
	taken   int              // bytes of flow control to give back
	replies []byte

	mu     sync.Mutex
	passed []passed // requests that the tap handle has yet to see, in order
	over   bool     // the connection is closed: it will see none
}

// known is what a header block means.
type known struct {
	arrival middleware.Arrival
	timeout time.Duration // 0 = none
}

// passed is a request on its way to the tap handle.
type passed struct {
	block   string // to be learnt; empty = not
	decided bool
	pass    *middleware.Pass
}

// Bounds of what a client can have a connection remember.
const (
	knownMax   = 64
	refusedMax = 256
	blockMax   = 512
	giveBack   = 8192 // bytes, of a window of 65535
)

func newFront(c *middleware.Control) *front {
	return &front{control: c, known: map[string]known{}, refused: map[uint32]bool{}, preface: len(clientPreface)}
}

// push has a request follow the others to the tap handle.
func (f *front) push(p passed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		p.pass.Leave()
		return
	}
	f.passed = append(f.passed, p)
}

// next is what was decided about the request that the tap handle sees now.
func (f *front) next() (p passed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.passed) == 0 {
		return p
	}
	p = f.passed[0]
	f.passed = append(f.passed[:0], f.passed[1:]...)
	return p
}

// settle is called when gRPC has dealt with all that it was given. What it did not hand to the tap handle, it refused by itself; which one that was is not known, so nothing
// learnt meanwhile counts.
func (f *front) settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.passed) > 0 {
		f.leave()
		clear(f.known)
	}
}

func (f *front) leave() {
	for _, p := range f.passed {
		p.pass.Leave()
	}
	f.passed = f.passed[:0]
}

// end gives back what no tap handle will see. It may be called at any time.
func (f *front) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	f.leave()
}

// forget is for a block that changes the table: no block before it means any more what it meant.
func (f *front) forget() {
	clear(f.known)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.passed {
		f.passed[i].block = ""
	}
}

// filter appends to clean what gRPC is to see of raw, and returns what is left of raw: the beginning of a frame.
func (f *front) filter(clean, raw []byte, arrived func(part float64) clock.Time) (rest, cleaned []byte) {
	size := float64(max(len(raw), 1))
	n := min(f.preface, len(raw))
	f.preface -= n
	clean, raw = append(clean, raw[:n]...), raw[n:]
	for {
		n := min(f.skip, len(raw))
		if !f.out {
			clean = append(clean, raw[:n]...)
		}
		f.skip -= n
		raw = raw[n:]
		if f.skip > 0 || len(raw) < frameHeaderBytes {
			return raw, clean
		}
		h := parseFrameHeader(raw)
		if h.kind == frameHeaders && h.length <= blockMax && len(raw) < frameHeaderBytes+h.length {
			return raw, clean // until all of it is there
		}
		f.out = f.takes(h, raw, func() clock.Time { return arrived(1 - float64(len(raw))/size) })
		f.skip = frameHeaderBytes + h.length
	}
}

// takes reports whether a frame is to be taken out.
func (f *front) takes(h frameHeader, raw []byte, arrived func() clock.Time) bool {
	if h.kind == frameHeaders {
		return f.takesHeaders(h, raw, arrived)
	}
	if !f.refused[h.stream] {
		return false
	}
	switch h.kind {
	case frameData:
		f.taken += h.length
		if h.flags&flagEndStream != 0 {
			delete(f.refused, h.stream)
		}
	case frameReset:
		delete(f.refused, h.stream)
	}
	return true
}

func (f *front) takesHeaders(h frameHeader, raw []byte, arrived func() clock.Time) bool {
	if f.refused[h.stream] { // its trailers
		if h.flags&flagEndStream != 0 {
			delete(f.refused, h.stream)
		}
		return false // they may change the table; gRPC refuses them as being out of order
	}
	if h.stream <= f.last {
		return false
	}
	f.last = h.stream
	if h.flags&^(flagEndStream|flagEndHeaders) != 0 || h.flags&flagEndHeaders == 0 || h.length > blockMax {
		f.forget()
		f.push(passed{})
		return false
	}
	block := raw[frameHeaderBytes : frameHeaderBytes+h.length]
	k, found := f.known[string(block)]
	if !found {
		p := passed{}
		if indexedOnly(block) {
			p.block = string(block)
		} else {
			f.forget()
		}
		f.push(p)
		return false
	}
	if len(f.refused) >= refusedMax {
		f.push(passed{})
		return false
	}
	a := k.arrival
	a.Arrived = arrived()
	if k.timeout > 0 {
		a.Deadline = time.Now().Add(k.timeout)
	}
	pass, v := f.control.Arrive(a)
	if v.OK {
		f.push(passed{decided: true, pass: pass})
		return false
	}
	f.refuse(h, v)
	return true
}

// refuse answers in place of gRPC.
func (f *front) refuse(h frameHeader, v admit.Verdict) {
	f.replies = appendRefusal(f.replies, h.stream, v)
	if h.flags&flagEndStream == 0 {
		f.refused[h.stream] = true
		f.replies = appendFrame(f.replies, frameReset, 0, h.stream, []byte{0, 0, 0, 0}) // NO_ERROR: nothing more is wanted
	}
}

// learn notes what a header block means.
func (f *front) learn(block string, a middleware.Arrival) {
	if block == "" || len(f.known) >= knownMax {
		return
	}
	k := known{arrival: a}
	if !a.Deadline.IsZero() {
		k.timeout = max(time.Until(a.Deadline), 1)
	}
	k.arrival.Deadline, k.arrival.Arrived = time.Time{}, 0
	f.known[block] = k
}

// send takes the replies, and the flow control that is to be given back.
func (f *front) send() []byte {
	if f.taken >= giveBack {
		f.replies = appendFrame(f.replies, frameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(f.taken)))
		f.taken = 0
	}
	replies := f.replies
	f.replies = f.replies[:0]
	return replies
}
