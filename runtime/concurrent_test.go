package runtime_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// TestConcurrentCalls has 64 goroutines call over eight sessions. Every answer is its own call's, no request runs twice, no two
// have one id, and the books of both ends agree.
func TestConcurrentCalls(t *testing.T) {
	const goroutines, calls, sessions = 64, 200, 8
	everywhere(t, func(t *testing.T, p place) {
		type id struct {
			session uint32
			number  uint64
		}
		var mu sync.Mutex
		ids, payloads := map[id]bool{}, map[uint64]bool{}
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{
			"once": func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
				session, number := req.ID()
				mark := binary.BigEndian.Uint64(req.Payload)
				mu.Lock()
				defer mu.Unlock()
				if ids[id{session, number}] || payloads[mark] {
					return nil, fmt.Errorf("request %d of session %x, mark %d, ran before", number, session, mark)
				}
				ids[id{session, number}], payloads[mark] = true, true
				return append(reply, req.Payload...), nil
			},
		})
		all := []*sw.Session{&cli.Session}
		for range sessions - 1 {
			all = append(all, session(t, cli))
		}
		ctx := timeout(t, guard)
		var group sync.WaitGroup
		for g := range goroutines {
			group.Go(func() {
				var buf []byte
				for i := range calls {
					payload := binary.BigEndian.AppendUint64(nil, uint64(g*calls+i))
					payload = append(payload, bytes.Repeat([]byte{byte(g)}, i)...)
					reply, err := all[g%sessions].Call(ctx, "once", payload, buf[:0])
					if err != nil || !bytes.Equal(reply, payload) {
						t.Errorf("goroutine %d, call %d: %d bytes, %v", g, i, len(reply), err)
						return
					}
					buf = reply
				}
			})
		}
		group.Wait()
		server, client := statsOf(t, srv.Endpoint()), statsOf(t, cli.Endpoint())
		const total = goroutines * calls
		if len(ids) != total || server.Completed != total || server.Admitted != total || server.Sessions != sessions {
			t.Errorf("%d ids, %d completed, %d admitted, %d sessions", len(ids), server.Completed, server.Admitted, server.Sessions)
		}
		if client.Calls != total || client.Outcomes[sw.OutcomeOK] != total || client.RequestsSent != total {
			t.Errorf("%d calls, %d good, %d sent", client.Calls, client.Outcomes[sw.OutcomeOK], client.RequestsSent)
		}
		if server.Malformed+client.Malformed+server.WrongPeer+client.WrongPeer != 0 {
			t.Errorf("%d and %d packets malformed", server.Malformed, client.Malformed)
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}

// TestBlockingHandlers has handlers wait, and others served meanwhile: none of those stands behind one that waits.
func TestBlockingHandlers(t *testing.T) {
	for _, processors := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(processors))
			everywhere(t, func(t *testing.T, p place) {
				const blocked = 20
				g := newGate()
				srv, cli := start(t, p, sw.ServerConfig{SLO: calm, Workers: blocked + 1}, map[string]sw.Handler{"gate": g.handle, "echo": echo})
				var held []<-chan error
				for range blocked {
					held = append(held, later(session(t, cli), context.Background(), "gate", nil))
				}
				for range blocked {
					within(t, "a handler is called", g.entered)
				}
				for i := range 500 {
					if _, err := cli.Call(timeout(t, guard), "echo", nil, nil); err != nil {
						t.Fatalf("call %d beside blocked handlers: %v", i, err)
					}
				}
				if stats := statsOf(t, srv.Endpoint()); stats.InService != blocked || stats.Completed != 500 {
					t.Errorf("%d in service, %d completed", stats.InService, stats.Completed)
				}
				g.open()
				for _, call := range held {
					if err := within(t, "a held call", call); err != nil {
						t.Errorf("a held call: %v", err)
					}
				}
				audit(t, srv.Endpoint(), cli.Endpoint())
			})
		})
	}
}

// TestRepliesAreOwned has handlers return what is not theirs to give away: the payload, parts of the buffer, memory of their
// own that they go on using. Each caller gets what was returned, and nobody's memory is written to.
func TestRepliesAreOwned(t *testing.T) {
	const motto = "a string that everybody shares"
	shared := []byte(motto)
	var large atomic.Pointer[[]byte]
	handlers := map[string]sw.Handler{
		"payload": func(_ context.Context, req *sw.Request, _ []byte) ([]byte, error) { return req.Payload, nil },
		"part":    func(_ context.Context, req *sw.Request, _ []byte) ([]byte, error) { return req.Payload[1:3], nil },
		"shared":  func(context.Context, *sw.Request, []byte) ([]byte, error) { return shared[:5], nil },
		"behind": func(_ context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
			return append(reply, "xyz"...)[1:], nil
		},
		"cut": func(_ context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
			return append(reply, "xyz"...)[:0], nil
		},
		"none": func(context.Context, *sw.Request, []byte) ([]byte, error) { return nil, nil },
		"scratch": func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
			_ = append(reply, "scribbled over"...)
			return append(reply, req.Payload...), nil
		},
		"large": func(_ context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
			b := bytes.Repeat([]byte("l"), 4000)
			large.Store(&b)
			return b, nil // does not fit, and stays the handler's
		},
	}
	want := map[string]string{
		"payload": "abcdef", "part": "bc", "shared": "a str", "behind": "yz", "cut": "", "none": "", "scratch": "abcdef",
	}
	everywhere(t, func(t *testing.T, p place) {
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, handlers)
		for range 100 {
			for method, reply := range want {
				got, err := cli.Call(timeout(t, guard), method, []byte("abcdef"), []byte("> "))
				if err != nil || string(got) != "> "+reply {
					t.Fatalf("%s: %q, %v", method, got, err)
				}
			}
			_, _ = cli.Call(timeout(t, guard), "large", nil, nil)
			if b := *large.Load(); !bytes.Equal(b, bytes.Repeat([]byte("l"), 4000)) {
				t.Fatal("a handler's own memory was written to")
			}
		}
		if string(shared) != motto {
			t.Errorf("shared memory was written to: %s", shared)
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}

// TestBuffers has a caller's buffers tell apart what is appended from what was there, and what is beyond.
func TestBuffers(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		_, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
		ctx := timeout(t, guard)
		whole := []byte("before|room|beyond")
		reply, err := cli.Call(ctx, "echo", []byte("ROOM"), whole[:7:11])
		if err != nil || string(reply) != "before|ROOM" || string(whole) != "before|ROOM|beyond" {
			t.Errorf("with room: %q in %q, %v", reply, whole, err)
		}
		reply, err = cli.Call(ctx, "echo", []byte("too long"), whole[:7:11])
		if err != nil || string(reply) != "before|too long" || string(whole) != "before|ROOM|beyond" {
			t.Errorf("without: %q in %q, %v", reply, whole, err)
		}
		reply, err = cli.Call(ctx, "nobody", []byte("x"), whole[:7:11])
		if err == nil || string(reply) != "before|" {
			t.Errorf("refused: %q, %v", reply, err)
		}
		payload := []byte("used at once")
		for i := range 200 { // the payload is the caller's again as soon as Call returns
			copy(payload, fmt.Sprintf("%012d", i))
			if reply, err = cli.Call(ctx, "echo", payload, reply[:0]); err != nil || string(reply) != string(payload) {
				t.Fatalf("%q: %q, %v", payload, reply, err)
			}
		}
	})
}
