package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// asked is a server with one method, whose handler is given by the test for each call.
type asked struct {
	*sw.Client
	srv     *running
	handler chan sw.Handler
}

func newAsked(t *testing.T, p place) *asked {
	a := &asked{handler: make(chan sw.Handler, 1)}
	// The least SLO that is calm: a client expires a call by the target delay, 0.4 of it, before its deadline.
	a.srv, a.Client = start(t, p, sw.ServerConfig{SLO: 10 * time.Millisecond}, map[string]sw.Handler{
		"ask": func(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
			return (<-a.handler)(ctx, req, reply)
		},
	})
	return a
}

// ask has the handler run in one call with that much time (zero = no deadline), and returns when both have ended.
func (a *asked) ask(t *testing.T, limit time.Duration, h func(ctx context.Context, req *sw.Request)) error {
	t.Helper()
	ran := make(chan struct{})
	a.handler <- func(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		defer close(ran) // the race detector does not see what goes through the kernel
		h(ctx, req)
		return reply, nil
	}
	ctx := context.Background()
	if limit != 0 {
		ctx = timeout(t, limit)
	}
	_, err := a.Call(ctx, "ask", nil, nil)
	within(t, "the handler has run", ran)
	return err
}

// TestRequestDeadline has handlers see their caller's deadline, always the same, and none where there is none.
func TestRequestDeadline(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		a := newAsked(t, p)
		for range 20 { // requests use one another's objects
			var first, second time.Time
			var has bool
			wanted := time.Now().Add(guard)
			if err := a.ask(t, guard, func(ctx context.Context, req *sw.Request) {
				first, has = ctx.Deadline()
				for range 100 {
					second, _ = ctx.Deadline()
				}
				if req.Deadline() == 0 || ctx.Err() != nil {
					t.Errorf("deadline %v, error %v", req.Deadline(), ctx.Err())
				}
			}); err != nil {
				t.Fatal(err)
			}
			if !has || first != second || first.Sub(wanted).Abs() > guard/4 {
				t.Errorf("deadline %v, then %v, has %v; the caller's is %v", first, second, has, wanted)
			}
			if err := a.ask(t, 0, func(ctx context.Context, req *sw.Request) {
				if at, has := ctx.Deadline(); has || req.Deadline() != 0 || ctx.Err() != nil {
					t.Errorf("a deadline %v from nowhere, error %v", at, ctx.Err())
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestFarDeadline calls with a deadline that nanoseconds cannot express.
func TestFarDeadline(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		a := newAsked(t, p)
		ctx, cancel := context.WithDeadline(context.Background(), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
		defer cancel()
		a.handler <- echo
		if _, err := a.Call(ctx, "ask", nil, nil); err != nil {
			t.Error(err)
		}
	})
}

// TestRequestContextEnds has contexts end by the deadline and by the handler's return, and stay as they ended.
func TestRequestContextEnds(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		a := newAsked(t, p)
		type pair struct{ ctx, child context.Context }
		entered, after := make(chan pair, 2), make(chan error, 1)
		err := a.ask(t, 100*time.Millisecond, func(c context.Context, _ *sw.Request) {
			child, cancel := context.WithCancel(c)
			t.Cleanup(cancel) // not before: it must end with its parent
			context.AfterFunc(c, func() { after <- c.Err() })
			entered <- pair{c, child}
			<-c.Done()
		})
		if err != nil && !errors.Is(err, sw.ErrDeadline) { // the handler may be a moment before its caller's deadline
			t.Errorf("the call: %v", err)
		}
		if err := within(t, "what was to be called after it", after); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the context after its deadline: %v", err)
		}
		seen := within(t, "the handler was called", entered)
		within(t, "the child ends", seen.child.Done())
		if !errors.Is(seen.ctx.Err(), context.DeadlineExceeded) || !errors.Is(seen.child.Err(), context.DeadlineExceeded) {
			t.Errorf("the context %v, its child %v", seen.ctx.Err(), seen.child.Err())
		}
		if err := a.ask(t, 0, func(c context.Context, _ *sw.Request) {
			stop := context.AfterFunc(c, func() { t.Error("stopped, and called all the same") })
			if !stop() || stop() {
				t.Error("stop has it wrong")
			}
			child, cancel := context.WithTimeout(c, guard)
			t.Cleanup(cancel)
			if c.Err() != nil || child.Err() != nil {
				t.Errorf("a new request's context has ended: %v", c.Err())
			}
			entered <- pair{c, child}
		}); err != nil {
			t.Fatal(err)
		}
		seen = within(t, "the handler was called", entered)
		within(t, "the child ends", seen.child.Done())
		if !errors.Is(seen.ctx.Err(), context.Canceled) || !errors.Is(seen.child.Err(), context.Canceled) {
			t.Errorf("after the return: %v, its child %v", seen.ctx.Err(), seen.child.Err())
		}
		if err := a.ask(t, 0, func(c context.Context, _ *sw.Request) {
			if c == seen.ctx || c.Err() != nil {
				t.Errorf("a context that is known outside came back: %v", c.Err())
			}
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRequestContextErr looks at nothing but Err until it is set: Done must agree with it at once, and it must stay.
func TestRequestContextErr(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		a := newAsked(t, p)
		ended := make(chan context.Context, 1)
		_ = a.ask(t, 100*time.Millisecond, func(c context.Context, _ *sw.Request) {
			for c.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			select {
			case <-c.Done():
			default:
				t.Errorf("the error is %v, and Done is open", c.Err())
			}
			ended <- c
		})
		c := within(t, "the handler returns", ended)
		if err := a.ask(t, 0, func(next context.Context, _ *sw.Request) {
			if next.Err() != nil || !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Errorf("the next request's context %v, the last one's %v", next.Err(), c.Err())
			}
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRequestContextEndsWithEndpoint closes the endpoint under a handler, which waits for nothing else; its answer still leaves.
func TestRequestContextEndsWithEndpoint(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		a := newAsked(t, p)
		entered := make(chan struct{})
		a.handler <- func(ctx context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
			close(entered)
			<-ctx.Done()
			if !errors.Is(ctx.Err(), context.Canceled) {
				t.Errorf("the context: %v", ctx.Err())
			}
			return append(reply, "good-bye"...), nil
		}
		type result struct {
			reply []byte
			err   error
		}
		call := make(chan result, 1)
		go func() {
			reply, err := a.Call(context.Background(), "ask", nil, nil)
			call <- result{reply, err}
		}()
		within(t, "the handler is called", entered)
		if err := a.srv.Endpoint().Close(); err != nil {
			t.Error(err)
		}
		if r := within(t, "the call ends", call); r.err != nil || string(r.reply) != "good-bye" {
			t.Errorf("the call: %q, %v", r.reply, r.err)
		}
	})
}

// TestCriticalityOf has a context say what it was told last, and a handler's what its request says.
func TestCriticalityOf(t *testing.T) {
	none := context.Background()
	plus := sw.WithCriticality(none, sw.CriticalPlus)
	for _, c := range []struct {
		ctx  context.Context
		want sw.Criticality
	}{
		{none, 0}, {plus, sw.CriticalPlus}, {sw.Repeatable(plus), sw.CriticalPlus}, {sw.WithCriticality(plus, sw.Sheddable), sw.Sheddable}, {sw.NoWait(none), 0},
	} {
		if got := sw.CriticalityOf(c.ctx); got != c.want {
			t.Errorf("level %d, want %d", got, c.want)
		}
	}
	everywhere(t, func(t *testing.T, p place) {
		a := newAsked(t, p)
		for _, said := range []sw.Criticality{sw.Sheddable, 0, sw.CriticalPlus} {
			heard := make(chan sw.Criticality, 1)
			a.handler <- func(ctx context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
				heard <- sw.CriticalityOf(ctx)
				return reply, nil
			}
			if _, err := a.Call(sw.WithCriticality(none, said), "ask", nil, nil); err != nil {
				t.Fatal(err)
			}
			if got := within(t, "the handler has run", heard); got != said {
				t.Errorf("a call of level %d has a handler of level %d", said, got)
			}
		}
	})
}
