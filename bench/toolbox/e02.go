package toolbox

import (
	"context"
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
	"github.com/stillwater-rpc/stillwater/wire"
)

// e2 is the retry fan.
func e2() *Experiment {
	return &Experiment{
		ID: "E2", Title: "the retry fan",
		About: "A user's call goes through two servers to a third, the leaf, which cannot do anything; each of the three callers tries up to three times. None: whatever it costs. Budget: each caller pays its\n" +
			"retries from a tenth of its calls. Verdict: the leaf refuses, and says not to retry; who hears that says no more than that to its own caller. Ours: the budget, and the requests say\n" +
			"that somebody above repeats them. 100 calls a second, 60 s after 10 s. Attempts: requests at the leaf for each of the user's calls.",
		Figures: []string{figFan, figAnsweredNo},
		Jobs:    e2Jobs, Judge: e2Judge,
	}
}

const (
	fanOffered  = 100
	fanService  = 100 * time.Microsecond
	fanBudget   = 5 * time.Second
	fanWarmup   = 10 * time.Second
	fanMeasured = time.Minute
	fanLayers   = 3
	fanExtra    = 0.1 + 0.1/fanOffered // attempts of a call: the budget's ratio, and its floor of one in ten seconds
	fanEdge     = 0.001                // what is under way when counting begins
	armVerdict  = "verdict"
)

func e2Jobs(Size) (all []job) {
	for _, arm := range []string{armNone, armBudget, armVerdict, armOurs} {
		all = append(all, job{At: "three layers", Arm: arm, Play: func(ctx context.Context, seed uint64) (Sample, error) {
			f := &fan{arm: arm, w: stage(seed)}
			return f.play(ctx, seed)
		}})
	}
	return all
}

// fan is three layers of servers.
type fan struct {
	arm    string
	w      *sim.World
	leaf   *sim.Machine
	source *sim.Source // of the user's calls
	calls  int
	ended  int
}

// guard is what each caller has.
func (f *fan) guard() *client.GuardConfig {
	g := client.GuardConfig{Retry: client.RetryConfig{Attempts: fanLayers}}
	if f.arm == armNone || f.arm == armVerdict {
		g.Retry.Budget = unlimited
	}
	return &g
}

func (f *fan) play(ctx context.Context, seed uint64) (Sample, error) {
	if err := f.build(seed); err != nil {
		return Sample{}, err
	}
	for at := time.Duration(0); at < fanWarmup+fanMeasured; at += time.Second / fanOffered {
		f.w.At(at, func() { f.call(at >= fanWarmup) })
	}
	var before uint64
	f.w.At(fanWarmup, func() { before = f.leaf.Dispatcher().Door().Counters().Arrivals })
	if err := simulate.Advance(ctx, f.w, fanWarmup+fanMeasured+fanBudget); err != nil {
		return Sample{}, err
	}
	arrived := f.leaf.Dispatcher().Door().Counters().Arrivals - before
	return Sample{Figures: map[string]float64{
		figFan: float64(arrived) / float64(f.calls), figAnsweredNo: float64(f.ended) / float64(f.calls),
	}}, f.w.Audit()
}

// call is one of the user's.
func (f *fan) call(counts bool) {
	if !counts {
		f.source.Ask(0, sim.Ask{Repeatable: true, Deadline: fanBudget})
		return
	}
	f.calls++
	f.source.Ask(0, sim.Ask{Repeatable: true, Deadline: fanBudget, Done: func(o *sim.Observation) {
		switch o.Call.Outcome {
		case dispatcher.OutcomeUnavailable, dispatcher.OutcomeHandlerError:
			f.ended++
		}
	}})
}

// build puts the layers up, from the leaf.
func (f *fan) build(seed uint64) error {
	for layer := range fanLayers {
		s := server{service: fanService, slo: fanBudget, plan: f.plan(f.source)}
		m, err := s.add(f.w, seed)
		if err != nil {
			return err
		}
		if layer == 0 {
			f.leaf = m
			if f.arm == armVerdict {
				m.Dispatcher().Door().ShedShare(1)
			}
		} else if err := f.source.AddClients(m.Host, 1); err != nil {
			return err
		}
		f.source = f.w.NewSource(m, sim.SourceConfig{Guard: f.guard()})
	}
	return f.source.AddClients(f.w.AddHost(patient(slotsUsual)), 1)
}

// plan is a layer's handler: the leaf can do nothing, and the others ask the layer below.
func (f *fan) plan(below *sim.Source) sim.Plan {
	return func(_ sim.Work, steps []sim.Step) []sim.Step {
		return append(steps, sim.Step{For: fanService}, sim.Step{Kind: sim.StepAwait, Begin: func(h *sim.Handling) {
			if below == nil {
				h.ResumeWith(wire.StatusUnavailable)
				return
			}
			f.ask(h, below)
		}})
	}
}

func (f *fan) ask(h *sim.Handling, below *sim.Source) {
	a := h.Ask()
	a.Repeatable = true
	if f.arm != armOurs {
		a.AttemptsLeft = 0
	}
	a.Done = func(o *sim.Observation) {
		switch {
		case o.Call.Outcome == dispatcher.OutcomeOK:
			h.Resume(true)
		case o.Call.Outcome == dispatcher.OutcomeHandlerError, o.Call.Advice == wire.AdviceDoNotRetry: // final
			h.Resume(false)
		default:
			h.ResumeWith(wire.StatusUnavailable)
		}
	}
	below.Ask(0, a)
}

func e2Judge(t *Table) []Check {
	return []Check{
		bound("a budget of 10 % in each layer: attempts", t.Of(armBudget), figFan, math.Pow(1+fanExtra, fanLayers)+fanEdge, false),
		bound("the verdict alone: attempts", t.Of(armVerdict), figFan, 3, false),
		bound("ours, one budget over all layers: attempts", t.Of(armOurs), figFan, 1+fanExtra+fanEdge, false),
		bound("the control arm fans out, three times in three layers: attempts", t.Of(armNone), figFan, 26.9, true),
	}
}
