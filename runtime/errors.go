package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

// The errors of a call, one for each cause. Those that say "may have run" leave the outcome at the server unknown.
var (
	// ErrDeadline: the request was sent, and no answer came by the deadline; it may have run. It is a
	// context.DeadlineExceeded.
	ErrDeadline = fmt.Errorf("no answer by the deadline: %w", context.DeadlineExceeded)
	// ErrNoCredit: the server granted no credit in time, or with [NoWait] there was none at once, and the request was never sent. It is a
	// context.DeadlineExceeded as well.
	ErrNoCredit = fmt.Errorf("no credit in time: %w", context.DeadlineExceeded)
	// ErrPeerLost: the server is gone, or restarted, after the request was sent; it may have run.
	ErrPeerLost = errors.New("peer lost, outcome unknown")
	// ErrPanic: the handler panicked.
	ErrPanic = errors.New("handler panicked")
	// ErrReplyTooLarge: the handler ran, and its reply does not fit into a packet.
	ErrReplyTooLarge = errors.New("reply does not fit into one packet")
	// ErrTooLarge: the request does not fit into a packet and was not sent.
	ErrTooLarge = errors.New("request does not fit into one packet")
	// ErrQueueFull: too many calls of this session wait for a credit; the request was not sent.
	ErrQueueFull = errors.New("too many calls wait for a credit")
	// ErrThrottled: the client's half of the overload control refused the call, or its throttle did; the request was not sent.
	ErrThrottled = errors.New("held back by the client's overload control")
	// ErrBreakerOpen: too many calls of this client have failed lately, and the request was not sent.
	ErrBreakerOpen = errors.New("breaker is open: too many calls have failed lately")
	// ErrUnavailable: the handler could not get what it needs from elsewhere. A [HandlerError] is one if the handler says so, by returning this error or one of the others
	// here that a call of its own has ended with, or its context's own context.DeadlineExceeded. Such a call is tried again if it is repeatable.
	ErrUnavailable = errors.New("unavailable")
	// ErrOtherDispatcher: two sessions that are to work together belong to different endpoints, or to different dispatchers of one.
	ErrOtherDispatcher = errors.New("sessions of different dispatchers: dial both on one endpoint with one dispatcher")
	// ErrClosed: the session, client or endpoint is closed.
	ErrClosed = errors.New("closed")
)

// RejectedError says that the server refused a request before it ran.
type RejectedError struct {
	Reason     wire.RejectReason
	DoNotRetry bool // another attempt would only add to the overload
}

// Error names the reason.
func (e *RejectedError) Error() string {
	if e.DoNotRetry {
		return "rejected: " + e.Reason.String() + " (do not retry)"
	}
	return "rejected: " + e.Reason.String()
}

// HandlerError is an error that the handler returned.
type HandlerError struct {
	Message     string
	Unavailable bool // it could not get what it needs from elsewhere
}

// Error is the handler's text.
func (e *HandlerError) Error() string { return e.Message }

// Is makes it an ErrUnavailable, if it is one.
func (e *HandlerError) Is(target error) bool { return e.Unavailable && target == ErrUnavailable }

// unavailable are the errors of a handler that say that it could not get what it needs from elsewhere. The first deadline is for ErrDeadline and ErrNoCredit, which are ones, and
// for the context's error: at its deadline a handler answers, and its caller gives up, at the same instant, and which is first must not decide what the layers above make of it.
var unavailable = []error{ErrUnavailable, context.DeadlineExceeded, ErrPeerLost, ErrQueueFull, ErrThrottled, ErrBreakerOpen}

// isUnavailable reports whether another attempt at a handler that returned the error may have better luck. What was refused with the advice not to try again has not: the
// advice is for all layers.
func isUnavailable(err error) bool {
	if rejected, ok := errors.AsType[*RejectedError](err); ok {
		switch rejected.Reason {
		case wire.RejectOverloaded, wire.RejectDraining, wire.RejectRateLimited:
			return !rejected.DoNotRetry
		}
		return false
	}
	return slices.ContainsFunc(unavailable, func(is error) bool { return errors.Is(err, is) })
}

// rejected holds one error per reason and advice, so that a rejection, which is common when it matters, allocates nothing.
var rejected = func() (table [16][2]*RejectedError) {
	for i := range table {
		table[i][0] = &RejectedError{Reason: wire.RejectReason(i)}
		table[i][1] = &RejectedError{Reason: wire.RejectReason(i), DoNotRetry: true}
	}
	return table
}()

// Err is the call's error after it has ended; nil when its handler answered.
func (c *Call) Err() error {
	switch c.inner.Outcome {
	case dispatcher.OutcomeOK:
		return nil
	case dispatcher.OutcomeHandlerError:
		return &HandlerError{Message: string(c.Reply[c.replyFrom:])}
	case dispatcher.OutcomeUnavailable:
		return &HandlerError{Message: string(c.Reply[c.replyFrom:]), Unavailable: true}
	case dispatcher.OutcomePanic:
		return ErrPanic
	case dispatcher.OutcomeReplyTooLarge:
		return ErrReplyTooLarge
	case dispatcher.OutcomeRejected:
		advice := 0
		if c.inner.Advice == wire.AdviceDoNotRetry {
			advice = 1
		}
		return rejected[c.inner.Reason&15][advice]
	case dispatcher.OutcomeExpired:
		return ErrNoCredit
	case dispatcher.OutcomeDeadline:
		return ErrDeadline
	case dispatcher.OutcomePeerLost:
		return ErrPeerLost
	case dispatcher.OutcomeCancelled:
		return context.Canceled
	case dispatcher.OutcomeQueueFull:
		return ErrQueueFull
	case dispatcher.OutcomeTooLarge:
		return ErrTooLarge
	case dispatcher.OutcomeThrottled:
		return ErrThrottled
	case dispatcher.OutcomeBreakerOpen:
		return ErrBreakerOpen
	default:
		return ErrClosed
	}
}
