package middleware

import (
	"context"
	"fmt"

	"github.com/stillwater-rpc/stillwater/credit/admit"
)

// Enter is for what a handler needs and few can have at once: a lock, a device, a pool of connections. It waits until one of the control's permits is free, and gives up at once
// when the deadline of ctx leaves no time for the wait and for what those before it took, or when the control refuses for another of its reasons. So who cannot have the lock
// in time ends early, and those who need it not do not share its queue. (Protego has it as active synchronization queue management: NSDI 2023.)
//
// Without an error the pass is to be given back exactly once, by its Done. A refusal is a [*RefusedError]; if ctx ends first, the error is the context's. May be called from
// any goroutine.
func (c *Control) Enter(ctx context.Context) (*Pass, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := Arrival{Arrived: c.now()} // it did not wait anywhere before
	a.Deadline, _ = ctx.Deadline()
	p, v := c.Arrive(a)
	if !v.OK {
		return nil, &RefusedError{v}
	}
	v, err := p.Wait(ctx)
	switch {
	case err != nil:
		return nil, err
	case !v.OK:
		return nil, &RefusedError{v}
	}
	return p, nil
}

// RefusedError says that [Control.Enter] refused. It is a context.DeadlineExceeded: the caller's time ends without what he needs, known early. A handler of package runtime that
// returns it says that it was unavailable.
type RefusedError struct{ Verdict admit.Verdict }

// Error names the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused: %v: %v", e.Verdict.Reason, context.DeadlineExceeded)
}

// Unwrap makes it a context.DeadlineExceeded.
func (*RefusedError) Unwrap() error { return context.DeadlineExceeded }
