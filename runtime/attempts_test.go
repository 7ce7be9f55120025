package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// layers are three servers, each a client of the next: the user calls front, front calls middle, middle calls leaf.
type layers struct {
	front, middle, leaf *running
	*sw.Client          // the user's
}

// threeLayers has a leaf with the handler. The calls in between are marked repeatable, and hand on what the leaf says, with its error.
func threeLayers(t *testing.T, leaf sw.Handler) *layers {
	p := places(t)[0]
	l := &layers{leaf: serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"leaf": leaf})}
	pass := func(to *sw.Client, method string) sw.Handler {
		return func(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
			return to.Call(sw.Repeatable(ctx), method, req.Payload, reply)
		}
	}
	below := dial(t, p, l.leaf.Addr(), sw.ClientConfig{})
	l.middle = serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"middle": pass(below, "leaf")})
	above := dial(t, p, l.middle.Addr(), sw.ClientConfig{})
	l.front = serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"front": pass(above, "middle")})
	l.Client = dial(t, p, l.front.Addr(), sw.ClientConfig{})
	return l
}

// A call that is cancelled stops the work in all three layers, and its criticality and its deadline come down to the last of them.
func TestCancelledCallStopsAllLayers(t *testing.T) {
	type seen struct {
		level    sw.Criticality
		deadline bool
	}
	entered, left := make(chan seen, 1), make(chan error, 1)
	l := threeLayers(t, func(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		_, deadline := ctx.Deadline()
		entered <- seen{req.Criticality(), deadline}
		<-ctx.Done()
		left <- ctx.Err()
		return reply, ctx.Err()
	})
	ctx, cancel := context.WithTimeout(sw.WithCriticality(context.Background(), sw.SheddablePlus), guard)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := l.Call(ctx, "front", nil, nil)
		ended <- err
	}()
	if got := within(t, "the leaf is called", entered); got != (seen{sw.SheddablePlus, true}) {
		t.Errorf("the leaf sees %+v", got)
	}
	cancel()
	if err := within(t, "the call ends", ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := within(t, "the leaf stops", left); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, srv := range []*running{l.front, l.middle, l.leaf} {
		await(t, "a server has nothing in service", func() bool { return statsOf(t, srv.Endpoint()).InService == 0 })
		if got := statsOf(t, srv.Endpoint()).Interrupted; got != 1 {
			t.Errorf("%d interrupted", got)
		}
	}
}

// Where the user's call is repeatable, it is the one that is tried again, and the layers below make one attempt at each. Where it is not, the next layer does.
// An error of the leaf that another attempt may mend is known for one in all layers.
func TestOneLayerRepeats(t *testing.T) {
	for _, users := range []bool{true, false} {
		var attempts atomic.Int64
		l := threeLayers(t, func(context.Context, *sw.Request, []byte) ([]byte, error) {
			attempts.Add(1)
			return nil, sw.ErrUnavailable
		})
		ctx, cancel := context.WithTimeout(context.Background(), guard)
		defer cancel()
		if users {
			ctx = sw.Repeatable(ctx)
		}
		const calls = 100
		for range calls {
			if _, err := l.Call(ctx, "front", nil, nil); !errors.Is(err, sw.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		// A tenth of the calls, the attempt that a budget begins with, and what its floor earns in the time that this takes.
		if got := attempts.Load(); got < calls+calls/10-1 || got > calls+calls/10+10 {
			t.Errorf("user repeats: %v; %d attempts at the leaf for %d calls", users, got, calls)
		}
		for layer, ep := range map[string]*sw.Endpoint{"user": l.Endpoint(), "middle's client": l.leaf.Endpoint()} {
			retries := statsOf(t, ep).AttemptCounts.Retries
			if (retries > 0) != (layer == "user" && users) {
				t.Errorf("user repeats: %v; %s made %d retries", users, layer, retries)
			}
		}
	}
}

// A handler's own error is an answer, and so is a refusal that says not to try again, from however far below.
func TestAnswersAreNotRepeated(t *testing.T) {
	var attempts atomic.Int64
	p := places(t)[0]
	fail := func(err error) sw.Handler {
		return func(context.Context, *sw.Request, []byte) ([]byte, error) {
			attempts.Add(1)
			return nil, err
		}
	}
	_, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{
		"own": fail(errors.New("own")), "forbidden": fail(&sw.RejectedError{Reason: sw.RejectOverloaded, DoNotRetry: true}),
		"panics": func(context.Context, *sw.Request, []byte) ([]byte, error) {
			attempts.Add(1)
			panic("expected")
		},
	})
	for _, method := range []string{"own", "forbidden", "panics"} {
		attempts.Store(0)
		_, err := cli.Call(sw.Repeatable(context.Background()), method, nil, nil)
		if err == nil || errors.Is(err, sw.ErrUnavailable) || attempts.Load() != 1 {
			t.Errorf("%s: %v, %d attempts", method, err, attempts.Load())
		}
	}
}

// A handler whose own time is up answers at the instant at which its caller gives up. Whichever is first, it's an attempt that may be made again.
func TestDeadlineOfAHandlerIsUnavailable(t *testing.T) {
	var attempts atomic.Int64
	_, cli := start(t, places(t)[0], sw.ServerConfig{SLO: calm}, map[string]sw.Handler{
		"late": func(context.Context, *sw.Request, []byte) ([]byte, error) {
			attempts.Add(1)
			return nil, fmt.Errorf("asking the backend: %w", context.DeadlineExceeded)
		},
		"cancelled": func(context.Context, *sw.Request, []byte) ([]byte, error) {
			attempts.Add(1)
			return nil, context.Canceled
		},
	})
	for method, want := range map[string]struct {
		unavailable bool
		attempts    int64
	}{"late": {true, 2}, "cancelled": {false, 1}} { // a budget begins with one attempt
		attempts.Store(0)
		_, err := cli.Call(sw.Repeatable(context.Background()), method, nil, nil)
		if errors.Is(err, sw.ErrUnavailable) != want.unavailable || attempts.Load() < want.attempts || !want.unavailable && attempts.Load() != want.attempts {
			t.Errorf("%s: %v, %d attempts", method, err, attempts.Load())
		}
	}
}

// Who does not want to wait for a credit is told at once. The first call of a session needs none, and nobody answers it.
func TestNoWait(t *testing.T) {
	p := places(t)[0]
	block := make(chan struct{})
	_, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{
		"block": func(context.Context, *sw.Request, []byte) ([]byte, error) {
			<-block
			return nil, nil
		},
	})
	done := make(chan error, 1)
	cli.Start(&sw.Call{Method: sw.MethodOf("block"), Done: func(c *sw.Call) { done <- c.Err() }})
	var c sw.Call
	c.Inherit(sw.NoWait(sw.Repeatable(sw.WithCriticality(context.Background(), sw.Critical))))
	if !c.NoWait || !c.Repeatable || c.Criticality != sw.Critical || c.Deadline != 0 || c.AttemptsLeft != 0 {
		t.Errorf("%+v", &c)
	}
	if _, err := cli.Call(sw.NoWait(context.Background()), "block", nil, nil); !errors.Is(err, sw.ErrNoCredit) {
		t.Errorf("without a credit: %v", err)
	}
	close(block)
	if err := within(t, "the first call ends", done); err != nil {
		t.Error(err)
	}
	if _, err := cli.Call(sw.NoWait(context.Background()), "block", nil, nil); err != nil {
		t.Errorf("with a credit: %v", err)
	}
}

