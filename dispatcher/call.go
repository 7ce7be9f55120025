package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Outcome is how a call ended. Every call has exactly one.
type Outcome uint8

// The outcomes of a call.
const (
	OutcomeNone          Outcome = iota
	OutcomeOK                    // answered by its handler
	OutcomeHandlerError          // its handler returned an error, whose text is the reply
	OutcomePanic                 // its handler panicked
	OutcomeReplyTooLarge         // its handler ran, and the answer does not fit into a packet
	OutcomeRejected              // refused by the server before it ran; Reason says why
	OutcomeExpired               // never sent: no credit came in time
	OutcomeDeadline              // sent, and not answered by its deadline: it may have run
	OutcomePeerLost              // sent, and the peer is gone or restarted: it may have run
	OutcomeCancelled             // by its caller; it may have run
	OutcomeQueueFull             // never sent: too many calls wait in this session
	OutcomeTooLarge              // never sent: does not fit into a packet
	OutcomeClosed                // the session was closed
	OutcomeThrottled             // never sent: the client's half of the overload control refused it
)

var outcomeNames = [...]string{
	"none", "ok", "handler error", "panic", "reply too large", "rejected", "expired", "deadline", "peer lost", "cancelled",
	"queue full", "too large", "closed", "throttled",
}

// String names the outcome.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unknown"
}

// Timing splits the time of an answered call. The parts and the network sum to the whole.
type Timing struct {
	ClientQueue  time.Duration // waiting for a credit
	Network      time.Duration // both ways, with both kernels and our own packet queue
	PacketQueue  time.Duration // at the server, from the NIC to the dispatcher
	RequestQueue time.Duration // at the server, until a worker took it
	Service      time.Duration // in the handler
}

// Call is one call at the client. The caller fills in the exported fields of the first block and hands it to
// [Dispatcher.Submit]; until Done is called it belongs to the dispatcher.
type Call struct {
	Session     *Session
	Method      wire.Method
	Payload     []byte     // kept for retransmission: must not change until Done
	Deadline    clock.Time // zero = none
	Criticality wire.Criticality
	Priority    uint8       // 1 is shed last, 128 first, by schemes that shed by rank; 0 = the session's policy gives it one, if it has any
	Reply       []byte      // the reply is appended
	Done        func(*Call) // called once, by the owner of the dispatcher; must not block
	User        any         // the caller's own

	Outcome         Outcome
	Reason          wire.RejectReason // with OutcomeRejected
	Advice          wire.Advice       // with OutcomeRejected
	Timing          Timing            // with OutcomeOK and the other answers of a handler
	Retransmissions int

	state       callState
	number      wire.Number
	slot        wire.Slot
	priority    uint8 // what its request carries
	rank        uint8 // among the calls without a credit, from 1: see invited
	unasked     bool  // it was sent without a credit
	waiter      client.Waiter[Call]
	submitted   clock.Time
	transmitted clock.Time // first time
	interval    time.Duration
	resend      clock.Time
	heard       clock.Time // last sign of life from the server about this call
	timer       clock.Timer[Call]
	proven      int   // times it was sent in an opening packet with a token, which the server may have accepted
	ending      *Call // the next of those that end together: see endAll
}

type callState uint8

const (
	callIdle    callState = iota
	callQueued            // waits for a credit
	callSent              // waits for an answer
	callRefused           // sent beyond the limit: waits for a limit above its number
)

// Number is the call's running number in its session, once it was sent.
func (c *Call) Number() (uint64, bool) { return uint64(c.number), !c.transmitted.IsZero() }
