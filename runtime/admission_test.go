package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// logged has what is logged written to a buffer until the test ends.
func logged(t *testing.T) *bytes.Buffer {
	var mu sync.Mutex
	out := &bytes.Buffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(lockedWriter{&mu, out}, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return out
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func TestAdmissionRefusesNonsense(t *testing.T) {
	for _, c := range []struct {
		a    sw.Admission
		word string
	}{
		{sw.Admission{ClientRate: -1}, "client rate"},
		{sw.Admission{Warmup: -1}, "warm-up"},
		{sw.Admission{Headroom: 1.5}, "headroom"},
		{sw.Admission{Headroom: math.NaN()}, "headroom"},
		{sw.Admission{Levels: admit.LevelsConfig{Floor: 2}}, "floor"},
	} {
		if _, err := sw.NewServer(sw.ServerConfig{Admission: c.a}); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%+v: %v", c.a, err)
		}
	}
	srv, err := sw.NewServer(sw.ServerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Endpoint().Close()
	for _, c := range []struct {
		m    sw.MethodConfig
		word string
	}{
		{sw.MethodConfig{Cost: -1}, "cost"}, {sw.MethodConfig{Cost: admit.CostMax + 1}, "cost"}, {sw.MethodConfig{Weight: -1}, "weight"}, {sw.MethodConfig{Weight: admit.WeightMax + 1}, "weight"}, {sw.MethodConfig{Rate: -1}, "rate"},
		{sw.MethodConfig{Burst: 3}, "without a rate"}, {sw.MethodConfig{InService: -1}, "in service"}, {sw.MethodConfig{Criticality: 5}, "criticality"},
	} {
		if err := srv.HandleWith("m", c.m, echo); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%+v: %v", c.m, err)
		}
	}
	if err := srv.ShedShare(0.5); !errors.Is(err, sw.ErrNotServing) {
		t.Errorf("a lever before Serve: %v", err)
	}
}

// TestLevers pulls each, sees what it does to a call, sets it back, and finds all of it in the log.
func TestLevers(t *testing.T) {
	p := places(t)[0]
	out := logged(t)
	srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
	call := func() error {
		_, err := cli.Call(timeout(t, guard), "echo", nil, nil)
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		pull      func(on bool) error
		reason    sw.RejectReason // 0 = it is answered all the same
		doNotCall bool
	}{
		{"shed share", func(on bool) error {
			if on {
				return srv.ShedShare(1)
			}
			return srv.ShedShare(0)
		}, sw.RejectOverloaded, true},
		{"drain", srv.Drain, sw.RejectDraining, false},
		{"retries off", srv.RetriesOff, 0, false},
		{"freeze pool", srv.FreezePool, 0, false},
		{"headroom", func(on bool) error {
			if on {
				return srv.Headroom(0.5)
			}
			return srv.Headroom(0)
		}, 0, false},
	} {
		for _, on := range []bool{true, false} {
			if err := c.pull(on); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			reason, stop := rejection(call())
			want := c.reason
			if !on {
				want = 0
			}
			if reason != want || reason != 0 && stop != c.doNotCall {
				t.Errorf("%s, %v: %v, do not retry %v", c.name, on, reason, stop)
			}
		}
		if n := strings.Count(out.String(), `lever="`+c.name+`"`) + strings.Count(out.String(), "lever="+c.name+" "); n != 2 {
			t.Errorf("%s: %d times in the log", c.name, n)
		}
	}
	if err := errors.Join(srv.ShedShare(0.25), srv.Warmup(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if l, err := srv.Levers(); err != nil || l.Shed != 0.25 || l.WarmupLeft != time.Hour || l.Draining {
		t.Errorf("%+v, %v", l, err)
	}
	for _, err := range []error{srv.ShedShare(-0.1), srv.ShedShare(math.NaN()), srv.Headroom(2), srv.Warmup(-1), srv.Warmup(48 * time.Hour)} {
		if err == nil {
			t.Error("nonsense was taken")
		}
	}
	if l, _ := srv.Levers(); l.Shed != 0.25 {
		t.Errorf("nonsense was set: %+v", l)
	}
	audit(t, srv.Endpoint(), cli.Endpoint())
}

func TestFreezeWithoutAPool(t *testing.T) {
	srv, cli := start(t, places(t)[0], sw.ServerConfig{Scheme: sw.SchemeNone}, map[string]sw.Handler{"echo": echo})
	if _, err := cli.Call(timeout(t, guard), "echo", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := srv.FreezePool(true); !errors.Is(err, sw.ErrNoPool) {
		t.Errorf("%v", err)
	}
}

// TestPressureIsSeen has a handler see that the queue is long, and nobody see any afterwards.
func TestPressureIsSeen(t *testing.T) {
	g := newGate()
	var seen atomic.Uint64
	srv, cli := start(t, places(t)[0], sw.ServerConfig{SLO: time.Millisecond, Workers: 1, Parallel: 1, Scheme: sw.SchemeNone}, map[string]sw.Handler{
		"gate": g.handle,
		"look": func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
			seen.CompareAndSwap(0, math.Float64bits(req.Pressure())) // the first's
			return reply, nil
		},
	})
	first := later(&cli.Session, context.Background(), "gate", nil)
	within(t, "the handler is called", g.entered)
	calls := []<-chan error{first}
	for range 8 { // the first of them has others behind it
		calls = append(calls, later(session(t, cli), context.Background(), "look", nil))
	}
	await(t, "the queue is old", func() bool { return srv.Pressure() > 2 && statsOf(t, srv.Endpoint()).Queued == 8 })
	g.open()
	for _, call := range calls {
		if err := within(t, "a call", call); err != nil {
			t.Error(err)
		}
	}
	if p := math.Float64frombits(seen.Load()); p <= 2 {
		t.Errorf("the handler saw %v", p)
	}
	await(t, "the queue is gone", func() bool { return srv.Pressure() < 1 })
}

// TestMethodBound: no more of a method than its bound are in their handlers, and others are served meanwhile.
func TestMethodBound(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		g := newGate()
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
		if err := srv.HandleWith("gate", sw.MethodConfig{InService: 1}, g.handle); err != nil {
			t.Fatal(err)
		}
		bound := *dispatchers
		var held []<-chan error
		for range 6 * bound {
			held = append(held, later(session(t, cli), context.Background(), "gate", nil))
		}
		await(t, "all have come", func() bool { s := statsOf(t, srv.Endpoint()); return s.Queued+s.InService == 6*bound })
		if s := statsOf(t, srv.Endpoint()); s.InService > bound {
			t.Errorf("%d in service, the bound is %d", s.InService, bound)
		}
		if _, err := cli.Call(timeout(t, guard), "echo", nil, nil); err != nil {
			t.Error(err)
		}
		g.open()
		for _, call := range held {
			if err := within(t, "a held call", call); err != nil {
				t.Error(err)
			}
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}

// TestLeversUnderLoad has callers, some of whom give up, panic or close their sessions, while several goroutines pull levers and look at the pressure. The order is
// the scheduler's; in any, every call has one outcome, and both ends' books are whole.
func TestLeversUnderLoad(t *testing.T) {
	seed := seedtest.Seed(t)
	logged(t)
	srv, cli := start(t, places(t)[0], sw.ServerConfig{
		Admission: sw.Admission{Order: admit.OrderConfig{NewestFirst: 200 * time.Microsecond}, ClientRate: 50_000, Warmup: time.Millisecond, Tail: true},
	}, map[string]sw.Handler{
		"echo":  echo,
		"panic": func(context.Context, *sw.Request, []byte) ([]byte, error) { panic("as the test wants") },
	})
	if err := srv.HandleWith("slow", sw.MethodConfig{InService: 2, Cost: 5, Rate: 20_000}, func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		if req.Pressure() < 0 {
			t.Error("pressure below zero")
		}
		time.Sleep(time.Duration(len(req.Payload)) * time.Microsecond)
		return reply, nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Call(timeout(t, guard), "none", nil, nil); err == nil { // any answer says that it serves
		t.Fatal("a method that there is not")
	}
	ctx, cancel := context.WithCancel(context.Background())
	var callers, operators sync.WaitGroup
	for g := range 8 {
		callers.Go(func() { callAtRandom(t, cli, rand.New(rand.NewPCG(seed, uint64(g)))) })
	}
	for g := range 3 {
		operators.Go(func() { pullAtRandom(ctx, t, srv, rand.New(rand.NewPCG(seed, uint64(100+g)))) })
	}
	callers.Wait()
	cancel()
	operators.Wait()
	await(t, "all is answered", func() bool { s := statsOf(t, srv.Endpoint()); return s.Queued+s.InService == 0 })
	audit(t, srv.Endpoint(), cli.Endpoint())
	client, server := statsOf(t, cli.Endpoint()), statsOf(t, srv.Endpoint())
	if client.Calls != client.Ended() {
		t.Errorf("%d calls, %d have ended", client.Calls, client.Ended())
	}
	if server.Offered != server.Admission.Arrivals {
		t.Errorf("%d offered, the door counts %d", server.Offered, server.Admission.Arrivals)
	}
}

func callAtRandom(t *testing.T, cli *sw.Client, rng *rand.Rand) {
	s := session(t, cli)
	for i := range 300 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(100+rng.IntN(3000))*time.Microsecond)
		method := []string{"echo", "echo", "slow", "panic"}[rng.IntN(4)]
		if rng.IntN(10) == 0 {
			time.AfterFunc(time.Duration(rng.IntN(300))*time.Microsecond, cancel)
		}
		_, _ = s.Call(ctx, method, make([]byte, rng.IntN(200)), nil)
		cancel()
		if i%100 == 99 {
			s = session(t, cli)
		}
	}
}

func pullAtRandom(ctx context.Context, t *testing.T, srv *running, rng *rand.Rand) {
	for ctx.Err() == nil {
		on := rng.IntN(2) == 0
		var err error
		switch rng.IntN(7) {
		case 0:
			err = srv.ShedShare(rng.Float64() / 2)
		case 1:
			err = srv.RetriesOff(on)
		case 2:
			err = srv.FreezePool(on)
		case 3:
			err = srv.Drain(on && rng.IntN(4) == 0)
		case 4:
			err = srv.Headroom(rng.Float64() / 4)
		case 5:
			err = srv.Warmup(time.Duration(rng.IntN(int(time.Millisecond))))
		case 6:
			_, err = srv.Levers()
		}
		if err != nil || srv.Pressure() < 0 {
			t.Error(err)
		}
		time.Sleep(100 * time.Microsecond)
	}
}
