package runtime_test

import (
	"context"
	"errors"
	"os"
	goruntime "runtime"
	"sync"
	"testing"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// TestCloseUnderCalls closes a client's endpoint, from several goroutines at once, while others call, open sessions and read:
// everything ends, and says why.
func TestCloseUnderCalls(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		srv := serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
		for range 10 {
			cli := dial(t, p, srv.Addr(), sw.ClientConfig{})
			expected := func(err error) bool { return err == nil || errors.Is(err, sw.ErrClosed) }
			var group sync.WaitGroup
			answered := make(chan struct{}, 16)
			for i := range 16 {
				group.Go(func() {
					for calls := 0; ; calls++ {
						s := &cli.Session
						if i%2 == 0 { // each call on a session of its own
							var err error
							if s, err = cli.NewSession(); err != nil {
								if !expected(err) {
									t.Errorf("a new session: %v", err)
								}
								return
							}
						}
						_, err := s.Call(context.Background(), "echo", []byte("x"), nil)
						if !expected(err) {
							t.Errorf("a call: %v", err)
						}
						if err != nil {
							return
						}
						if calls == 3 {
							answered <- struct{}{}
						}
					}
				})
			}
			group.Go(func() {
				for {
					if _, err := cli.Endpoint().Stats(); err != nil {
						if !expected(err) {
							t.Errorf("stats: %v", err)
						}
						return
					}
				}
			})
			for range 16 {
				within(t, "calls are under way", answered)
			}
			for range 3 {
				group.Go(func() {
					if err := cli.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
				})
			}
			done := make(chan struct{})
			go func() { group.Wait(); close(done) }()
			within(t, "the end of all", done)
			if err := cli.Endpoint().Audit(); !errors.Is(err, sw.ErrClosed) {
				t.Errorf("an audit afterwards: %v", err)
			}
		}
		audit(t, srv.Endpoint())
	})
}

// TestCloseEndsCalls closes a client with a call that is outstanding and one that waits.
func TestCloseEndsCalls(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		g := newGate()
		defer g.open()
		srv := serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"gate": g.handle})
		cli := dial(t, p, srv.Addr(), sw.ClientConfig{Endpoint: sw.EndpointConfig{Slots: 1}})
		outstanding := later(&cli.Session, context.Background(), "gate", nil)
		within(t, "the handler is called", g.entered)
		waiting := later(&cli.Session, context.Background(), "gate", nil)
		await(t, "the second waits", func() bool { c, err := cli.Credit(); return err == nil && c.Waiting == 1 })
		if err := cli.Close(); err != nil {
			t.Error(err)
		}
		for _, call := range []<-chan error{outstanding, waiting} {
			if err := within(t, "a call ends", call); !errors.Is(err, sw.ErrClosed) {
				t.Errorf("a call: %v", err)
			}
		}
		done := make(chan *sw.Call, 1)
		late := &sw.Call{Method: sw.MethodOf("gate"), Done: func(c *sw.Call) { done <- c }}
		cli.Start(late)
		if c := within(t, "a late call ends", done); !errors.Is(c.Err(), sw.ErrClosed) || c.Outcome() != sw.OutcomeClosed {
			t.Errorf("a late call: %v", c.Err())
		}
		if _, err := cli.Credit(); !errors.Is(err, sw.ErrClosed) {
			t.Errorf("credit: %v", err)
		}
		if _, err := cli.NewSession(); !errors.Is(err, sw.ErrClosed) {
			t.Errorf("a new session: %v", err)
		}
	})
}

