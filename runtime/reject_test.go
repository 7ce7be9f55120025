package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// rejection is the reason of an error, if it is a rejection.
func rejection(err error) (reason sw.RejectReason, doNotRetry bool) {
	if r, ok := errors.AsType[*sw.RejectedError](err); ok {
		return r.Reason, r.DoNotRetry
	}
	return 0, false
}

// TestRejectedUnknownMethod calls what nobody registered, and then what is registered while the server serves.
func TestRejectedUnknownMethod(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, nil)
		_, err := cli.Call(timeout(t, guard), "echo", nil, nil)
		if reason, stop := rejection(err); reason != sw.RejectUnknownMethod || stop {
			t.Errorf("an unknown method: %v", err)
		}
		if err := srv.Handle("echo", echo); err != nil {
			t.Fatal(err)
		}
		if _, err := cli.Call(timeout(t, guard), "echo", nil, nil); err != nil {
			t.Errorf("once it is registered: %v", err)
		}
		if srv.Handle("echo", echo) == nil || srv.Handle("none", nil) == nil {
			t.Error("a second handler of one name, or none, was taken")
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}

// TestRejectedOverloaded fills the request queue behind a blocked worker until it is older than the drop threshold.
func TestRejectedOverloaded(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		const slo = time.Millisecond
		g := newGate()
		srv, cli := start(t, p, sw.ServerConfig{SLO: slo, Workers: 1, Parallel: 1}, map[string]sw.Handler{"gate": g.handle})
		first := later(&cli.Session, context.Background(), "gate", nil)
		within(t, "the handler is called", g.entered)
		// Each is a session's first request, which needs no credit.
		queued := later(session(t, cli), context.Background(), "gate", nil)
		await(t, "the queue is too long", func() bool { return statsOf(t, srv.Endpoint()).Delay > slo })
		_, err := session(t, cli).Call(timeout(t, guard), "gate", nil, nil)
		if reason, stop := rejection(err); reason != sw.RejectOverloaded || !stop {
			t.Errorf("behind an old queue: %v", err)
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
		g.open()
		for _, call := range []<-chan error{first, queued} {
			if err := within(t, "an admitted call", call); err != nil {
				t.Errorf("an admitted call: %v", err)
			}
		}
		if stats := statsOf(t, srv.Endpoint()); stats.Rejected[sw.RejectOverloaded] != 1 || stats.Completed != 2 {
			t.Errorf("%d rejected, %d completed", stats.Rejected[sw.RejectOverloaded], stats.Completed)
		}
	})
}

// TestRejectedQueueFull has a queue for one behind a blocked worker: the next one is refused, and when there is room again, another is not.
func TestRejectedQueueFull(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		g := newGate()
		srv, cli := start(t, p, sw.ServerConfig{Scheme: sw.SchemeNone, Workers: 1, Parallel: 1, QueueMax: 1}, map[string]sw.Handler{"gate": g.handle})
		first := later(&cli.Session, context.Background(), "gate", nil)
		within(t, "the handler is called", g.entered)
		// Each is a session's first request, which needs no credit.
		queued := later(session(t, cli), context.Background(), "gate", nil)
		await(t, "one waits", func() bool { return statsOf(t, srv.Endpoint()).Queued == 1 })
		_, err := session(t, cli).Call(timeout(t, guard), "gate", nil, nil)
		if reason, stop := rejection(err); reason != sw.RejectOverloaded || !stop {
			t.Errorf("behind a full queue: %v", err)
		}
		g.open()
		for _, call := range []<-chan error{first, queued} {
			if err := within(t, "an admitted call", call); err != nil {
				t.Errorf("an admitted call: %v", err)
			}
		}
		if _, err := cli.Call(timeout(t, guard), "gate", nil, nil); err != nil {
			t.Errorf("when nobody waits any more: %v", err)
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}

// session opens one more session.
func session(t *testing.T, cli *sw.Client) *sw.Session {
	t.Helper()
	s, err := cli.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRejectedExpired has a client that does not know how slow a method is ask for it with too little time.
func TestRejectedExpired(t *testing.T) {
	const service = 2 * time.Second
	slow := func(_ context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
		time.Sleep(service)
		return reply, nil
	}
	everywhere(t, func(t *testing.T, p place) {
		srv, cli := start(t, p, sw.ServerConfig{}, map[string]sw.Handler{"slow": slow, "echo": echo})
		if _, err := cli.Call(timeout(t, guard), "slow", nil, nil); err != nil {
			t.Fatal(err)
		}
		p = overUDP(p) // the interface of an AF_XDP client has its program already
		other := dial(t, p, srv.Addr(), sw.ClientConfig{})
		if _, err := other.Call(timeout(t, guard), "echo", nil, nil); err != nil {
			t.Fatal(err)
		}
		_, err := other.Call(timeout(t, service*3/4), "slow", nil, nil)
		if reason, _ := rejection(err); reason != sw.RejectExpired {
			t.Errorf("too little time: %v", err)
		}
		audit(t, srv.Endpoint(), other.Endpoint())
	})
}

// TestRejectedCancelled cancels a call that waits in the server's queue: it never runs.
func TestRejectedCancelled(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		g := newGate()
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm, Workers: 1}, map[string]sw.Handler{"gate": g.handle, "echo": echo})
		first := later(&cli.Session, context.Background(), "gate", nil)
		within(t, "the handler is called", g.entered)
		ctx, cancel := context.WithCancel(context.Background())
		queued := later(session(t, cli), ctx, "echo", nil)
		await(t, "the second is queued", func() bool { return statsOf(t, srv.Endpoint()).Queued == 1 })
		cancel()
		if err := within(t, "it ends", queued); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled in the queue: %v", err)
		}
		await(t, "the server knows", func() bool { return statsOf(t, srv.Endpoint()).Queued == 0 })
		g.open()
		if err := within(t, "the first ends", first); err != nil {
			t.Error(err)
		}
		stats := statsOf(t, srv.Endpoint())
		if stats.Completed != 1 || stats.Rejected[sw.RejectCancelled]+stats.Abandoned != 1 {
			t.Errorf("%d completed, %d cancelled, %d abandoned", stats.Completed, stats.Rejected[sw.RejectCancelled], stats.Abandoned)
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}

