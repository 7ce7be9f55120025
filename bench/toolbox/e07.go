package toolbox

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// e7 is hedging.
func e7() *Experiment {
	return &Experiment{
		ID: "E7", Title: "hedging",
		About: "Fan-out: a request calls each of 100 servers, whose handlers take 1 ms and, one of a hundred, stall for a second; it is as slow as the slowest. Slowdown: two servers at 70 % of their\n" +
			"capacity, which halves for 5 s; a call is good if it is answered within 500 ms. Ours is what a client does by itself: a second request to another server after the learnt 95th\n" +
			"percentile, from a budget of 10 %, and the loser is cancelled; counted after 2 s. No budget: an event loop of the experiment's sends it after a fixed 3 ms, whatever it costs, and both\n" +
			"run. Slow: requests that take more than 500 ms. Load: requests to servers, of those without hedges.",
		Figures: []string{figSlow, figLoadTimes, figAfter, figRecovery, figP99},
		Course:  course(hedgeBegin, hedgeBegin+hedgeLength, "half of the capacity"),
		Jobs:    e7Jobs, Judge: e7Judge,
	}
}

const (
	hedgeService  = time.Millisecond
	hedgeStall    = time.Second
	hedgeStalls   = 0.01
	hedgeSlow     = 500 * time.Millisecond
	hedgeFan      = 100
	hedgeFixed    = 3 * time.Millisecond // about the 95th percentile of 1 ms, exponential
	hedgeRequests = 100.0                // a second, of fan-out
	hedgeWarmup   = 2 * time.Second      // of fan-out: until each server's percentile is known
	hedgeServers  = 2
	hedgeLoad     = 0.7
	hedgeBegin    = 10 * time.Second // of the slowdown
	hedgeLength   = 5 * time.Second
	armFixed      = "no budget"
	fanOut        = "fan-out 100"
	slowdown      = "slowdown"
)

// hedges are the arms.
func hedges(arm string) client.GuardConfig {
	c := client.GuardConfig{Retry: client.RetryConfig{Attempts: 2}}
	switch arm {
	case armOurs:
		c.Hedge.Percentile = 0.95
	case armFixed:
		c.Hedge = client.HedgeConfig{Percentile: 0.95, Min: hedgeFixed, Max: hedgeFixed}
		c.Retry.Budget = unlimited
	}
	return c
}

func e7Jobs(size Size) (all []job) {
	fan, after := 10*time.Second, 20*time.Second
	if size.Full {
		fan, after = time.Minute, time.Minute
	}
	for _, arm := range []string{armNone, armFixed, armOurs} {
		all = append(all, job{At: fanOut, Arm: arm, Play: func(ctx context.Context, seed uint64) (Sample, error) {
			h, err := newHedging(arm, hedgeFan, seed)
			if err != nil {
				return Sample{}, err
			}
			return h.fan(ctx, fan)
		}})
	}
	for _, arm := range []string{armNone, armFixed, armOurs} {
		all = append(all, job{At: slowdown, Arm: arm, Play: func(ctx context.Context, seed uint64) (Sample, error) {
			h, err := newHedging(arm, hedgeServers, seed)
			if err != nil {
				return Sample{}, err
			}
			return h.slowdown(ctx, after)
		}})
	}
	return all
}

// hedging is one client of some servers.
type hedging struct {
	w       *sim.World
	rng     *rand.Rand
	caller  *caller
	sources []*sim.Source
	stalls  bool
	slow    time.Duration // how many times as long everything takes
	calls   int
	extra   int // hedges of the production client
	ours    bool
	t       *tally
}

func newHedging(arm string, servers int, seed uint64) (*hedging, error) {
	h := &hedging{w: stage(seed), rng: rand.New(rand.NewPCG(seed, 0)), slow: 1}
	h.caller = &caller{
		w: h.w, rng: rand.New(rand.NewPCG(seed, 1)), guard: client.NewGuard(hedges(arm)), class: client.CallClass{Repeatable: true},
	}
	h.ours = arm == armOurs
	h.t = &tally{w: h.w, within: hedgeSlow, slice: time.Second}
	host := h.w.AddHost(patient(slotsUsual))
	for range servers {
		m, err := (server{service: hedgeService, slo: hedgeSlow, plan: h.plan, devices: []int{1 << 20}}).add(h.w, seed)
		if err != nil {
			return nil, err
		}
		calls := sim.SourceConfig{}
		if h.ours {
			guard := hedges(arm)
			calls.Guard = &guard
		}
		s := h.w.NewSource(m, calls)
		if err := s.AddClients(host, 1); err != nil {
			return nil, err
		}
		h.sources = append(h.sources, s)
	}
	for at, s := range h.sources {
		s.SetAlternates(h.opposite(at))
	}
	return h, nil
}

// plan computes, and now and then stalls, with no CPU.
func (h *hedging) plan(k sim.Work, steps []sim.Step) []sim.Step {
	steps = append(steps, sim.Step{For: h.slow * k.Service})
	if h.stalls && h.rng.Float64() < hedgeStalls {
		steps = append(steps, sim.Step{Kind: sim.StepDevice, For: hedgeStall})
	}
	return steps
}

