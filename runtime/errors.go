package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

// The errors of a call, one for each cause. Those that say "may have run" leave the outcome at the server unknown.
var (
	// ErrDeadline: the request was sent, and no answer came by the deadline; it may have run. It is a
	// context.DeadlineExceeded.
	ErrDeadline = fmt.Errorf("no answer by the deadline: %w", context.DeadlineExceeded)
	// ErrNoCredit: the server granted no credit in time, and the request was never sent. It is a
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
	// ErrThrottled: the client's half of the overload control refused the call; the request was not sent.
	ErrThrottled = errors.New("held back by the client's overload control")
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
type HandlerError struct{ Message string }

// Error is the handler's text.
func (e *HandlerError) Error() string { return e.Message }

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
	default:
		return ErrClosed
	}
}
