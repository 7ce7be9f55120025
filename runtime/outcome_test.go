package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
	"github.com/stillwater-rpc/stillwater/wire"
)

// quiet keeps the reports of panics that a test wants out of its output.
func quiet(t *testing.T) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(before) })
}

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// TestHandlerOutcomes has handlers end in every way but a reply; after each, the server goes on.
func TestHandlerOutcomes(t *testing.T) {
	quiet(t)
	long := strings.Repeat("ä", 300)
	handlers := map[string]sw.Handler{
		"echo":   echo,
		"fails":  func(context.Context, *sw.Request, []byte) ([]byte, error) { return nil, errors.New("no such row") },
		"silent": func(context.Context, *sw.Request, []byte) ([]byte, error) { return nil, errors.New("") },
		"long":   func(context.Context, *sw.Request, []byte) ([]byte, error) { return nil, errors.New(long) },
		"panics": func(context.Context, *sw.Request, []byte) ([]byte, error) { panic("a secret") },
		"late": func(_ context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
			_ = append(reply, "half an answer"...)
			panic(errors.New("late"))
		},
		"nil": func(context.Context, *sw.Request, []byte) ([]byte, error) {
			var err *nilError
			return nil, err // its Error panics
		},
		"exits": func(context.Context, *sw.Request, []byte) ([]byte, error) { goruntime.Goexit(); return nil, nil },
		"large": func(context.Context, *sw.Request, []byte) ([]byte, error) { return make([]byte, 64<<20), nil },
	}
	everywhere(t, func(t *testing.T, p place) {
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm, Workers: 2}, handlers)
		for _, c := range []struct {
			method string
			check  func(error) bool
		}{
			{"fails", func(err error) bool { return text(err) == "no such row" }},
			{"silent", func(err error) bool { return err != nil && text(err) == "" }},
			{"long", func(err error) bool { return text(err) == strings.Repeat("ä", 128) }},
			{"panics", is(sw.ErrPanic)}, {"late", is(sw.ErrPanic)}, {"nil", is(sw.ErrPanic)}, {"exits", is(sw.ErrPanic)},
			{"large", is(sw.ErrReplyTooLarge)},
		} {
			for range 5 { // more than there are workers
				reply, err := cli.Call(timeout(t, guard), c.method, []byte("x"), []byte("kept"))
				if !c.check(err) || string(reply) != "kept" {
					t.Errorf("%s: reply %q, error %v", c.method, reply, err)
				}
			}
			if reply, err := cli.Call(timeout(t, guard), "echo", []byte("alive"), nil); err != nil || string(reply) != "alive" {
				t.Fatalf("after %s: %q, %v", c.method, reply, err)
			}
		}
		if stats := statsOf(t, srv.Endpoint()); stats.Failed != 40 || stats.Completed != 48 {
			t.Errorf("%d completed, %d of them failed", stats.Completed, stats.Failed)
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

// text is a handler's error message.
func text(err error) string {
	h, ok := errors.AsType[*sw.HandlerError](err)
	if !ok {
		return fmt.Sprintf("not a handler's error: %v", err)
	}
	return h.Message
}

// TestSizes sends requests and replies of every size at the borders: what fits arrives as it was, what is one byte longer
// is refused with a type.
func TestSizes(t *testing.T) {
	handlers := map[string]sw.Handler{
		"echo": echo,
		"make": func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
			size := int(req.Payload[0])<<8 | int(req.Payload[1])
			return append(reply, bytes.Repeat(req.Payload[2:3], size)...), nil
		},
		"size": func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
			return fmt.Appendf(reply, "%d", len(req.Payload)), nil
		},
	}
	everywhere(t, func(t *testing.T, p place) {
		const (
			payloadMax = 1500 - wire.IPv4HeaderBytes - wire.UDPHeaderBytes
			replyMax   = payloadMax - wire.OverheadBytes - wire.ReplyBytes
			requestMax = payloadMax - wire.OverheadBytes - wire.OpenTokenBytes - wire.RequestBytes - 10
		)
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, handlers)
		ctx := timeout(t, guard)
		for size := range requestMax + 1 {
			payload := bytes.Repeat([]byte{byte(size)}, size)
			reply, err := cli.Call(ctx, "echo", payload, nil)
			if size <= replyMax && (err != nil || !bytes.Equal(reply, payload)) {
				t.Fatalf("echo of %d bytes: %d bytes, %v", size, len(reply), err)
			}
			if size > replyMax && !errors.Is(err, sw.ErrReplyTooLarge) {
				t.Fatalf("echo of %d bytes: %v", size, err)
			}
		}
		if reply, err := cli.Call(ctx, "size", make([]byte, requestMax), nil); err != nil || string(reply) != fmt.Sprint(requestMax) {
			t.Errorf("the largest request: %s, %v", reply, err)
		}
		for _, size := range []int{requestMax + 1, payloadMax, 1 << 16, 1 << 24} {
			if _, err := cli.Call(ctx, "size", make([]byte, size), nil); !errors.Is(err, sw.ErrTooLarge) {
				t.Errorf("a request of %d bytes: %v", size, err)
			}
		}
		for _, size := range []int{0, 1, replyMax - 1, replyMax, replyMax + 1, payloadMax, 1 << 15} {
			reply, err := cli.Call(ctx, "make", []byte{byte(size >> 8), byte(size), 'z'}, nil)
			fits := err == nil && bytes.Equal(reply, bytes.Repeat([]byte("z"), size))
			if size <= replyMax && !fits || size > replyMax && !errors.Is(err, sw.ErrReplyTooLarge) {
				t.Errorf("a reply of %d bytes: %d bytes, %v", size, len(reply), err)
			}
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}

// TestUnsent are the ways in which a call is not even sent.
func TestUnsent(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		g := newGate()
		srv := serve(t, p, sw.ServerConfig{SLO: 10 * time.Millisecond}, map[string]sw.Handler{"gate": g.handle})
		cli := dial(t, p, srv.Addr(), sw.ClientConfig{Endpoint: sw.EndpointConfig{Slots: 1}})
		held := later(&cli.Session, context.Background(), "gate", nil)
		within(t, "the handler is called", g.entered)

		if _, err := cli.Call(timeout(t, 50*time.Millisecond), "gate", nil, nil); !errors.Is(err, sw.ErrNoCredit) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a slot: %v", err)
		}
		if _, err := cli.Call(timeout(t, -time.Second), "gate", nil, nil); !errors.Is(err, sw.ErrNoCredit) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("too late from the start: %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		waiting := later(&cli.Session, ctx, "gate", nil)
		await(t, "it waits", func() bool { c, err := cli.Credit(); return err == nil && c.Waiting == 1 && c.Outstanding == 1 })
		cancel()
		if err := within(t, "a cancelled call ends", waiting); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled while it waited: %v", err)
		}
		if _, err := cli.Call(ctx, "gate", nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled from the start: %v", err)
		}

		const waitingMax = 4096
		ended := make(chan *sw.Call, waitingMax+1)
		for range waitingMax + 1 {
			cli.Start(&sw.Call{Method: sw.MethodOf("gate"), Done: func(c *sw.Call) { ended <- c }})
		}
		if c := within(t, "one call too many", ended); !errors.Is(c.Err(), sw.ErrQueueFull) || c.Outcome() != sw.OutcomeQueueFull {
			t.Errorf("beyond the queue: %v", c.Err())
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
		g.open()
		if err := within(t, "the first call", held); err != nil {
			t.Errorf("the first call: %v", err)
		}
		for range waitingMax {
			if c := within(t, "a call that waited", ended); c.Err() != nil || string(c.Reply) != "left" {
				t.Fatalf("a call that waited: %q, %v", c.Reply, c.Err())
			}
		}
		if stats := statsOf(t, srv.Endpoint()); stats.Completed != waitingMax+1 {
			t.Errorf("%d completed", stats.Completed)
		}
	})
}

