package runtime

import (
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Outcome is how a call ended; every call has exactly one. Code that has a [Call] may branch on it instead of on its error.
type Outcome = dispatcher.Outcome

// The outcomes of a call.
const (
	OutcomeOK            = dispatcher.OutcomeOK            // answered by its handler
	OutcomeHandlerError  = dispatcher.OutcomeHandlerError  // its handler returned an error
	OutcomePanic         = dispatcher.OutcomePanic         // its handler panicked
	OutcomeReplyTooLarge = dispatcher.OutcomeReplyTooLarge // its handler ran, and the answer does not fit into a packet
	OutcomeRejected      = dispatcher.OutcomeRejected      // refused by the server before it ran
	OutcomeExpired       = dispatcher.OutcomeExpired       // never sent: no credit came in time
	OutcomeDeadline      = dispatcher.OutcomeDeadline      // sent, and not answered by its deadline: it may have run
	OutcomePeerLost      = dispatcher.OutcomePeerLost      // sent, and the peer is gone or restarted: it may have run
	OutcomeCancelled     = dispatcher.OutcomeCancelled     // by its caller; it may have run
	OutcomeQueueFull     = dispatcher.OutcomeQueueFull     // never sent: too many calls wait in this session
	OutcomeTooLarge      = dispatcher.OutcomeTooLarge      // never sent: does not fit into a packet
	OutcomeClosed        = dispatcher.OutcomeClosed        // the session was closed
	OutcomeThrottled     = dispatcher.OutcomeThrottled     // never sent: the client's half of the overload control refused it, or its throttle
	OutcomeBreakerOpen   = dispatcher.OutcomeBreakerOpen   // never sent: too many calls to this server have failed lately
	OutcomeUnavailable   = dispatcher.OutcomeUnavailable   // its handler could not get what it needs from elsewhere
)

// RejectReason is why a server refused a request before it ran.
type RejectReason = wire.RejectReason

// The reasons of a rejection.
const (
	RejectOverloaded    = wire.RejectOverloaded    // the queue is longer than the drop threshold
	RejectExpired       = wire.RejectExpired       // what is left of the deadline does not cover the service
	RejectUnknownMethod = wire.RejectUnknownMethod // the server has no such method
	RejectDraining      = wire.RejectDraining      // the server is going away
	RejectCancelled     = wire.RejectCancelled     // the client cancelled it before it ran
	RejectNoSlot        = wire.RejectNoSlot        // more requests outstanding than the session has slots
	RejectTooLarge      = wire.RejectTooLarge      // does not fit
	RejectRateLimited   = wire.RejectRateLimited   // the client or the method has used up its rate: see Call.RetryAfter
)
