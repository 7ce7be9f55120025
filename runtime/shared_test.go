package runtime_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// behind turns a place around: its servers stand where the clients stood.
func behind(p place) place {
	return place{name: p.name, server: p.client, client: p.server, onServer: p.onClient, onClient: p.onServer}
}

// overUDP gives the client's side kernel UDP, in the same namespace.
func overUDP(p place) place {
	p.client = sw.EndpointConfig{Address: p.clientAddress}
	return p
}

// TestMiddleTier has handlers that call another server over their own server's endpoint: with few workers, all of them blocked in
// calls, and few Ps, the answers still come in.
func TestMiddleTier(t *testing.T) {
	for _, processors := range []int{1, 2, 4} {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d P, %d workers", processors, workers), func(t *testing.T) {
				defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(processors))
				everywhere(t, func(t *testing.T, p place) { middleTier(t, p, workers) })
			})
		}
	}
}

func middleTier(t *testing.T, p place, workers int) {
	back := serve(t, behind(p), sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
	middle := serve(t, p, sw.ServerConfig{SLO: calm, Workers: workers}, nil)
	onward := dial(t, p, back.Addr(), sw.ClientConfig{Shared: middle.Endpoint()})
	err := middle.Handle("forward", func(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		return onward.Call(ctx, "echo", req.Payload, reply)
	})
	if err != nil {
		t.Fatal(err)
	}
	front := dial(t, overUDP(p), middle.Addr(), sw.ClientConfig{})
	const goroutines, calls = 8, 100
	var group sync.WaitGroup
	for g := range goroutines {
		s := session(t, front)
		group.Go(func() {
			for i := range calls {
				ctx := context.Background() // the middle tier must not need a deadline to come back
				if i%2 == 0 {
					ctx = timeout(t, guard)
				}
				want := fmt.Sprintf("%d of %d", i, g)
				if reply, err := s.Call(ctx, "forward", []byte(want), nil); err != nil || string(reply) != want {
					t.Errorf("%s: %q, %v", want, reply, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	within(t, "all calls", done)
	for _, tier := range []*running{back, middle} {
		if stats := statsOf(t, tier.Endpoint()); stats.Completed != goroutines*calls {
			t.Errorf("%d completed", stats.Completed)
		}
	}
	audit(t, back.Endpoint(), middle.Endpoint(), front.Endpoint())
}

// TestMiddleTierCloses closes an endpoint whose handlers wait for calls over that same endpoint.
func TestMiddleTierCloses(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		g := newGate()
		defer g.open()
		back := serve(t, behind(p), sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"gate": g.handle})
		middle := serve(t, p, sw.ServerConfig{SLO: calm}, nil)
		onward := dial(t, p, back.Addr(), sw.ClientConfig{Shared: middle.Endpoint()})
		ended := make(chan error, 1)
		err := middle.Handle("forward", func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
			_, err := onward.Call(context.Background(), "gate", req.Payload, reply)
			ended <- err
			// It tries again, as handlers do, on a session that nobody has closed.
			s, err := onward.NewSession()
			if err == nil {
				_, err = s.Call(context.Background(), "gate", nil, nil)
			}
			ended <- err
			return nil, err
		})
		if err != nil {
			t.Fatal(err)
		}
		front := dial(t, overUDP(p), middle.Addr(), sw.ClientConfig{})
		ctx, cancel := context.WithCancel(context.Background())
		call := later(&front.Session, ctx, "forward", nil)
		within(t, "the last tier's handler is called", g.entered)
		closed := make(chan error, 1)
		go func() { closed <- middle.Endpoint().Close() }()
		if err := within(t, "Close", closed); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := within(t, "the inner call ends", ended); !errors.Is(err, sw.ErrClosed) {
				t.Errorf("the inner call: %v", err)
			}
		}
		cancel()
		within(t, "the outer call ends", call)
	})
}

// TestSharedByClients has a client's end leave a shared endpoint to the others.
func TestSharedByClients(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		srv, first := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
		second := dial(t, p, srv.Addr(), sw.ClientConfig{Shared: first.Endpoint()})
		if _, err := second.Call(timeout(t, guard), "echo", nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		if _, err := second.Call(timeout(t, guard), "echo", nil, nil); !errors.Is(err, sw.ErrClosed) {
			t.Errorf("the closed client: %v", err)
		}
		if _, err := first.Call(timeout(t, guard), "echo", nil, nil); err != nil {
			t.Errorf("the other client: %v", err)
		}
		await(t, "the server has heard of it", func() bool { return statsOf(t, srv.Endpoint()).Sessions == 1 })
		audit(t, srv.Endpoint(), first.Endpoint())
	})
}

// TestStartFromDone chains calls from their own Done, with one Call object, as a closed-loop generator does.
func TestStartFromDone(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		_, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
		const rounds = 1000
		ended := make(chan *sw.Call, 1)
		round := 0
		call := &sw.Call{Method: sw.MethodOf("echo"), Payload: []byte("again"), User: "mine"}
		call.Done = func(c *sw.Call) {
			if round++; c.Err() != nil || string(c.Reply) != "again" || c.User != "mine" || round == rounds {
				ended <- c
				return
			}
			c.Reply = c.Reply[:0]
			cli.Start(c)
		}
		cli.Start(call)
		if c := within(t, "the last round", ended); c.Err() != nil || round != rounds {
			t.Errorf("round %d: %q, %v", round, c.Reply, c.Err())
		}
		if n, sent := call.Number(); !sent || n != rounds-1 {
			t.Errorf("the last call's number is %d, sent %v", n, sent)
		}
	})
}

// TestTiming has the parts of a call's time sum to no more than the whole, and no failed call show an earlier one's.
func TestTiming(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		const service = 5 * time.Millisecond
		_, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{
			"sleep": func(_ context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
				time.Sleep(service)
				return reply, nil
			},
		})
		for range 5 {
			began := time.Now()
			_, at, err := cli.CallTimed(timeout(t, guard), "sleep", nil, nil)
			took := time.Since(began)
			sum := at.ClientQueue + at.Network + at.PacketQueue + at.RequestQueue + at.Service
			if err != nil || at.Service < service || sum > took || at.ClientQueue < 0 || at.Network < 0 || at.PacketQueue < 0 || at.RequestQueue < 0 {
				t.Errorf("%v: %+v is %v of %v", err, at, sum, took)
			}
			if _, at, err := cli.CallTimed(timeout(t, guard), "nobody", nil, nil); err == nil || at != (sw.Timing{}) {
				t.Errorf("a refused call: %v, %+v", err, at)
			}
		}
	})
}
