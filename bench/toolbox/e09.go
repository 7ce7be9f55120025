package toolbox

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// e9 is the bimodal hang.
func e9() *Experiment {
	return &Experiment{
		ID: "E9", Title: "the bimodal hang",
		About: "1,000 slots for handlers and a queue of 1,000; 1,000 calls a second (a tenth of all that at the small size), which take 100 ms, but one in twenty hangs until its deadline ends it. With a\n" +
			"deadline of 100 s, 5,000 hang in the end, of 20 s 1,000, of 10 s 500. Errors: calls that do not hang and are not answered, from when the first have hung for their deadline. Ours has credits besides: they keep what is too\n" +
			"much out of the queue, but only a deadline frees a slot.",
		Figures: []string{figErrors, figThroughput, figInService, figP99},
		Charts:  []chart{{Figure: figErrors, Title: "Errors", X: "deadline, s"}},
		Jobs:    e9Jobs, Judge: e9Judge,
	}
}

const (
	hangTakes = 100 * time.Millisecond
	hangEvery = 20               // one of so many
	hangs     = 0                // what such a call says that it takes
	hangLeast = 20 * time.Second // is measured
)

func e9Jobs(size Size) (all []job) {
	h := hang{slots: 100, cycles: 1}
	if size.Full {
		h = hang{slots: 1000, cycles: 3}
	}
	for _, deadline := range []time.Duration{100 * time.Second, 20 * time.Second, 10 * time.Second} {
		for _, arm := range []string{armNone, armOurs} {
			all = append(all, job{At: "deadline " + deadline.String(), X: deadline.Seconds(), Arm: arm, Play: func(ctx context.Context, seed uint64) (Sample, error) {
				return h.play(ctx, arm, deadline, seed)
			}})
		}
	}
	return all
}

// hang is how much is run.
type hang struct {
	slots  int           // and as many calls a second
	cycles time.Duration // deadlines that are measured
}

func (g hang) play(ctx context.Context, arm string, deadline time.Duration, seed uint64) (Sample, error) {
	measured := max(g.cycles*deadline, hangLeast)
	w := stage(seed)
	s := server{service: hangTakes, cpus: g.slots, slo: deadline, slots: 1000, serve: dispatcher.ServeConfig{Workers: g.slots, QueueMax: g.slots}, plan: func(k sim.Work, steps []sim.Step) []sim.Step {
		if k.Service == hangTakes {
			return sim.Compute(k, steps)
		}
		return append(steps, sim.Step{Kind: sim.StepAwait, Begin: func(h *sim.Handling) { // what it waits for never comes
			w.At(w.Elapsed()+max(h.Left(), 0), func() { h.Resume(false) })
		}})
	}}
	if arm == armOurs {
		s.scheme = baseline.Stillwater
	}
	m, err := s.add(w, seed)
	if err != nil {
		return Sample{}, err
	}
	t := &tally{w: w, within: deadline, from: deadline}
	calls := sim.SourceConfig{Deadline: deadline, Observe: func(o *sim.Observation) {
		if o.Work.Service == hangTakes {
			t.observe(o)
		}
	}}
	n, healthy := 0, 0
	calls.Mix = func(*rand.Rand) (class int, service time.Duration) {
		if n++; n%hangEvery == 0 {
			return 0, hangs
		}
		if w.Elapsed() >= t.from {
			healthy++
		}
		return 0, hangTakes
	}
	source, err := s.callers(w, m, calls, seed)
	if err != nil {
		return Sample{}, err
	}
	if err := source.SetRate(float64(g.slots)); err != nil {
		return Sample{}, err
	}
	w.At(t.from+measured, func() { _ = source.SetRate(0) })
	if err := simulate.Advance(ctx, w, t.from+measured+2*hangTakes); err != nil {
		return Sample{}, err
	}
	return Sample{Figures: map[string]float64{
		figErrors: 1 - float64(t.good)/float64(healthy), figThroughput: t.per(t.good), figInService: float64(m.Dispatcher().Pending()),
		figP99: float64(t.p99()),
	}}, w.Audit()
}

func e9Judge(t *Table) []Check {
	at := func(deadline string) []*Row {
		return only(t.Rows, func(r *Row) bool { return r.At == "deadline "+deadline })
	}
	return []Check{
		bound("the control arm collapses, whose deadline is 100 s: errors", at("1m40s"), figErrors, 0.75, true),
		bound("of 20 s: errors", at("20s"), figErrors, 0.13, false),
		bound("of 10 s: errors", at("10s"), figErrors, 0.005, false),
	}
}
