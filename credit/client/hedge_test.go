package client

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// TestPercentile: of later samples the share that it promises lies below the estimate, whatever the distribution, also after it has changed by a factor of a hundred.
func TestPercentile(t *testing.T) {
	random := seedtest.Rand(t)
	shapes := map[string]func() float64{
		"exponential": func() float64 { return random.ExpFloat64() },
		"uniform":     random.Float64,
		"bimodal": func() float64 {
			if random.IntN(10) == 0 {
				return 100 + random.Float64()
			}
			return 1 + random.Float64()
		},
	}
	for name, shape := range shapes {
		for _, q := range []float64{0.5, 0.95, 0.99} {
			p := NewPercentile(q)
			for _, scale := range []float64{1e6, 1e4, 1e6} {
				for range int(200 / (1 - q)) {
					p.Sample(time.Duration(shape() * scale))
				}
				below, n := 0, int(1000/(1-q))
				for range n {
					d := time.Duration(shape() * scale)
					if v, known := p.Value(); known && d <= v {
						below++
					}
					p.Sample(d)
				}
				// Of 900 runs each: 3 % of 1-q too low in the mean (a step down is a step of the logarithm that is a little larger), with a standard deviation of 0.3 %.
				if got := float64(below) / float64(n); math.Abs(got-q) > 0.1*(1-q) {
					t.Errorf("%s, scale %.0e: %.4f below the estimate of %v", name, scale, got, q)
				}
			}
		}
	}
}

func TestPercentileBounds(t *testing.T) {
	p := NewPercentile(0.95)
	for range percentileKnown {
		if _, known := p.Value(); known {
			t.Fatal("known too early")
		}
		p.Sample(-1) // left out
		p.Sample(time.Millisecond)
	}
	if _, known := p.Value(); !known {
		t.Error("not known")
	}
	for _, extreme := range []time.Duration{0, math.MaxInt64, 0} {
		for range 100_000 {
			p.Sample(extreme)
		}
		if v, _ := p.Value(); v < 1 {
			t.Errorf("%v after samples of %v", v, extreme)
		}
	}
	for range 1000 { // it can still grow
		p.Sample(time.Millisecond)
	}
	if v, _ := p.Value(); v < 500*time.Microsecond {
		t.Errorf("%v after a thousand samples of 1ms", v)
	}
}

func TestHedgeDelay(t *testing.T) {
	for _, c := range []struct {
		cfg     HedgeConfig
		samples int
		latency time.Duration
		want    time.Duration // within a fifth; 0 = never
	}{
		{HedgeConfig{}, 100, time.Millisecond, 0},
		{HedgeConfig{Percentile: -1}, 100, time.Millisecond, 0},
		{HedgeConfig{Percentile: 0.95}, percentileKnown - 1, time.Millisecond, 0},
		{HedgeConfig{Percentile: 0.95}, percentileKnown, time.Millisecond, time.Millisecond},
		{HedgeConfig{Percentile: 0.95}, 100, time.Microsecond, hedgeMinDefault},
		{HedgeConfig{Percentile: 0.95, Max: 100 * time.Microsecond}, 100, time.Millisecond, 100 * time.Microsecond},
		{HedgeConfig{Percentile: 2}, 100, time.Millisecond, time.Millisecond},
	} {
		h := NewHedge(c.cfg)
		for range c.samples {
			h.Sample(c.latency)
		}
		d, ok := h.Delay()
		if ok != (c.want > 0) || ok && (d < c.want*4/5 || d > c.want*6/5) {
			t.Errorf("%+v: %v, %v", c, d, ok)
		}
	}
}

func TestBreakerOff(t *testing.T) {
	b := NewBreaker(BreakerConfig{})
	for range 1000 {
		p, ok := b.Allow(1)
		if !ok {
			t.Fatal("no breaker refuses")
		}
		b.Report(1, p, ReportFailure, 0)
	}
}

