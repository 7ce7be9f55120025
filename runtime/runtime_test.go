package runtime_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// place is where a test's server and client stand: loopback over kernel UDP, or a veth pair over AF_XDP.
type place struct {
	name           string
	server, client sw.EndpointConfig
	clientAddress  netip.Addr // for a port that would not find it itself
	onServer       func(func() error) error
	onClient       func(func() error) error
}

func here(f func() error) error { return f() }

var dedicated = flag.Bool("dedicated", false, "run all endpoints that tests open in dedicated mode")

var dispatchers = flag.Int("dispatchers", 1, "run all endpoints that tests open with so many dispatchers")

// places are all places that this process has the rights for. Root has both.
func places(t *testing.T) []place {
	loopback := netip.MustParseAddr("127.0.0.1")
	all := []place{{
		name: "udp", clientAddress: loopback, onServer: here, onClient: here,
		server: sw.EndpointConfig{Address: loopback}, client: sw.EndpointConfig{Address: loopback},
	}}
	return append(all, xdpPlaces(t)...)
}

// guard bounds the waits of these tests; only a failure reaches it.
const guard = 60 * time.Second

// calm is an SLO under which no test's request is refused for what waits before it.
const calm = time.Second

// running is a server that serves.
type running struct {
	*sw.Server
	cancel context.CancelFunc
	served chan error
	once   sync.Once
	err    error
}

// stop ends Serve and returns what it returned.
func (r *running) stop() error {
	r.once.Do(func() {
		r.cancel()
		r.err = <-r.served
	})
	return r.err
}

// serve runs a server with the handlers until the test ends or stops it.
func serve(t *testing.T, p place, cfg sw.ServerConfig, handlers map[string]sw.Handler) *running {
	t.Helper()
	if cfg.Shared == nil {
		port := cfg.Endpoint.Port
		cfg.Endpoint = p.server
		cfg.Endpoint.Port, cfg.Endpoint.Dedicated = port, *dedicated
		cfg.Endpoint.Dispatchers = cmp.Or(p.server.Dispatchers, *dispatchers)
	}
	r := &running{served: make(chan error, 1)}
	if err := p.onServer(func() (err error) { r.Server, err = sw.NewServer(cfg); return err }); err != nil {
		t.Fatal(err)
	}
	for name, h := range handlers {
		if err := r.Handle(name, h); err != nil {
			t.Fatal(err)
		}
	}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	go func() { r.served <- r.Serve(ctx) }()
	t.Cleanup(func() {
		if err := r.stop(); err != nil && !t.Failed() && !errors.Is(err, sw.ErrClosed) && !errors.Is(err, errExpected) {
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

// errExpected marks what a test has looked at already.
var errExpected = errors.New("expected")

// dial dials a server from the client's side of the place.
func dial(t *testing.T, p place, address string, cfg sw.ClientConfig) *sw.Client {
	t.Helper()
	if cfg.Shared == nil {
		slots := cfg.Endpoint.Slots
		cfg.Endpoint = p.client
		cfg.Endpoint.Slots, cfg.Endpoint.Dedicated = slots, *dedicated
		cfg.Endpoint.Dispatchers = cmp.Or(p.client.Dispatchers, *dispatchers)
	}
	var cli *sw.Client
	err := p.onClient(func() (err error) {
		cli, err = sw.Dial(context.Background(), address, cfg)
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
	return cli
}

// start runs a server with the handlers, and dials it.
func start(t *testing.T, p place, cfg sw.ServerConfig, handlers map[string]sw.Handler) (*running, *sw.Client) {
	t.Helper()
	srv := serve(t, p, cfg, handlers)
	return srv, dial(t, p, srv.Addr(), sw.ClientConfig{})
}

// everywhere runs a test at every place.
func everywhere(t *testing.T, test func(t *testing.T, p place)) {
	for _, p := range places(t) {
		t.Run(p.name, func(t *testing.T) { test(t, p) })
	}
}

// await waits until something has become true.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(guard); !holds(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, guard)
		}
	}
}

// within waits for an event.
func within[T any](t *testing.T, what string, event <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-event:
	case <-time.After(guard):
		t.Fatalf("%s: not within %v", what, guard)
	}
	return value
}

// statsOf reads an endpoint's counters.
func statsOf(t *testing.T, e *sw.Endpoint) sw.Stats {
	t.Helper()
	stats, err := e.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// audit checks the books of both ends.
func audit(t *testing.T, ends ...*sw.Endpoint) {
	t.Helper()
	for _, e := range ends {
		if err := e.Audit(); err != nil {
			t.Error(err)
		}
	}
}

// later makes a call in a goroutine of its own.
func later(s *sw.Session, ctx context.Context, method string, payload []byte) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := s.Call(ctx, method, payload, nil)
		result <- err
	}()
	return result
}

// gate is a handler that says when it is called, and returns when it is let go.
type gate struct {
	entered chan context.Context
	leave   chan struct{}
}

func newGate() *gate {
	return &gate{entered: make(chan context.Context, 1000), leave: make(chan struct{})}
}

func (g *gate) handle(ctx context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
	select {
	case g.entered <- ctx:
	default: // nobody counts that many
	}
	<-g.leave
	return append(reply, "left"...), nil
}

// open lets all calls go, now and later.
func (g *gate) open() { close(g.leave) }

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
			srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
			if name := srv.Endpoint().PortName(); name != p.name {
				t.Fatalf("port is %s (%s)", name, srv.Endpoint().Mode())
			}
			ctx := timeout(t, guard)
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

func portText(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