// TestServeInEveryState serves what is closed, what is to end at once, and twice.
func TestServeInEveryState(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		open := func() (srv *sw.Server) {
			t.Helper()
			err := p.onServer(func() (err error) { srv, err = sw.NewServer(sw.ServerConfig{Endpoint: p.server}); return err })
			if err != nil {
				t.Fatal(err)
			}
			return srv
		}
		srv := open()
		if err := srv.Endpoint().Close(); err != nil {
			t.Error(err)
		}
		if err := srv.Serve(context.Background()); !errors.Is(err, sw.ErrClosed) {
			t.Errorf("Serve of a closed server: %v", err)
		}
		if err := srv.Handle("echo", echo); !errors.Is(err, sw.ErrClosed) {
			t.Errorf("Handle of a closed server: %v", err)
		}
		if _, err := sw.Dial(context.Background(), "127.0.0.1:1", sw.ClientConfig{Shared: srv.Endpoint()}); !errors.Is(err, sw.ErrClosed) {
			t.Errorf("Dial from a closed endpoint: %v", err)
		}
		srv = open()
		if err := srv.Serve(cancelled); err != nil {
			t.Errorf("Serve that ends at once: %v", err)
		}
		if err := srv.Serve(cancelled); !errors.Is(err, sw.ErrClosed) {
			t.Errorf("Serve again: %v", err)
		}
		if err := srv.Endpoint().Close(); err != nil {
			t.Errorf("Close after Serve: %v", err)
		}
		srv = open()
		if _, err := sw.NewServer(sw.ServerConfig{Shared: srv.Endpoint()}); !errors.Is(err, sw.ErrServesAlready) {
			t.Errorf("a second server on one endpoint: %v", err)
		}
		if err := srv.Endpoint().Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestConfigsRefused are settings that cannot be meant.
func TestConfigsRefused(t *testing.T) {
	for name, cfg := range map[string]sw.ServerConfig{
		"SLO": {SLO: -1}, "workers": {Workers: -1}, "parallel": {Parallel: -1}, "queue": {QueueMax: -1}, "drain timeout": {DrainTimeout: -1},
		"slots": {Endpoint: sw.EndpointConfig{Slots: -1}}, "many slots": {Endpoint: sw.EndpointConfig{Slots: 1025}},
		"interface": {Endpoint: sw.EndpointConfig{Interface: "no-such-if", RequireXDP: true}},
	} {
		if srv, err := sw.NewServer(cfg); err == nil {
			t.Errorf("%s: taken", name)
			srv.Endpoint().Close()
		}
	}
	for _, address := range []string{"", "127.0.0.1", "127.0.0.1:0", "0.0.0.0:1", "127.0.0.1:none", "[::]:1", "::1", "[::1]"} {
		if cli, err := sw.Dial(context.Background(), address, sw.ClientConfig{}); err == nil {
			t.Errorf("%q was dialed", address)
			cli.Close()
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := sw.Dial(ctx, "127.0.0.1:1", sw.ClientConfig{}); !errors.Is(err, context.Canceled) {
		t.Errorf("dialed although cancelled: %v", err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestNothingLeaks opens and closes servers and clients: no goroutine and no descriptor may be left.
func TestNothingLeaks(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		once := func() {
			var srv *sw.Server
			cfg := sw.ServerConfig{SLO: calm, Endpoint: p.server}
			if err := p.onServer(func() (err error) { srv, err = sw.NewServer(cfg); return err }); err != nil {
				t.Fatal(err)
			}
			if err := srv.Handle("echo", echo); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			served := make(chan error, 1)
			go func() { served <- srv.Serve(ctx) }()
			var cli *sw.Client
			err := p.onClient(func() (err error) {
				cli, err = sw.Dial(ctx, srv.Addr(), sw.ClientConfig{Endpoint: p.client})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := cli.Call(timeout(t, guard), "echo", nil, nil); err != nil {
				t.Error(err)
			}
			if err := cli.Close(); err != nil {
				t.Error(err)
			}
			cancel()
			if err := within(t, "Serve", served); err != nil {
				t.Error(err)
			}
		}
		once() // what is made once and kept
		goroutines, fds := goruntime.NumGoroutine(), descriptors(t)
		for range 10 {
			once()
		}
		await(t, "no goroutine is left", func() bool { return goruntime.NumGoroutine() <= goroutines })
		await(t, "no descriptor is left", func() bool { goruntime.GC(); return descriptors(t) <= fds })
	})
}