// TestBreakerClock: an hour idle leaves nothing of the failures before it; one that is open probes after a stall, an hour, and a jump back.
func TestBreakerClock(t *testing.T) {
	cfg := BreakerConfig{Failures: 0.5, Calls: 10}
	fail := func(b *Breaker, now clock.Time, n int) {
		for range n {
			p, _ := b.Allow(now)
			b.Report(now, p, ReportFailure, 0)
		}
	}
	now := clock.Time(2 * time.Hour)
	b := NewBreaker(cfg)
	fail(&b, now, 9)
	now = now.Add(time.Hour)
	if fail(&b, now, 9); b.State() != BreakerClosed {
		t.Error("failures of an hour ago opened it")
	}
	for _, jump := range []time.Duration{time.Second, time.Hour, -time.Hour} {
		b := NewBreaker(cfg)
		if fail(&b, now, 10); b.State() != BreakerOpen {
			t.Fatal(b.State())
		}
		if _, ok := b.Allow(now.Add(jump)); !ok {
			t.Errorf("%v later: no probe", jump)
		}
	}
}

// The wait of a breaker has a bound, and a breaker that is asked and reported to at random always comes back when the server does.
func TestBreakerComesBack(t *testing.T) {
	random := seedtest.Rand(t)
	for range 100 {
		cfg := BreakerConfig{Failures: 0.5, Wait: time.Millisecond, WaitMax: 50 * time.Millisecond}
		b := NewBreaker(cfg)
		now := clock.Time(time.Second)
		var permits []Permit
		for range 3000 {
			now = now.Add(time.Duration(random.IntN(1000)) * time.Microsecond)
			if p, ok := b.Allow(now); ok {
				permits = append(permits, p)
			}
			if n := len(permits); n > 0 && random.IntN(3) == 0 { // some twice, some never
				b.Report(now, permits[random.IntN(n)], Report(random.IntN(3)), random.Float64())
			}
		}
		for range 10 {
			now = now.Add(cfg.WaitMax)
			if p, ok := b.Allow(now); ok {
				b.Report(now, p, ReportSuccess, 0)
			}
		}
		if b.State() != BreakerClosed {
			t.Fatalf("%v after ten waits of a server that answers", b.State())
		}
	}
}

// chain is what a call goes through at a client with everything switched on: one call in eight is hedged or tried again.
func chain(g *Guard, a *Attempts, now clock.Time, i int) {
	a.Begin(g, CallClass{Repeatable: true, Deadline: now.Add(time.Second)})
	if a.Admit(g, now, 0.9) != RefusalNone {
		a.Ended(g, now, Primary, Ended{}, 0)
		return
	}
	a.Sent(g, Primary)
	a.HedgeDelay(g)
	now = now.Add(10 * time.Microsecond)
	switch i % 16 {
	case 0:
		a.Hedge(g, now)
		a.Sent(g, Hedged)
		a.Ended(g, now, Hedged, Ended{End: EndAnswered, Latency: 10 * time.Microsecond}, 0.5)
		a.Drop(g, now, Primary, 20*time.Microsecond)
		return
	case 8:
		if what, _ := a.Ended(g, now, Primary, Ended{End: EndRefused}, 0.5); what == Retry {
			a.Admit(g, now, 0.9)
			a.Sent(g, Primary)
		}
	}
	a.Ended(g, now, Primary, Ended{End: EndAnswered, Latency: 10 * time.Microsecond}, 0.5)
}

func everything() *Guard {
	return NewGuard(GuardConfig{Hedge: HedgeConfig{Percentile: 0.95}, Throttle: ThrottleConfig{K: 2}, Breaker: BreakerConfig{Failures: 0.5}})
}

func TestChainAllocatesNothing(t *testing.T) {
	g, now, i := everything(), clock.Time(time.Second), 0
	var a Attempts
	if allocs := testing.AllocsPerRun(1000, func() {
		i++
		now = now.Add(10 * time.Microsecond)
		chain(g, &a, now, i)
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// BenchmarkChain is the whole client's side of a call, with everything switched on and nothing of the dispatcher.
func BenchmarkChain(b *testing.B) {
	g, now := everything(), clock.Time(time.Second)
	var a Attempts
	b.ReportAllocs()
	for i := range b.N {
		now = now.Add(time.Microsecond)
		chain(g, &a, now, i)
	}
}

// BenchmarkChainDefault is the same with what is on unless told otherwise: the budget.
func BenchmarkChainDefault(b *testing.B) {
	g, now := NewGuard(GuardConfig{}), clock.Time(time.Second)
	var a Attempts
	b.ReportAllocs()
	for i := range b.N {
		now = now.Add(time.Microsecond)
		chain(g, &a, now, i)
	}
}