// A handler whose client closes its session has nobody to answer either.
func TestClosedSessionInterrupts(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		entered, left := make(chan struct{}), make(chan error, 1)
		_, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{
			"wait": func(ctx context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
				close(entered)
				<-ctx.Done()
				left <- ctx.Err()
				return reply, nil
			},
			"echo": echo,
		})
		s, err := cli.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = s.Call(context.Background(), "wait", nil, nil) }()
		within(t, "the handler is called", entered)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := within(t, "the handler stops", left); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestInterruptionsStayWithTheirRequest cancels calls at any time while others run on the same workers and request objects: the context of one that nobody cancels
// has not ended when its handler begins, nor when it returns.
func TestInterruptionsStayWithTheirRequest(t *testing.T) {
	const calls = 3000
	p := places(t)[0]
	var wrong atomic.Int64
	look := func(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		if req.Payload[0] == 0 { // one that somebody cancels
			if req.Payload[1]%2 == 0 {
				<-ctx.Done()
			}
			return reply, nil
		}
		if ctx.Err() != nil {
			wrong.Add(1)
		}
		return append(reply, 1), nil
	}
	_, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"look": look})
	var group sync.WaitGroup
	for worker := range 4 {
		s, err := cli.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for i := range calls {
				ctx, cancel := context.WithCancel(context.Background())
				if worker%2 == 0 {
					time.AfterFunc(time.Duration(i%50)*time.Microsecond, cancel)
					_, _ = s.Call(ctx, "look", []byte{0, byte(i)}, nil)
				} else if reply, err := s.Call(ctx, "look", []byte{1, 0}, nil); err != nil || len(reply) != 1 {
					t.Errorf("%x, %v", reply, err)
				}
				cancel()
			}
		})
	}
	group.Wait()
	if n := wrong.Load(); n != 0 {
		t.Errorf("%d handlers had the end of another request's context", n)
	}
}

func TestAlternate(t *testing.T) {
	p := places(t)[0]
	_, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
	_, other := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
	if err := cli.SetAlternate(&other.Session); !errors.Is(err, sw.ErrOtherDispatcher) {
		t.Errorf("of another endpoint: %v", err)
	}
	second, err := cli.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(cli.SetAlternate(second), cli.SetAlternate(nil)); err != nil {
		t.Error(err)
	}
}

// A client that switches everything off does what it did before there was anything to switch off, and one that switches everything on has its calls answered.
func TestEverythingOnAndOff(t *testing.T) {
	p := places(t)[0]
	srv := serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
	for _, cfg := range []sw.ClientConfig{
		{Retry: sw.RetryConfig{Off: true}},
		{Hedge: sw.HedgeConfig{Percentile: 0.95}, Throttle: sw.ThrottleConfig{K: 2}, Breaker: sw.BreakerConfig{Failures: 0.5}},
	} {
		cli := dial(t, p, srv.Addr(), cfg)
		for range 200 {
			if reply, err := cli.Call(sw.Repeatable(context.Background()), "echo", []byte("x"), nil); err != nil || string(reply) != "x" {
				t.Fatalf("%q, %v", reply, err)
			}
		}
	}
}
