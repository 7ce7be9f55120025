package load

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Outcome is how a request ended. Every issued request has exactly one.
type Outcome uint8

// The outcomes.
const (
	OK       Outcome = iota // answered
	Rejected                // refused by the server, with an answer; Op.Reason says why
	Expired                 // given up at the client before it was sent
	Deadline                // sent, and no answer in time
	PeerLost                // the server went away
	Failed                  // anything else, as an error of the handler
	outcomeCount
)

// outcomeNames is indexed by Outcome.
var outcomeNames = [outcomeCount]string{"ok", "rejected", "expired", "deadline", "peer_lost", "failed"}

// String returns the word used in results.
func (o Outcome) String() string {
	if o < outcomeCount {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Timing splits the latency of one answered request. Its parts need not add up to the latency: what is missing is the
// generator's own lateness and the time between the parts.
type Timing struct {
	ClientQueue  time.Duration // from being issued to the first transmission
	Network      time.Duration // on the wire and in both hosts' packet paths, both ways
	PacketQueue  time.Duration // at the server, from arrival to being parsed
	RequestQueue time.Duration // at the server, from being parsed to the start of the handler
	Service      time.Duration // the handler's run time
}

// Op is one request. It belongs to the Issuer from Issue until Done, and to the generator otherwise; the generator
// uses it again, so an Issuer must not keep it.
type Op struct {
	// What the generator asks for.
	Due      clock.Time // when the request arose; latency and deadline count from here
	Deadline clock.Time // when an answer becomes worthless; zero is never
	Payload  []byte     // begins with the work, see workload.DecodeWork; valid until Done

	// What the Issuer fills in before Done.
	Outcome  Outcome
	Reason   uint8      // why the server refused, in its own numbering; with Rejected only
	Finished clock.Time // when the outcome was known; zero lets Done read the clock
	Timed    bool       // Timing is filled in
	Timing   Timing

	next  *Op // links the free list or the return stack
	home  *pool
	state atomic.Uint32
}

// The states of an Op.
const (
	opIdle   uint32 = iota // with the generator
	opIssued               // with the Issuer
)

// Done hands the request back with its outcome. It may be called on any goroutine, also from within Issue, never
// blocks and never allocates. A second call for the same Issue is counted and otherwise ignored, and the run then fails;
// one that comes so late that the Op is in use again ends the wrong request, which no generator can tell.
func (o *Op) Done() {
	if !o.state.CompareAndSwap(opIssued, opIdle) {
		o.home.repeated.Add(1)
		return
	}
	if o.Finished == 0 {
		o.Finished = clock.Now()
	}
	o.home.push(o)
}

// Issuer starts requests on virtual clients. Issue is called on the generator's goroutine, with sessions from 0 up to
// the run's Sessions; it must not block. The Issuer calls op.Done exactly once for each Issue, whatever happens.
type Issuer interface {
	Issue(session int, op *Op)
}

// pool owns the requests of a run. Everything but push belongs to the generator's goroutine.
type pool struct {
	free        *Op
	outstanding int
	returned    atomic.Pointer[Op] // a stack: many push, the generator takes all of it at once, so ABA cannot occur
	repeated    atomic.Uint64
}

// newPool makes size requests with payloads of payloadBytes each, all that the run will ever use.
func newPool(size, payloadBytes int) *pool {
	p := &pool{}
	ops := make([]Op, size)
	payloads := make([]byte, size*payloadBytes)
	for i := range ops {
		op := &ops[i]
		op.home = p
		op.Payload = payloads[i*payloadBytes : (i+1)*payloadBytes : (i+1)*payloadBytes]
		op.next, p.free = p.free, op
	}
	return p
}

// get takes a request off the free list, nil when all are outstanding. The last one returned goes out first: its cache
// lines are warm.
func (p *pool) get() *Op {
	op := p.free
	if op == nil {
		return nil
	}
	p.free, op.next = op.next, nil
	op.Outcome, op.Reason, op.Finished, op.Timed = OK, 0, 0, false
	p.outstanding++
	op.state.Store(opIssued)
	return op
}

// push puts a request on the return stack.
func (p *pool) push(op *Op) {
	for {
		top := p.returned.Load()
		op.next = top
		if p.returned.CompareAndSwap(top, op) {
			return
		}
	}
}

// takeReturned empties the return stack; the caller walks it by next and gives each request to put.
func (p *pool) takeReturned() *Op {
	if p.returned.Load() == nil { // a plain load is cheaper than an exchange, and most turns find nothing
		return nil
	}
	return p.returned.Swap(nil)
}

// put returns a request to the free list.
func (p *pool) put(op *Op) {
	op.next, p.free = p.free, op
	p.outstanding--
}