// opposite is where the second request of a call goes.
func (h *hedging) opposite(at int) *sim.Source {
	return h.sources[(at+len(h.sources)/2)%len(h.sources)]
}

func (h *hedging) service() time.Duration { return exponential(hedgeService).Sample(h.rng) }

// call calls a server: as the runtime does, or with a hedge of our own.
func (h *hedging) call(at int, done func()) {
	h.calls++
	if h.ours {
		h.sources[at].Ask(0, sim.Ask{Service: h.service(), Repeatable: true, Done: func(o *sim.Observation) {
			h.extra += o.Call.Attempts() - 1
			h.w.At(h.w.Elapsed(), done)
		}})
		return
	}
	c := *h.caller
	sent := 0
	c.send = func(number int, deadline time.Duration, done func(client.Ended)) func() {
		sent++
		to := h.sources[at]
		if sent > 1 {
			to = h.opposite(at)
		}
		return through(h.w, to, h.service)(number, deadline, done)
	}
	c.attempts = 0
	c.call(func(bool) {
		h.caller.attempts += sent
		done()
	})
}

// fan makes requests of a call to each server.
func (h *hedging) fan(ctx context.Context, length time.Duration) (Sample, error) {
	h.stalls = true
	h.poisson(hedgeRequests, hedgeWarmup+length, func() {
		made, left := h.w.Elapsed(), len(h.sources)
		for at := range h.sources {
			h.call(at, func() {
				if left--; left == 0 && made >= hedgeWarmup {
					h.t.made++
					h.t.latency = append(h.t.latency, h.w.Elapsed()-made)
				}
			})
		}
	})
	if err := simulate.Advance(ctx, h.w, hedgeWarmup+length+5*hedgeStall); err != nil {
		return Sample{}, err
	}
	slow := 0
	for _, d := range h.t.latency {
		if d > hedgeSlow {
			slow++
		}
	}
	return Sample{Figures: map[string]float64{
		figSlow: float64(slow) / float64(h.t.made), figLoadTimes: h.load(), figP99: float64(h.t.p99()),
	}}, h.w.Audit()
}

// slowdown makes single calls, and halves the capacity for a while.
func (h *hedging) slowdown(ctx context.Context, after time.Duration) (Sample, error) {
	end := hedgeBegin + hedgeLength + after
	rate := hedgeLoad * (server{service: hedgeService}).capacity() * hedgeServers
	h.w.At(hedgeBegin, func() { h.slow = 2 })
	h.w.At(hedgeBegin+hedgeLength, func() { h.slow = 1 })
	h.poisson(rate, end, func() {
		made := h.w.Elapsed()
		h.call(h.rng.IntN(len(h.sources)), func() {
			if d := h.w.Elapsed() - made; d <= hedgeSlow {
				h.t.count(h.w.Elapsed())
			}
		})
	})
	if err := simulate.Advance(ctx, h.w, end); err != nil {
		return Sample{}, err
	}
	last := int(end / time.Second)
	for len(h.t.series) < last {
		h.t.series = append(h.t.series, 0)
	}
	figures := map[string]float64{
		figLoadTimes: h.load(), figAfter: average(h.t.series[last-stormLast:last]) / rate,
	}
	over := int((hedgeBegin + hedgeLength) / time.Second)
	if at := settled(h.t.series[over:last], rate); at >= 0 {
		figures[figRecovery] = float64(time.Duration(at) * time.Second)
	}
	return Sample{Figures: figures, Series: h.t.series[:last]}, h.w.Audit()
}

// load is how many requests a call is.
func (h *hedging) load() float64 {
	if h.ours {
		return 1 + float64(h.extra)/float64(h.calls)
	}
	return float64(h.caller.attempts) / float64(h.calls)
}

// poisson does something so often in a second.
func (h *hedging) poisson(perS float64, until time.Duration, do func()) {
	at := h.w.Elapsed() + time.Duration(h.rng.ExpFloat64()/perS*float64(time.Second))
	if at >= until {
		return
	}
	h.w.At(at, func() {
		do()
		h.poisson(perS, until, do)
	})
}

func e7Judge(t *Table) []Check {
	row := func(at, arm string) []*Row { return []*Row{t.Row(at, arm)} }
	return []Check{
		bound("the control arm has the tail of its servers: slow", row(fanOut, armNone), figSlow, 0.6, true),
		bound("ours: slow", row(fanOut, armOurs), figSlow, 0.02, false),
		bound("ours: load", row(fanOut, armOurs), figLoadTimes, 1.06, false),
		bound("ours: recovered from a slowdown within", row(slowdown, armOurs), figRecovery, float64(15*time.Second), false),
		bound("the control arm, without budget and cancellation, collapses: after", row(slowdown, armFixed), figAfter, 0.01, false),
	}
}
