package runtime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// requestContext is the context of one request. It costs neither a goroutine nor a timer until somebody asks for Done: most
// handlers only read the deadline, if that. It ends with the deadline, or when the handler returns.
//
// One that was asked for Done is never used again for another request, since its children may outlive the handler.
type requestContext struct {
	deadline clock.Time
	watched  atomic.Bool // somebody asked for Done

	mu    sync.Mutex
	done  chan struct{}
	err   error
	timer *time.Timer
	after map[*afterFunc]struct{}
}

// afterFunc is one function to be called when the context ends.
type afterFunc struct{ call func() }

var _ context.Context = (*requestContext)(nil)

// Deadline is the caller's, as far as its budget reached.
func (c *requestContext) Deadline() (time.Time, bool) {
	if c.deadline == 0 {
		return time.Time{}, false
	}
	return time.Now().Add(c.deadline.Sub(clock.Now())), true
}

// Done is closed at the deadline, or when the handler has returned.
func (c *requestContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.watched.Store(true)
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		} else if c.deadline != 0 {
			c.timer = time.AfterFunc(c.deadline.Sub(clock.Now()), func() { c.end(context.DeadlineExceeded) })
		}
	}
	return c.done
}

// Err says why the context ended.
func (c *requestContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.deadline != 0 && clock.Now() >= c.deadline {
		return context.DeadlineExceeded
	}
	return c.err
}

// Value holds nothing.
func (c *requestContext) Value(any) any { return nil }

// AfterFunc calls f in a goroutine of its own when the context ends. Package context looks for this method, and with it starts
// no goroutine for a child.
func (c *requestContext) AfterFunc(f func()) (stop func() bool) {
	c.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	a := &afterFunc{f}
	if c.after == nil {
		c.after = make(map[*afterFunc]struct{})
	}
	c.after[a] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.after[a]
		delete(c.after, a)
		return waits
	}
}

// end closes the context, once.
func (c *requestContext) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.done != nil {
		close(c.done)
	}
	for a := range c.after {
		go a.call()
	}
	c.after = nil
}

// finish ends the context if anybody waits for it, and reports whether it may serve another request.
func (c *requestContext) finish() (reusable bool) {
	if !c.watched.Load() {
		return true
	}
	c.end(context.Canceled)
	return false
}
