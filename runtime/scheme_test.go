package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// TestSchemes serves and calls under each scheme: every session is answered sooner or later, whatever its half of the control holds back, and the
// books are whole.
func TestSchemes(t *testing.T) {
	for _, name := range sw.Schemes() {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, p place) {
				srv := serve(t, p, sw.ServerConfig{SLO: calm, Scheme: name}, map[string]sw.Handler{"echo": echo})
				cli := dial(t, p, srv.Addr(), sw.ClientConfig{Scheme: name, Tuning: sw.SchemeParams{SLO: calm, Clients: 3, Seed: 1}})
				for _, s := range []*sw.Session{&cli.Session, session(t, cli), session(t, cli)} {
					answered := 0
					await(t, "three calls are answered", func() bool {
						reply, err := s.Call(timeout(t, guard), "echo", []byte("x"), nil)
						switch reason, _ := rejection(err); {
						case err == nil && string(reply) == "x":
							answered++
						case errors.Is(err, sw.ErrThrottled), errors.Is(err, sw.ErrNoCredit), reason == sw.RejectOverloaded:
						default:
							t.Fatalf("reply %q, %v", reply, err)
						}
						return answered == 3
					})
				}
				audit(t, srv.Endpoint(), cli.Endpoint())
			})
		})
	}
}

// TestThrottled has a client that has seen DAGOR's first cut: a call of the lowest rank does not leave, one of the highest is served.
func TestThrottled(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		srv := serve(t, p, sw.ServerConfig{SLO: calm, Scheme: "dagor"}, map[string]sw.Handler{"echo": echo})
		cli := dial(t, p, srv.Addr(), sw.ClientConfig{Scheme: "dagor"})
		ended := make(chan error, 1)
		call := sw.Call{Method: sw.MethodOf("echo"), Done: func(c *sw.Call) { ended <- c.Err() }}
		for _, c := range []struct {
			priority uint8
			want     error
		}{{1, nil}, {128, sw.ErrThrottled}, {1, nil}} {
			call.Priority = c.priority
			cli.Start(&call)
			if err := within(t, "the call ends", ended); !errors.Is(err, c.want) {
				t.Errorf("priority %d: %v", c.priority, err)
			}
		}
		if stats := statsOf(t, srv.Endpoint()); stats.Offered != 2 {
			t.Errorf("%d requests arrived", stats.Offered)
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}

// TestUnknownScheme is refused by both ends before anything is opened, and says which there are.
func TestUnknownScheme(t *testing.T) {
	_, serverErr := sw.NewServer(sw.ServerConfig{Scheme: "fair"})
	_, clientErr := sw.Dial(context.Background(), "127.0.0.1:7700", sw.ClientConfig{Scheme: "fair"})
	for _, err := range []error{serverErr, clientErr} {
		if !errors.Is(err, sw.ErrUnknownScheme) || !strings.Contains(err.Error(), strings.Join(sw.Schemes(), ", ")) {
			t.Errorf("an unknown scheme: %v", err)
		}
	}
	if _, err := sw.NewServer(sw.ServerConfig{Tuning: sw.SchemeParams{Service: -time.Second}}); err == nil {
		t.Error("a negative service time is taken")
	}
}
