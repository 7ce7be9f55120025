//go:build linux && !portable

package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/dispatcher/faults"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// onQueues are places whose ends have four queues, at which several dispatchers serve: over AF_XDP by either family, and kernel UDP.
func onQueues(t *testing.T) []place {
	t.Helper()
	all := places(t)[:1]
	for _, family := range []string{"IPv4", "IPv6"} {
		pair := labtest.TryPair(t, lab.PairConfig{RxQueueCount: 4, TxQueueCount: 4, IPv6: family == "IPv6"})
		if pair == nil {
			return all
		}
		p := onPair(pair)
		p.name += " " + family
		if family == "IPv6" {
			p.clientAddress, p.server.Address = pair.B.Address6.Addr(), pair.A.Address6.Addr()
		}
		all = append(all, p)
	}
	return all
}

// once is a handler that fails when it sees a mark for the second time.
type once struct {
	mu   sync.Mutex
	seen map[uint64]bool
}

func (o *once) handle(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
	mark := binary.BigEndian.Uint64(req.Payload)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[mark] {
		return nil, fmt.Errorf("mark %d ran before", mark)
	}
	o.seen[mark] = true
	return append(reply, req.Payload...), nil
}

// crowd is many sessions over many connections, each from a port of its own.
type crowd struct {
	sessions []*sw.Session
	mark     uint64
}

func newCrowd(t *testing.T, p place, address string, clients, each int) *crowd {
	t.Helper()
	c := &crowd{}
	for range clients {
		cli := dial(t, p, address, sw.ClientConfig{})
		c.sessions = append(c.sessions, &cli.Session)
		for range each - 1 {
			c.sessions = append(c.sessions, session(t, cli))
		}
	}
	return c
}

// ask has every session make one call at the same time, each with a mark of its own.
func (c *crowd) ask(t *testing.T) {
	t.Helper()
	var group sync.WaitGroup
	for i, s := range c.sessions {
		c.mark++
		mark := binary.BigEndian.AppendUint64(nil, c.mark)
		group.Go(func() {
			if reply, err := s.Call(timeout(t, guard), "once", mark, nil); err != nil || string(reply) != string(mark) {
				t.Errorf("session %d: %x for %x, %v", i, reply, mark, err)
			}
		})
	}
	group.Wait()
}

// TestSeveralDispatchers: 64 clients with 1,024 sessions at two and four dispatchers. Whichever queue a packet lands on, every call is answered once, and every
// dispatcher has its part.
func TestSeveralDispatchers(t *testing.T) {
	const clients, each = 64, 16
	for _, p := range onQueues(t) {
		for _, count := range []int{2, 4} {
			t.Run(fmt.Sprint(p.name, " ", count), func(t *testing.T) {
				p := p
				p.server.Dispatchers = count
				o := &once{seen: make(map[uint64]bool)}
				srv := serve(t, p, sw.ServerConfig{SLO: calm, Scheme: sw.SchemeNone}, map[string]sw.Handler{"once": o.handle})
				if mode := srv.Endpoint().Mode(); !strings.Contains(mode, fmt.Sprint(", ", count, " ")) {
					t.Errorf("mode: %s", mode)
				}
				c := newCrowd(t, overUDP(p), srv.Addr(), clients, each)
				c.ask(t)
				c.ask(t)
				stats := statsOf(t, srv.Endpoint())
				if stats.Sessions != clients*each || stats.Connections != clients || stats.Completed != uint64(len(o.seen)) || int(c.mark) != len(o.seen) {
					t.Errorf("%d sessions over %d connections, %d completed of %d", stats.Sessions, stats.Connections, stats.Completed, c.mark)
				}
				if xdp := srv.Endpoint().PortName() == "xdp"; xdp && stats.Port.HandedOver == 0 || !xdp && stats.Port.HandedOver != 0 {
					t.Errorf("%d packets were handed over, and the kernel knows whose they are: %v", stats.Port.HandedOver, !xdp)
				}
				checkSpread(t, srv, count)
				audit(t, srv.Endpoint())
			})
		}
	}
}

// checkSpread has every dispatcher have sessions, and nobody twice his part.
func checkSpread(t *testing.T, srv *running, count int) {
	t.Helper()
	credits, err := srv.Credits()
	if err != nil {
		t.Fatal(err)
	}
	have := make([]int, count)
	for _, c := range credits {
		have[c.Dispatcher]++
	}
	for i, n := range have {
		if n == 0 || n > 2*len(credits)/count+len(credits)/8 {
			t.Errorf("dispatcher %d of %d has %d of %d sessions", i, count, n, len(credits))
		}
	}
}

// TestHandoverAtMostOnce loses, repeats and reorders packets between the dispatchers and the network: what they hand each other makes no request run twice,
// and no frame is missing in the end.
func TestHandoverAtMostOnce(t *testing.T) {
	seed := seedtest.Seed(t)
	for _, p := range onQueues(t) {
		t.Run(p.name, func(t *testing.T) {
			p := p
			p.server.Dispatchers = 4
			p.server.WrapPort = func(port dispatcher.Port) dispatcher.Port {
				seed++
				return faults.Wrap(port, faults.Config{Seed: seed, Loss: 0.02, Duplicate: 0.1, Reorder: 0.1})
			}
			o := &once{seen: make(map[uint64]bool)}
			srv := serve(t, p, sw.ServerConfig{SLO: calm, Scheme: sw.SchemeNone}, map[string]sw.Handler{"once": o.handle})
			c := newCrowd(t, overUDP(p), srv.Addr(), 16, 16)
			for range 4 {
				c.ask(t)
			}
			stats := statsOf(t, srv.Endpoint())
			if len(o.seen) != int(c.mark) || stats.Duplicates == 0 {
				t.Errorf("%d of %d ran, %d duplicates came", len(o.seen), c.mark, stats.Duplicates)
			}
			audit(t, srv.Endpoint())
		})
	}
}

