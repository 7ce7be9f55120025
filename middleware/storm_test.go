package middleware

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

const (
	stormCallers = 8
	stormCalls   = 500
)

// TestStorm has handlers panic, clients go, an operator pull levers, and a clock that runs. In the end every permit is back, and each request was answered once or had its panic.
func TestStorm(t *testing.T) {
	seed := seedtest.Seed(t)
	s := newStand(t, Config{Permits: 2, Waiting: 4, Routes: map[string]Route{"/slow": {InService: 1}, "/cheap": {Rate: 1000, Burst: 100}, "/free": {Exempt: true}}})
	var inside, most, answered, panicked atomic.Int64
	h := s.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/free" {
			n := inside.Add(1)
			defer inside.Add(-1)
			for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
			}
		}
		runtime.Gosched()
		if r.Header.Get("Fail") != "" {
			panic(http.ErrAbortHandler)
		}
	}))
	paths := []string{"/", "/slow", "/cheap", "/free"}
	call := func(rng *rand.Rand) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		r := httptest.NewRequest("GET", paths[rng.IntN(len(paths))], nil).WithContext(ctx)
		if rng.IntN(5) == 0 {
			r.Header.Set("Fail", "1")
		}
		if rng.IntN(3) == 0 {
			go cancel()
		}
		w := httptest.NewRecorder()
		defer func() {
			if recover() != nil {
				panicked.Add(1)
			} else {
				answered.Add(1)
			}
		}()
		h.ServeHTTP(w, r)
	}
	var callers, others sync.WaitGroup
	for i := range stormCallers {
		callers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for range stormCalls {
				call(rng)
			}
		})
	}
	over := make(chan bool)
	others.Go(func() { s.operate(t, rand.New(rand.NewPCG(seed, stormCallers)), over) })
	callers.Wait()
	close(over)
	others.Wait()
	if n := answered.Load() + panicked.Load(); n != stormCallers*stormCalls {
		t.Errorf("%d of %d ended", n, stormCallers*stormCalls)
	}
	if most.Load() > 3 {
		t.Errorf("%d were inside at once, with 2 permits and a route of 1", most.Load())
	}
}

// operate pulls levers, looks at the books, and has time pass.
func (s *stand) operate(t *testing.T, rng *rand.Rand, over <-chan bool) {
	for {
		select {
		case <-over:
			return
		default:
		}
		s.pass(ms)
		s.RetriesOff(rng.IntN(2) == 0)
		s.Drain(rng.IntN(10) == 0)
		s.Shed(float64(rng.IntN(50)) / 100)
		s.SetPermits(1 + rng.IntN(2))
		if err := s.Audit(); err != nil {
			t.Error(err)
		}
		runtime.Gosched()
	}
}

// TestPassesLeaveInEveryState: a pass that is given up waiting, running, and refused.
func TestPassesLeaveInEveryState(t *testing.T) {
	s := newStand(t, Config{Permits: 1})
	running, v := s.Arrive(Arrival{})
	waiting, w := s.Arrive(Arrival{})
	late, x := s.Arrive(Arrival{})
	if !v.OK || !w.OK || !x.OK {
		t.Fatal(v, w, x)
	}
	waiting.Leave()
	s.pass(36 * ms) // late was told that it is refused
	late.Leave()
	next, _ := s.Arrive(Arrival{})
	running.Leave() // next may run
	next.Leave()
	var none *Pass
	none.Leave()
	none.Done(true)
	if v, err := none.Wait(t.Context()); !v.OK || err != nil {
		t.Error("a request of an exempt route does not run")
	}
	if n := s.Stats().Gate; n.Left != 1 || n.RefusedLate != 1 || n.Done != 2 {
		t.Errorf("%+v", n)
	}
	if pass, v := s.Arrive(Arrival{Lane: Exempt, Level: admit.Sheddable}); pass != nil || !v.OK {
		t.Error("an exempt lane counts")
	}
}
