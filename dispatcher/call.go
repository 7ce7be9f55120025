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
	OutcomeExpired               // never sent: no credit came in time, or none was there for one that does not wait
	OutcomeDeadline              // sent, and not answered by its deadline: it may have run
	OutcomePeerLost              // sent, and the peer is gone or restarted: it may have run
	OutcomeCancelled             // by its caller; it may have run
	OutcomeQueueFull             // never sent: too many calls wait in this session
	OutcomeTooLarge              // never sent: does not fit into a packet
	OutcomeClosed                // the session was closed
	OutcomeThrottled             // never sent: the client's half of the overload control refused it
	OutcomeBreakerOpen           // never sent: too many calls to this server have failed lately
	OutcomeUnavailable           // its handler could not get what it needs from elsewhere, and says so in the reply
)

var outcomeNames = [...]string{
	"none", "ok", "handler error", "panic", "reply too large", "rejected", "expired", "deadline", "peer lost", "cancelled",
	"queue full", "too large", "closed", "throttled", "breaker open", "unavailable",
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
	// Repeatable says that running it twice does no more than running it once. Such a call may be tried again and hedged, where its session has a guard.
	Repeatable bool
	// NoWait ends the call as expired if there is no credit for it at once.
	NoWait bool
	// AttemptsLeft is what the request said for which this call is made: see wire.Request. Zero = it is made for none.
	AttemptsLeft uint8
	Priority     uint8       // 1 is shed last, 128 first, by schemes that shed by rank; 0 = the session's policy gives it one, if it has any
	Reply        []byte      // the reply is appended
	Done         func(*Call) // called once, by the owner of the dispatcher; must not block
	User         any         // the caller's own

	Outcome         Outcome
	Reason          wire.RejectReason // with OutcomeRejected
	Advice          wire.Advice       // with OutcomeRejected
	RetryAfter      time.Duration     // with OutcomeRejected: the server expects to refuse the like for so long; 0 = it does not say
	Timing          Timing            // with OutcomeOK and the other answers of a handler
	Retransmissions int

	state       callState
	number      wire.Number
	slot        wire.Slot
	priority    uint8            // what its request carries
	level       wire.Criticality // that it counts as at the client, never unset: see grade
	rank        uint8            // from 1, the lowest goes first: see invitation
	unasked     bool             // it was sent without a credit
	waiter      client.Waiter[Call]
	submitted   clock.Time
	transmitted clock.Time // first time
	interval    time.Duration
	resend      clock.Time
	heard       clock.Time // last sign of life from the server about this call
	timer       clock.Timer[Call]
	proven      int   // times it was sent in an opening packet with a token, which the server may have accepted
	ending      *Call // the next of those that end together: see endAll

	attempts                 client.Attempts // where its session has a guard
	before                   Outcome         // of an earlier attempt
	attempt, left            uint8           // what its request says
	replyBase                int             // length of Reply when it was submitted
	hedgeAt, lateAt          clock.Time      // when its hedge is due, and the next attempt instead of this one; zero = never
	hedge, parent            *Call           // the second attempt beside this one; and the call that this is the second attempt of
	parkedNext, parkedBefore *Call           // in Session.parked
}

type callState uint8

const (
	callIdle    callState = iota
	callQueued            // waits for a credit
	callSent              // waits for an answer
	callRefused           // sent beyond the limit: waits for a limit above its number
	callParked            // waits for its next attempt, or for its hedge
)

// Attempts is how many attempts the call has taken, hedges included.
func (c *Call) Attempts() int { return c.attempts.Made() }

// Number is the running number of the call's last attempt in its session, once it was sent.
func (c *Call) Number() (uint64, bool) { return uint64(c.number), !c.transmitted.IsZero() }