// TestQueuesOfSeveralDispatchers changes the number of queues under calls, at two dispatchers. One queue for both is refused.
func TestQueuesOfSeveralDispatchers(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 4, TxQueueCount: 4})
	p := onPair(pair)
	p.server.Dispatchers = 2
	srv := serve(t, p, sw.ServerConfig{SLO: brisk}, map[string]sw.Handler{"echo": echo})
	var all []*traffic
	for range 8 {
		all = append(all, newTraffic(dial(t, overUDP(p), srv.Addr(), sw.ClientConfig{})))
	}
	answered := func() {
		t.Helper()
		for _, f := range all {
			f.again()
		}
		for _, f := range all {
			await(t, "calls are answered", f.whole)
		}
	}
	answered()
	for _, count := range []int{2, 3, 4, 2, 4} {
		labtest.Must(t, srv.Endpoint().SetQueues(count))
		if got := statsOf(t, srv.Endpoint()).Port.QueuesUnserved; got != 4-count {
			t.Errorf("with %d queues, %d are unserved", count, got)
		}
		answered()
		audit(t, srv.Endpoint())
	}
	if err := srv.Endpoint().SetQueues(1); err == nil || !strings.Contains(err.Error(), "2 dispatchers on 1 of the queues") {
		t.Errorf("one queue for two dispatchers: %v", err)
	}
	answered()
	for _, f := range all {
		f.end(t)
	}
	if stats := statsOf(t, srv.Endpoint()); stats.Port.HandedOver == 0 {
		t.Error("nothing was handed over")
	}
	audit(t, srv.Endpoint())
}

// TestClientsOfSeveralDispatchers has an endpoint's clients of one server be different dispatchers', and each of them hear that the server has gone, though the
// word of that names no dispatcher.
func TestClientsOfSeveralDispatchers(t *testing.T) {
	for _, p := range onQueues(t) {
		t.Run(p.name, func(t *testing.T) {
			p.client.Dispatchers = 4
			g := newGate()
			defer g.open()
			handlers := map[string]sw.Handler{"gate": g.handle, "echo": echo}
			srv, first := start(t, p, sw.ServerConfig{SLO: calm}, handlers)
			clients := []*sw.Client{first}
			for range 7 {
				clients = append(clients, dial(t, p, srv.Addr(), sw.ClientConfig{Shared: first.Endpoint()}))
			}
			var held []<-chan error
			for _, cli := range clients {
				held = append(held, later(&cli.Session, context.Background(), "gate", nil))
				within(t, "the handler is called", g.entered)
			}
			if n := statsOf(t, srv.Endpoint()).Connections; n != 4 {
				t.Errorf("eight clients on four dispatchers have %d connections", n)
			}
			at := portOf(t, srv.Addr()).Port()
			if err := srv.Endpoint().Close(); err != nil {
				t.Error(err)
			}
			again := serve(t, p, sw.ServerConfig{SLO: calm, Endpoint: sw.EndpointConfig{Port: at}}, handlers)
			for i, call := range held {
				if err := within(t, "the call ends", call); !errors.Is(err, sw.ErrPeerLost) {
					t.Errorf("call %d: %v", i, err)
				}
			}
			for _, cli := range clients {
				for first := timeout(t, guard); errors.Is(errorOf(cli.Call(first, "echo", nil, nil)), sw.ErrPeerLost); {
				}
			}
			audit(t, again.Endpoint(), first.Endpoint())
		})
	}
}

// TestDispatchersRefused are numbers that cannot be had; kernel UDP does not hide that an interface has too few queues.
func TestDispatchersRefused(t *testing.T) {
	for _, count := range []int{-1, sw.DispatchersMax + 1} {
		if ep, err := sw.Open(sw.EndpointConfig{Dispatchers: count}); err == nil {
			t.Errorf("%d dispatchers were taken", count)
			ep.Close()
		}
	}
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2})
	for _, cfg := range []sw.EndpointConfig{{Dispatchers: 3}, {Dispatchers: 2, Queues: 1}, {Dispatchers: 2, Queue: 1}} {
		cfg.Interface = pair.A.Interface
		err := pair.A.Do(func() error {
			ep, err := sw.Open(cfg)
			if err == nil {
				ep.Close()
			}
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "each dispatcher needs a queue of its own") {
			t.Errorf("%d dispatchers on queues %d from %d on: %v", cfg.Dispatchers, cfg.Queues, cfg.Queue, err)
		}
	}
	for range 2 { // what was refused holds nothing
		err := pair.A.Do(func() error {
			ep, err := sw.Open(sw.EndpointConfig{Interface: pair.A.Interface, Dispatchers: 2, RequireXDP: true})
			if err != nil {
				return err
			}
			return ep.Close()
		})
		if err != nil {
			t.Error(err)
		}
	}
}