// TestSentInVain are the ways in which a call ends that was sent and is not answered.
func TestSentInVain(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		g := newGate()
		defer g.open()
		srv, cli := start(t, p, sw.ServerConfig{SLO: 10 * time.Millisecond}, map[string]sw.Handler{"gate": g.handle, "echo": echo})
		if _, err := cli.Call(timeout(t, guard), "echo", nil, nil); err != nil {
			t.Fatal(err)
		}
		_, err := cli.Call(timeout(t, 100*time.Millisecond), "gate", nil, nil)
		if !errors.Is(err, sw.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no answer by the deadline: %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		running := later(&cli.Session, ctx, "gate", nil)
		within(t, "the first handler is called", g.entered)
		within(t, "the second handler is called", g.entered)
		cancel()
		if err := within(t, "the call ends", running); !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled while it ran: %v", err)
		}
		s, err := cli.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		running = later(s, context.Background(), "gate", nil)
		within(t, "the third handler is called", g.entered)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := within(t, "the call ends", running); !errors.Is(err, sw.ErrClosed) {
			t.Errorf("its session was closed: %v", err)
		}
		if _, err := s.Call(context.Background(), "echo", nil, nil); !errors.Is(err, sw.ErrClosed) {
			t.Errorf("on a closed session: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("closed again: %v", err)
		}
		if _, err := cli.Call(timeout(t, guard), "echo", nil, nil); err != nil {
			t.Errorf("another session is still there: %v", err)
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}
