package runtime_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

func portOf(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestRestart replaces the server under its clients: what had been sent has an unknown outcome, and what comes next is served by
// the new one, on the same client and session.
func TestRestart(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		g := newGate()
		handlers := map[string]sw.Handler{"gate": g.handle, "echo": echo}
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, handlers)
		at := portOf(t, srv.Addr()).Port()
		held := later(&cli.Session, context.Background(), "gate", nil)
		within(t, "the handler is called", g.entered)
		if err := srv.Endpoint().Close(); err != nil { // without an answer: the handler is stuck
			t.Error(err)
		}
		if err := srv.stop(); !errors.Is(err, sw.ErrClosed) {
			t.Errorf("Serve of a closed endpoint: %v", err)
		}
		again := serve(t, p, sw.ServerConfig{SLO: calm, Endpoint: sw.EndpointConfig{Port: at}}, handlers)
		if err := within(t, "the call ends", held); !errors.Is(err, sw.ErrPeerLost) {
			t.Errorf("the call that was sent: %v", err)
		}
		// The first contact with the new server goes out under the old one's token. If the machine is so slow that it is sent twice before the
		// new server refuses that, nobody knows any more whether it ran, and it is lost as well.
		first := timeout(t, guard)
		for errors.Is(errorOf(cli.Call(first, "echo", []byte("first"), nil)), sw.ErrPeerLost) {
		}
		for range 10 {
			if reply, err := cli.Call(timeout(t, guard), "echo", []byte("new"), nil); err != nil || string(reply) != "new" {
				t.Fatalf("from the new server: %q, %v", reply, err)
			}
		}
		if lost := statsOf(t, cli.Endpoint()).PeersLost; lost != 1 {
			t.Errorf("%d peers lost", lost)
		}
		g.open()
		audit(t, again.Endpoint(), cli.Endpoint())
	})
}

// TestBeforeServe calls a server that is not ready: nothing is refused, and the call is answered when it is.
func TestBeforeServe(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		var srv *sw.Server
		cfg := sw.ServerConfig{SLO: calm, Endpoint: p.server}
		if err := p.onServer(func() (err error) { srv, err = sw.NewServer(cfg); return err }); err != nil {
			t.Fatal(err)
		}
		cli := dial(t, p, srv.Addr(), sw.ClientConfig{})
		early := later(&cli.Session, context.Background(), "echo", nil)
		await(t, "the request is there", func() bool { return statsOf(t, srv.Endpoint()).NotServing > 0 })
		if err := srv.Handle("echo", echo); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- srv.Serve(ctx) }()
		if err := within(t, "the call", early); err != nil {
			t.Errorf("the early call: %v", err)
		}
		cancel()
		if err := within(t, "Serve", served); err != nil {
			t.Error(err)
		}
	})
}

// errorOf is the error of a call whose reply does not matter.
func errorOf(_ []byte, err error) error { return err }
