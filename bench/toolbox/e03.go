package toolbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// e3 is the metastable retry storm.
func e3() *Experiment {
	return &Experiment{
		ID: "E3", Title: "a retry storm that outlives its cause",
		About: "Capacity 1,000/s, exponential; callers give an attempt 1 s, and a call four. For 10 s the server has a fifth of its capacity; then it is as before. None: its queue has no end, and an attempt that\n" +
			"was given up is served all the same. The arms between change one thing of that: a queue of 500; newest first; attempts that are given up are cancelled; a budget of 10 % for\n" +
			"retries. Ours: what a client does by itself, with deadlines, credits, cancellation, three attempts and the budget. Recovered: from the end of the trouble until three seconds with 95 % of what is offered; a dash: never. After: goodput of the last 10 s.",
		Figures: []string{figAfter, figRecovery, figAttempts, figBacklog},
		Charts:  []chart{{Figure: figAfter, Title: "Goodput after it", X: "offered, calls/s"}},
		Course:  course(stormBegin, stormBegin+stormLength, "a fifth of the capacity"),
		Jobs:    e3Jobs, Judge: e3Judge,
	}
}

const (
	stormService  = time.Millisecond
	stormTimeout  = time.Second
	stormAttempts = 4
	stormBegin    = 10 * time.Second
	stormLength   = 10 * time.Second
	stormSlow     = 5 // times as long
	stormSettled  = 3 // seconds
	stormLast     = 10
	armQueue      = "bounded queue"
	armNewest     = "newest first"
	armCancel     = "cancellation"
	armBudget     = "budget"
)

// stormAfter is how long an arm is watched after the trouble; what waits in vain grows all the time.
func stormAfter(arm string, size Size) time.Duration {
	switch {
	case size.Full:
		return 2 * time.Minute
	case arm == armNone:
		return 30 * time.Second
	}
	return 90 * time.Second
}

func e3Jobs(size Size) (all []job) {
	add := func(offered float64, arm string) {
		all = append(all, job{At: fmt.Sprintf("%g/s", offered), X: offered, Arm: arm, Play: func(ctx context.Context, seed uint64) (Sample, error) {
			s := &storm{w: stage(seed), rng: rand.New(rand.NewPCG(seed, 0)), arm: arm, offered: offered}
			return s.play(ctx, stormAfter(arm, size), seed)
		}})
	}
	loads := []float64{240, 400, 800}
	if size.Full {
		loads = []float64{240, 400, 600, 800}
	}
	for _, offered := range loads {
		add(offered, armNone)
		if offered == 800 {
			for _, arm := range []string{armQueue, armNewest, armCancel, armBudget} {
				add(offered, arm)
			}
		}
		add(offered, armOurs)
	}
	return all
}

// storm is callers who try again, and a server that has a bad time.
type storm struct {
	w       *sim.World
	rng     *rand.Rand
	arm     string
	offered float64
	calls   func(done func(ok bool)) // makes one
	caller  *caller
	backlog func() int

	made   int
	series []float64 // calls answered, by the second
}

func (s *storm) play(ctx context.Context, after time.Duration, seed uint64) (Sample, error) {
	retry := client.RetryConfig{Attempts: stormAttempts, Budget: unlimited}
	if s.arm == armBudget {
		retry.Budget = client.BudgetConfig{}
	}
	s.caller = &caller{
		w: s.w, rng: rand.New(rand.NewPCG(seed, 1)), guard: client.NewGuard(client.GuardConfig{Retry: retry}),
		class: client.CallClass{Repeatable: true}, timeout: stormTimeout, tells: s.arm == armCancel,
	}
	end := stormBegin + stormLength + after
	s.series = make([]float64, end/time.Second)
	audit, err := s.serve(seed)
	if err != nil {
		return Sample{}, err
	}
	if s.calls == nil {
		s.calls = s.caller.call
	}
	s.arrive()
	if err := simulate.Advance(ctx, s.w, end); err != nil {
		return Sample{}, err
	}
	return s.sample(), audit()
}

// slow is how many times as long everything takes at present.
func (s *storm) slow() time.Duration {
	if at := s.w.Elapsed(); at >= stormBegin && at < stormBegin+stormLength {
		return stormSlow
	}
	return 1
}

func (s *storm) service() time.Duration { return exponential(stormService).Sample(s.rng) }