// TestDrain ends Serve with a request in service and one queued: both are answered, a new one is refused, Serve returns nil.
func TestDrain(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		g := newGate()
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm, Workers: 1, DrainTimeout: guard}, map[string]sw.Handler{"gate": g.handle})
		running := later(&cli.Session, context.Background(), "gate", nil)
		within(t, "the handler is called", g.entered)
		queued := later(session(t, cli), context.Background(), "gate", nil)
		await(t, "the second is queued", func() bool { return statsOf(t, srv.Endpoint()).Queued == 1 })
		srv.cancel()
		// Serve notices in its own time; what comes before is still admitted, and is answered like the others.
		var admitted []<-chan error
		await(t, "the server drains", func() bool {
			late := later(session(t, cli), context.Background(), "gate", nil)
			before := len(admitted)
			await(t, "it is queued or refused", func() bool {
				select {
				case err := <-late:
					if reason, stop := rejection(err); reason != sw.RejectDraining || stop {
						t.Fatalf("while it drains: %v", err)
					}
					return true
				default:
				}
				if statsOf(t, srv.Endpoint()).Queued > 1+before {
					admitted = append(admitted, late)
				}
				return len(admitted) > before
			})
			return len(admitted) == before
		})
		g.open()
		for _, call := range append(admitted, running, queued) {
			if err := within(t, "an admitted call", call); err != nil {
				t.Errorf("an admitted call: %v", err)
			}
		}
		if err := srv.stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if _, err := srv.Stats(); !errors.Is(err, sw.ErrClosed) {
			t.Errorf("stats afterwards: %v", err)
		}
	})
}

// TestDrainTimeout has a handler that does not return: the drain ends all the same, and says so.
func TestDrainTimeout(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		g := newGate()
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm, DrainTimeout: time.Millisecond}, map[string]sw.Handler{"gate": g.handle})
		ctx, cancel := context.WithCancel(context.Background())
		call := later(&cli.Session, ctx, "gate", nil)
		seen := within(t, "the handler is called", g.entered)
		srv.cancel()
		err := within(t, "Serve returns", srv.served)
		srv.served <- errExpected // for the clean-up
		if err == nil || errors.Is(err, sw.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
		within(t, "the request's context ends", seen.Done())
		if !errors.Is(seen.Err(), context.Canceled) {
			t.Errorf("the request's context: %v", seen.Err())
		}
		cancel()
		if err := within(t, "the call ends", call); !errors.Is(err, context.Canceled) {
			t.Errorf("the call: %v", err)
		}
		g.open() // nothing that it does now may hurt
	})
}
