package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// place is where a test's server and client stand: loopback over kernel UDP, or a veth pair over AF_XDP.
type place struct {
	name           string
	server, client sw.EndpointConfig
	onServer       func(func() error) error
	onClient       func(func() error) error
}

func here(f func() error) error { return f() }

// places are all places that this process has the rights for. Root has both.
func places(t *testing.T) []place {
	loopback := netip.MustParseAddr("127.0.0.1")
	all := []place{{
		name: "udp", onServer: here, onClient: here,
		server: sw.EndpointConfig{Address: loopback}, client: sw.EndpointConfig{Address: loopback},
	}}
	pair, err := lab.NewPair(lab.PairConfig{})
	if err != nil {
		requireUnprivileged(t, err)
		return all
	}
	t.Cleanup(func() {
		if err := pair.Close(); err != nil {
			t.Error(err)
		}
	})
	return append(all, place{
		name: "xdp", onServer: pair.A.Do, onClient: pair.B.Do,
		server: sw.EndpointConfig{Interface: pair.A.Interface, RequireXDP: true},
		client: sw.EndpointConfig{Interface: pair.B.Interface, RequireXDP: true},
	})
}

// start runs a server with the handlers, and dials it.
func start(t *testing.T, p place, cfg sw.ServerConfig, handlers map[string]sw.Handler) (*sw.Server, *sw.Client) {
	t.Helper()
	cfg.Endpoint = p.server
	var srv *sw.Server
	var cli *sw.Client
	if err := p.onServer(func() (err error) { srv, err = sw.NewServer(cfg); return err }); err != nil {
		t.Fatal(err)
	}
	for name, h := range handlers {
		if err := srv.Handle(name, h); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil && !errors.Is(err, sw.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	err := p.onClient(func() (err error) {
		cli, err = sw.Dial(context.Background(), srv.Addr(), sw.ClientConfig{Endpoint: p.client})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cli.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv, cli
}

func echo(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
	return append(reply, req.Payload...), nil
}

func timeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestEcho(t *testing.T) {
	for _, p := range places(t) {
		t.Run(p.name, func(t *testing.T) {
			srv, cli := start(t, p, sw.ServerConfig{}, map[string]sw.Handler{"echo": echo})
			if name := srv.Endpoint().PortName(); name != p.name {
				t.Fatalf("port is %s (%s)", name, srv.Endpoint().Mode())
			}
			ctx := timeout(t, 10*time.Second)
			for i := range 1000 {
				payload := bytes.Repeat([]byte{byte(i)}, 1+i)
				reply, err := cli.Call(ctx, "echo", payload, []byte("before "))
				if err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				if !bytes.Equal(reply, append([]byte("before "), payload...)) {
					t.Fatalf("call %d: reply %x", i, reply)
				}
			}
			stats, err := srv.Stats()
			if err != nil {
				t.Fatal(err)
			}
			if stats.Completed != 1000 || stats.Sessions != 1 {
				t.Errorf("completed %d, sessions %d", stats.Completed, stats.Sessions)
			}
			if err := srv.Endpoint().Audit(); err != nil {
				t.Error(err)
			}
		})
	}
}
