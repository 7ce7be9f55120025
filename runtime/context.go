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
// One that was asked for Done, or that ended while its handler ran, is never used again for another request, since its
// children may outlive the handler.
//
// It ends with context.Canceled when nobody waits for the answer any more: the client cancelled the call, gave it up, or ended its session.
type requestContext struct {
	deadline clock.Time
	life     *life
	options  callOptions // what its request says of the calls that its handler makes
	state    atomic.Uint32

	mu    sync.Mutex
	at    time.Time // deadline, once somebody asked: the answer must always be the same
	done  chan struct{}
	err   error
	timer *time.Timer
	after map[*afterFunc]struct{}
}

// The states of a request's context. Who interrupts it (the dispatcher's owner) and whose handler returns (a worker) meet here.
const (
	contextIdle  = iota // no handler runs with it
	contextFresh        // a handler runs, and it holds nothing that a context keeps for ever
	contextUsed         // it holds a channel or an error, for ever
)

// begin has a handler run with the context.
func (c *requestContext) begin(deadline clock.Time, l *life, o callOptions) {
	c.deadline, c.life, c.options = deadline, l, o
	c.state.Store(contextFresh)
}

// interrupt ends the context of a request that nobody waits for any more; of none if its handler has returned.
func (c *requestContext) interrupt() {
	if c.state.CompareAndSwap(contextFresh, contextUsed) || c.state.Load() == contextUsed {
		c.end(context.Canceled)
	}
}

// life is what the contexts of an endpoint's requests have in common: they end with it. Only those that were asked for Done
// are on its list, so a request costs nothing here.
type life struct {
	ended   atomic.Bool
	mu      sync.Mutex
	watched map[*requestContext]struct{}
}

// add has the context ended with the rest; false if that has happened already.
func (l *life) add(c *requestContext) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended.Load() {
		return false
	}
	if l.watched == nil {
		l.watched = make(map[*requestContext]struct{})
	}
	l.watched[c] = struct{}{}
	return true
}

func (l *life) remove(c *requestContext) {
	l.mu.Lock()
	delete(l.watched, c)
	l.mu.Unlock()
}

// end cancels the contexts of all requests, those in service and those that are still to come.
func (l *life) end() {
	l.mu.Lock()
	l.ended.Store(true)
	watched := l.watched
	l.watched = nil
	l.mu.Unlock()
	for c := range watched {
		c.end(context.Canceled)
	}
}

// afterFunc is one function to be called when the context ends.
type afterFunc struct{ call func() }

var _ context.Context = (*requestContext)(nil)

// Deadline is the caller's, as far as its budget reached.
func (c *requestContext) Deadline() (time.Time, bool) {
	if c.deadline == 0 {
		return time.Time{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		c.at = time.Now().Add(c.deadline.Sub(clock.Now()))
	}
	return c.at, true
}

// Done is closed at the deadline, or when nobody waits for the answer any more, when the handler has returned, or when the endpoint is closed.
func (c *requestContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil {
		return c.done
	}
	c.state.Store(contextUsed)
	c.done = make(chan struct{})
	switch {
	case c.err != nil:
		close(c.done)
	case !c.life.add(c):
		c.endLocked(context.Canceled)
	case c.deadline != 0:
		c.timer = time.AfterFunc(c.deadline.Sub(clock.Now()), func() { c.end(context.DeadlineExceeded) })
	}
	return c.done
}

// Err says why the context ended. It looks at the clock, so that a handler that never asks for Done has the truth as well.
func (c *requestContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
	case c.deadline != 0 && clock.Now() >= c.deadline:
		c.endLocked(context.DeadlineExceeded)
	case c.life.ended.Load():
		c.endLocked(context.Canceled)
	}
	return c.err
}

// Value holds what the request says of the calls that its handler makes, for those; see WithCriticality.
func (c *requestContext) Value(key any) any {
	if _, ok := key.(optionsKey); ok {
		return &c.options
	}
	return nil
}

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
	c.endLocked(err)
}

func (c *requestContext) endLocked(err error) {
	if c.err != nil {
		return
	}
	c.state.Store(contextUsed)
	c.err = err
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.done != nil {
		close(c.done)
		c.life.remove(c)
	}
	for a := range c.after {
		go a.call()
	}
	c.after = nil
}

// finish ends the context if anybody waits for it, and reports whether it may serve another request.
func (c *requestContext) finish() (reusable bool) {
	if c.state.CompareAndSwap(contextFresh, contextIdle) {
		c.at = time.Time{}
		return true
	}
	c.end(context.Canceled)
	return false
}
