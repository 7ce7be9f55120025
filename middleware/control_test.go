package middleware

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

const ms = time.Millisecond

// stand is a control with a clock of its own, and no alarm: tests ring.
type stand struct {
	*Control
	mu    sync.Mutex
	clock clock.Time
}

func newStand(t *testing.T, c Config) *stand {
	s := &stand{clock: clock.Time(time.Hour)}
	c.Now = func() clock.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.clock }
	if c.Delay == nil {
		c.Delay = func(clock.Time) time.Duration { return 0 }
	}
	c.Log = slog.New(slog.DiscardHandler)
	s.Control = New(c)
	s.alarm = func(*queue, time.Duration) {}
	t.Cleanup(func() {
		if stats := s.Stats(); stats.Running != 0 || stats.Waiting != 0 {
			t.Errorf("%d run and %d wait in the end", stats.Running, stats.Waiting)
		}
		if err := s.Audit(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *stand) pass(d time.Duration) {
	s.mu.Lock()
	s.clock = s.clock.Add(d)
	s.mu.Unlock()
	for _, q := range s.queues {
		q.ring()
	}
}

func (s *stand) get(next http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler(next).ServeHTTP(w, r)
	return w
}

var fine = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") })

// TestRefusals has each kind of refusal said.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name       string
		config     Config
		do         func(*stand)
		header     []string
		code       int
		doNotRetry bool
		after      string
		says       string
	}{
		{name: "let in", code: 200, says: "fine"},
		{name: "draining", do: func(s *stand) { s.Drain(true) }, code: 503, after: "1", says: "draining"},
		{name: "shed", do: func(s *stand) { s.Shed(1) }, code: 503, doNotRetry: true, after: "1", says: "shed"},
		{name: "retries off", do: func(s *stand) { s.RetriesOff(true) }, header: []string{AttemptHeader, "2"}, code: 503, doNotRetry: true, after: "1", says: "retries off"},
		{name: "retries off, the first", do: func(s *stand) { s.RetriesOff(true) }, header: []string{AttemptHeader, "1"}, code: 200, says: "fine"},
		{
			name: "rate", config: Config{Routes: map[string]Route{"/": {Rate: 1, Burst: 1}}}, do: func(s *stand) { s.get(fine, "/") },
			code: 429, after: "1", says: "method's rate",
		},
		{
			name: "rate of a costly one", config: Config{Routes: map[string]Route{"/": {Rate: 1, Burst: 1, Cost: 5}}}, do: func(s *stand) { s.get(fine, "/") },
			code: 429, after: "5", says: "method's rate",
		},
		{
			name: "exempt", config: Config{Routes: map[string]Route{"GET /{$}": {Exempt: true}}}, do: func(s *stand) { s.Drain(true) },
			code: 200, says: "fine",
		},
		{
			name: "waited elsewhere", config: Config{Delay: func(clock.Time) time.Duration { return 26 * ms }}, // the first above the floor of its level is refused
			do: func(s *stand) { s.get(fine, "/") }, code: 503, doNotRetry: true, after: "1", says: "overloaded",
		},
		{
			name: "sheddable", config: Config{Delay: func(clock.Time) time.Duration { return 7 * ms }}, do: func(s *stand) { s.get(fine, "/", CriticalityHeader, "sheddable") },
			header: []string{CriticalityHeader, "sheddable"}, code: 503, doNotRetry: true, after: "1", says: "overloaded",
		},
		{name: "critical then", config: Config{Delay: func(clock.Time) time.Duration { return 7 * ms }}, code: 200, says: "fine"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStand(t, test.config)
			if test.do != nil {
				test.do(s)
			}
			w := s.get(fine, "/", test.header...)
			if w.Code != test.code || w.Header().Get("Retry-After") != test.after || (w.Header().Get(DoNotRetryHeader) != "") != test.doNotRetry ||
				!strings.Contains(w.Body.String(), test.says) {
				t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
			}
		})
	}
}

// busy is a control of one permit that a handler holds until it is released.
func busy(t *testing.T, s *stand, path string) (release func()) {
	in, out, done := make(chan bool), make(chan bool), make(chan bool)
	go func() {
		s.get(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(in); <-out }), path)
		close(done)
	}()
	<-in
	return func() { close(out); <-done }
}

// awaits returns when so many wait.
func (s *stand) awaits(n int) {
	for s.Stats().Waiting != n {
		time.Sleep(100 * time.Microsecond)
	}
}

func TestWaits(t *testing.T) {
	s := newStand(t, Config{Permits: 1})
	release := busy(t, s, "/")
	code := make(chan int)
	go func() { code <- s.get(fine, "/").Code }()
	s.awaits(1)
	release()
	if got := <-code; got != 200 {
		t.Errorf("answered %d", got)
	}
}

// TestWaitsInVain: 35 ms of an SLO of 100 ms, and no longer.
func TestWaitsInVain(t *testing.T) {
	s := newStand(t, Config{Permits: 1})
	defer busy(t, s, "/")()
	code := make(chan int)
	go func() { code <- s.get(fine, "/").Code }()
	s.awaits(1)
	s.pass(35 * ms)
	s.awaits(1)
	s.pass(1)
	if got := <-code; got != 503 {
		t.Errorf("answered %d", got)
	}
}