// serve puts the server up.
func (s *storm) serve(seed uint64) (audit func() error, err error) {
	if s.arm == armNewest {
		config := open(1)
		config.Order = admit.OrderConfig{NewestFirst: stormTimeout / 2}
		g := &gated{w: s.w, gate: admit.NewGate(config), service: func() time.Duration { return s.slow() * s.service() }}
		s.backlog, s.caller.send = g.gate.Waiting, func(_ int, _ time.Duration, done func(client.Ended)) func() {
			g.arrive(func(ok bool) {
				e := client.Ended{End: client.EndAnswered}
				if !ok {
					e.End = client.EndRefused
				}
				s.w.At(s.w.Elapsed(), func() { done(e) })
			})
			return nil
		}
		return g.gate.Audit, nil
	}
	config := server{service: stormService, slo: stormTimeout, plan: func(k sim.Work, steps []sim.Step) []sim.Step {
		return append(steps, sim.Step{For: s.slow() * k.Service})
	}}
	switch s.arm {
	case armQueue:
		config.serve.QueueMax, config.slots = 500, 1000
	case armOurs:
		config.scheme = baseline.Stillwater
	}
	m, err := config.add(s.w, seed)
	if err != nil {
		return nil, err
	}
	calls := sim.SourceConfig{}
	if s.arm == armOurs {
		calls.Guard = &client.GuardConfig{Retry: client.RetryConfig{Timeout: stormTimeout}}
	}
	source, err := config.callers(s.w, m, calls, seed)
	if err != nil {
		return nil, err
	}
	s.caller.send = through(s.w, source, s.service)
	if s.arm == armOurs {
		s.calls = s.production(source)
	}
	s.backlog = func() int { return int(s.w.Checks().Pending()) }
	return s.w.Audit, nil
}

// production makes calls as the runtime does: the client's dispatcher makes the attempts.
func (s *storm) production(source *sim.Source) func(done func(ok bool)) {
	return func(done func(ok bool)) {
		ask := sim.Ask{Service: s.service(), Repeatable: true, Deadline: stormAttempts * stormTimeout, Done: func(o *sim.Observation) {
			s.caller.attempts += o.Call.Attempts()
			done(o.Call.Outcome == dispatcher.OutcomeOK)
		}}
		source.Ask(s.made%source.Clients(), ask)
	}
}

// arrive makes a call, and foresees the next.
func (s *storm) arrive() {
	s.made++
	s.calls(func(ok bool) {
		if at := int(s.w.Elapsed() / time.Second); ok && at < len(s.series) {
			s.series[at]++
		}
	})
	s.w.At(s.w.Elapsed()+time.Duration(s.rng.ExpFloat64()/s.offered*float64(time.Second)), s.arrive)
}

func (s *storm) sample() Sample {
	figures := map[string]float64{
		figAfter: average(s.series[len(s.series)-stormLast:]) / s.offered, figAttempts: float64(s.caller.attempts) / float64(s.made),
		figBacklog: float64(s.backlog()),
	}
	if at := settled(s.series[(stormBegin+stormLength)/time.Second:], s.offered); at >= 0 {
		figures[figRecovery] = float64(time.Duration(at) * time.Second)
	}
	return Sample{Figures: figures, Series: s.series}
}

// settled is the first second from which three have, in the mean, 95 % of what is offered; below zero = never. Three seconds of Poisson arrivals stray by
// 2 % at 800/s.
func settled(series []float64, offered float64) int {
	for at := 0; at+stormSettled <= len(series); at++ {
		if average(series[at:at+stormSettled]) >= 0.95*offered {
			return at
		}
	}
	return -1
}

func average(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

func e3Judge(t *Table) []Check {
	within := func(arm string, limit time.Duration) Check {
		return bound(arm+" alone: recovered within", []*Row{t.Row("800/s", arm)}, figRecovery, float64(limit), false)
	}
	trapped := only(t.Of(armNone), func(r *Row) bool { return r.X >= 400 })
	return []Check{
		bound("ours: recovered within", t.Of(armOurs), figRecovery, float64(15*time.Second), false),
		bound("ours: goodput after it, of what is offered,", t.Of(armOurs), figAfter, 0.97, true),
		within(armQueue, 15*time.Second), within(armNewest, 15*time.Second), within(armCancel, 30*time.Second), within(armBudget, time.Minute),
		collapse(trapped, figAfter, 0.01),
	}
}
