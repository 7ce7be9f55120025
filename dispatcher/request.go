package dispatcher

import (
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// Request is one request at the server, from its admission until it is answered. Between
// [Dispatcher.Next] and [Dispatcher.Complete] it belongs to the worker that runs it, at all other times to the dispatcher.
type Request struct {
	Method   *Method
	Payload  []byte // the request object's own copy
	Reply    []byte // the handler appends here
	Status   wire.Status
	Deadline clock.Time // zero = none
	Started  clock.Time // set by the worker
	Finished clock.Time // set by the worker
	// Idle is set by the worker: what of that time it waited for something that is nobody's load. It is no service.
	Idle  time.Duration
	Shell any // the shell's own; stays with the object when it is used again

	// What the request says for the calls that its handler makes.
	Criticality  wire.Criticality
	Attempt      uint8 // 0 for the first
	AttemptsLeft uint8 // see wire.Request

	// Interrupt is called by the dispatcher's owner when nobody waits for the answer of a request any more that is with a worker. The shell may set it at any
	// time, and then looks at Abandoned. It stays with the object.
	Interrupt atomic.Pointer[func()]
	abandoned atomic.Bool

	owner    uint8 // the dispatcher
	session  credit.Session
	serial   session.Serial // of the session: a request that runs may outlive it
	number   wire.Number
	slot     wire.Slot
	state    requestState
	arrival  clock.Time // at the NIC
	enqueued clock.Time
	in       *requestQueue // while queued
	place    uint64        // there
	cost     time.Duration // expected, while queued
	expected time.Duration // how long the queue before it should take
	next     *Request      // free list, or the loop's list of finished requests
}

type requestState uint8

const (
	requestFree    requestState = iota
	requestQueued               // in the request queue
	requestRunning              // with a worker
	requestOrphan               // with a worker, and nobody waits for it any more
)

// Abandoned reports whether nobody waits for the answer any more: its client cancelled it, gave it up, or ended its session. A worker may ask at any time.
func (r *Request) Abandoned() bool { return r.abandoned.Load() }

// abandon tells the worker that nobody waits for the answer any more.
func (r *Request) abandon() {
	r.abandoned.Store(true) // first: a shell that sets its Interrupt later sees it
	if interrupt := r.Interrupt.Load(); interrupt != nil {
		(*interrupt)()
	}
}

// Owner is the number of the dispatcher that has it.
func (r *Request) Owner() uint8 { return r.owner }

// Number is the request's running number in its session.
func (r *Request) Number() uint64 { return uint64(r.number) }

// Session names the session at the server: its place, and above that the dispatcher that has it. It is unique in this boot among sessions that
// live at the same time.
func (r *Request) Session() uint32 { return uint32(r.owner)<<handleIndexBits | uint32(r.session) }

// Waited is how long the request waited before it started: in the packet queue and in the request queue.
func (r *Request) Waited() (packetQueue, requestQueue time.Duration) {
	return r.enqueued.Sub(r.arrival), r.Started.Sub(r.enqueued)
}

// service is how long the request was served.
func (r *Request) service() time.Duration { return max(r.Finished.Sub(r.Started)-r.Idle, 0) }

// requestPool is a free list: sync.Pool empties at every garbage collection, and what overload needs most then is not there.
type requestPool struct {
	free  *Request
	count int
	keep  int // the largest buffer that an idle object keeps
	lent  int // request objects in use
}

func (p *requestPool) get() *Request {
	p.lent++
	r := p.free
	if r == nil {
		return &Request{}
	}
	p.free = r.next
	p.count--
	r.next = nil
	if r.abandoned.Load() {
		r.abandoned.Store(false)
	}
	return r
}

// put takes the request back. Its buffers stay with it, unless a handler made the reply larger than any packet.
func (p *requestPool) put(r *Request) {
	p.lent--
	if cap(r.Reply) > p.keep {
		r.Reply = nil
	}
	if p.count >= freeRequestsMax {
		return
	}
	r.next = p.free // all else is written when it is used again
	p.free = r
	p.count++
}