func TestClientGoesWhileWaiting(t *testing.T) {
	s := newStand(t, Config{Permits: 1})
	defer busy(t, s, "/")()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() {
		s.Handler(fine).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		close(done)
	}()
	s.awaits(1)
	cancel()
	<-done
	if n := s.Stats().Gate.Left; n != 1 {
		t.Errorf("%d left", n)
	}
}

// TestDeadlines: what cannot be answered in time is not run.
func TestDeadlines(t *testing.T) {
	s := newStand(t, Config{Permits: 1})
	slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.pass(20 * ms) })
	for range 10 {
		s.get(slow, "/")
	}
	if w := s.get(fine, "/", TimeoutHeader, "10"); w.Code != 503 || !strings.Contains(w.Body.String(), "expired") {
		t.Errorf("%d %q with 10 ms left for 20", w.Code, w.Body)
	}
	if w := s.get(fine, "/", TimeoutHeader, "100"); w.Code != 200 {
		t.Errorf("%d %q with 100 ms left for 20", w.Code, w.Body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	w := httptest.NewRecorder()
	s.Handler(fine).ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if w.Code != 503 {
		t.Errorf("%d for a context that is over", w.Code)
	}
}

// TestRoutes: a bound of its own leaves the permits to others, and each route learns by itself.
func TestRoutes(t *testing.T) {
	s := newStand(t, Config{Permits: 1, Routes: map[string]Route{"/slow/": {InService: 1}, "/p.S/": {}, "/p.S/M": {InService: 1}}})
	release := busy(t, s, "/slow/x")
	if w := s.get(fine, "/"); w.Code != 200 {
		t.Errorf("%d while another route is full", w.Code)
	}
	release()
	if s.Lane("/p.S/M") != s.routes["/p.S/M"] || s.Lane("/p.S/N") != s.routes["/p.S/"] || s.Lane("/q.S/M") != nil || s.Lane("") != nil {
		t.Error("a gRPC method goes elsewhere")
	}
	if !s.Lane("/p.S/M").Apart() || s.Lane("/p.S/N").Apart() {
		t.Error("a bound is where it should not be")
	}
}

func TestPanicGivesBack(t *testing.T) {
	s := newStand(t, Config{Permits: 1})
	for range 3 {
		func() {
			defer func() {
				if recover() != http.ErrAbortHandler {
					t.Error("the panic was lost")
				}
			}()
			s.get(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "/")
		}()
	}
}

func TestParseLevel(t *testing.T) {
	for text, want := range map[string]admit.Level{
		"": admit.Unset, "sheddable": admit.Sheddable, "sheddable-plus": admit.SheddablePlus, "critical": admit.Critical,
		"critical-plus": admit.CriticalPlus, "Critical": admit.Unset, "5": admit.Unset,
	} {
		if got := ParseLevel(text); got != want {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", time.Hour: "3600"} {
		if got := seconds(d); got != want {
			t.Errorf("%v is %s", d, got)
		}
	}
}

func TestLevers(t *testing.T) {
	s := newStand(t, Config{Permits: 1})
	s.Shed(0.5)
	s.RetriesOff(true)
	s.Headroom(0.25)
	s.Warmup(time.Minute)
	if l := s.Stats().Levers; l.Shed != 0.5 || !l.RetriesOff || l.Headroom != 0.25 || l.WarmupLeft != time.Minute || l.Draining {
		t.Errorf("%+v", l)
	}
	s.Warmup(0)
	s.Shed(0)
	s.Headroom(0)
	release := busy(t, s, "/")
	code := make(chan int)
	go func() { code <- s.get(fine, "/").Code }()
	s.awaits(1)
	s.SetPermits(2)
	if got := <-code; got != 200 {
		t.Errorf("%d after another permit", got)
	}
	release()
	if p := s.Pressure(); p != 0 {
		t.Errorf("pressure %v of an idle server", p)
	}
}

// TestBeat has a beat be late, and others come in time.
func TestBeat(t *testing.T) {
	now := clock.Time(time.Hour)
	b := newBeat(time.Hour, func() clock.Time { return now }) // no beat comes by itself
	defer b.close()
	if d := b.delay(now); d != 0 {
		t.Errorf("%v before the first", d)
	}
	every := b.every
	if d := b.delay(now.Add(every + ms)); d != ms {
		t.Errorf("%v while one is late by 1 ms", d)
	}
	b.heard(now.Add(every + 2*ms))
	if d := b.delay(now.Add(every + 2*ms)); d != 2*ms {
		t.Errorf("%v after one that was late by 2 ms", d)
	}
	b.heard(now.Add(2*every + 2*ms))
	if d := b.delay(now.Add(2*every + 2*ms)); d != 0 {
		t.Errorf("%v after one in time", d)
	}
	b.heard(now.Add(3*every + 9*ms)) // wanted by the last delay
	b.heard(now.Add(4*every + 9*ms)) // nobody asked since: none is on its way
	if d := b.delay(now.Add(100 * every)); d != 0 {
		t.Errorf("%v after a pause", d)
	}
	b.close()
	if d := b.delay(now.Add(200 * every)); d != 0 {
		t.Errorf("%v after the end", d)
	}
}
