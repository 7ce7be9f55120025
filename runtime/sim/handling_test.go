package sim

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

// graph is a front whose handlers call a leaf, and one session of the front.
type graph struct {
	*stage
	leaf  *Machine
	below *Source
	// ask is what a handler of the front does: by default, one call that takes as long as its own was to.
	ask func(h *Handling)
}

func newGraph(t *testing.T) *graph {
	t.Helper()
	g := &graph{stage: &stage{w: NewWorld(1, Network{OneWay: 5 * us})}}
	g.ask = func(h *Handling) {
		g.below.Ask(0, Ask{Service: h.Work.Service, Deadline: h.Left(), Done: func(o *Observation) { h.Resume(o.Call.Outcome == dispatcher.OutcomeOK) }})
	}
	machine := func(m MachineConfig) *Machine {
		m.Ledger = uncontrolled
		made, err := g.w.AddMachine(dispatcher.Config{TrustedNetwork: true}, m)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	g.leaf = machine(MachineConfig{CPUs: 2})
	g.m = machine(MachineConfig{Plan: func(_ Work, steps []Step) []Step {
		return append(steps, Step{For: us}, Step{Kind: StepAwait, Begin: func(h *Handling) { g.ask(h) }}, Step{For: us})
	}})
	g.below = g.w.NewSource(g.leaf, SourceConfig{})
	g.s = g.w.NewSource(g.m, SourceConfig{Observe: func(o *Observation) {
		seen, call := *o, *o.Call
		seen.Call = &call
		g.ended = append(g.ended, seen)
	}})
	g.h = g.w.AddHost(dispatcher.Config{})
	for s, h := range map[*Source]*Host{g.below: g.m.Host, g.s: g.h} {
		if err := s.AddClients(h, 1); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// audit ends a test: every call has its outcome, and the books agree.
func (g *graph) audit(t *testing.T) {
	t.Helper()
	if err := g.w.Audit(); err != nil {
		t.Error(err)
	}
	if n := g.w.Checks().Pending(); n != 0 {
		t.Errorf("%d calls have no outcome", n)
	}
}

// A handler that calls has no CPU while it waits, and its answer takes the way of both calls.
func TestHandlerCalls(t *testing.T) {
	g := newGraph(t)
	g.s.Ask(0, Ask{}) // so that both sessions are known
	g.w.Run(time.Millisecond)
	g.ended = nil
	for range 3 {
		g.s.Ask(0, Ask{Service: 100 * us})
	}
	g.w.Run(2 * time.Millisecond)
	if len(g.ended) != 3 {
		t.Fatalf("%d calls have ended", len(g.ended))
	}
	// Only one CPU of the front's is there for the first step of each; at the leaf two compute, and the third waits.
	const trips = 20 * us
	for i, want := range []time.Duration{trips + 102*us, trips + 103*us, trips + 202*us} {
		if o := g.ended[i]; o.Call.Outcome != dispatcher.OutcomeOK || o.Latency != want {
			t.Errorf("%v after %v, want %v", o.Call.Outcome, o.Latency, want)
		}
	}
	g.audit(t)
}

// A call that fails below fails its handler, whose remaining steps are skipped; one that never comes back is ended by the deadline that it was given.
func TestHandlerFails(t *testing.T) {
	g := newGraph(t)
	g.leaf.Kill()
	g.s.Ask(0, Ask{Service: 100 * us, Deadline: time.Millisecond})
	g.w.Run(20 * time.Millisecond)
	if o, at := g.only(t); o != dispatcher.OutcomeDeadline || at != time.Millisecond {
		t.Errorf("%v at %v", o, at)
	}
	g.ended = nil
	g.ask = func(h *Handling) { h.Resume(false); h.Resume(true) } // only the first counts
	g.s.Ask(0, Ask{})
	g.w.Run(30 * time.Millisecond)
	if o, _ := g.only(t); o != dispatcher.OutcomeHandlerError {
		t.Errorf("%v", o)
	}
	g.audit(t)
}

// What a process waited for when it was killed resumes nothing in the next one.
func TestHandlerOfKilledProcess(t *testing.T) {
	g := newGraph(t)
	var waits *Handling
	g.ask = func(h *Handling) { waits = h }
	g.s.Ask(0, Ask{Deadline: time.Millisecond})
	g.w.Run(100 * us)
	g.m.Kill()
	g.m.Restart()
	waits.Resume(true)
	g.w.Run(20 * time.Millisecond)
	if o, _ := g.only(t); o != dispatcher.OutcomeDeadline && o != dispatcher.OutcomePeerLost {
		t.Errorf("%v", o)
	}
	g.audit(t)
}

func TestHandlingLeft(t *testing.T) {
	g := newGraph(t)
	var left []time.Duration
	wait := us
	g.ask = func(h *Handling) {
		left = append(left, h.Left())
		g.w.At(g.w.Elapsed()+wait, func() { left = append(left, h.Left()); h.Resume(true) })
	}
	g.s.Ask(0, Ask{})
	g.w.Run(10 * time.Millisecond)
	wait = 999 * us                             // until the deadline, which is counted from its arrival
	g.s.Ask(0, Ask{Deadline: time.Millisecond}) // its first step takes 1 us
	g.w.Run(20 * time.Millisecond)
	if len(left) != 4 || left[0] != 0 || left[1] != 0 || left[2] != 999*us || left[3] != -1 {
		t.Errorf("%v", left)
	}
	g.audit(t)
}

// A handler's call inherits what its request says, a call that is repeatable may run several times, and a guard has it tried again.
func TestHandlingAsk(t *testing.T) {
	g := newGraph(t)
	g.below.cfg.Guard = &client.GuardConfig{Retry: client.RetryConfig{Attempts: 3, Budget: client.BudgetConfig{Ratio: 10}}}
	if err := g.below.AddClients(g.m.Host, 1); err != nil {
		t.Fatal(err)
	}
	ran := 0
	g.leaf.cfg.Plan = func(_ Work, steps []Step) []Step {
		return append(steps, Step{Kind: StepAwait, Begin: func(h *Handling) {
			if ran++; ran < 3 {
				h.ResumeWith(wire.StatusUnavailable)
			} else {
				h.Resume(true)
			}
		}})
	}
	g.ask = func(h *Handling) {
		a := h.Ask()
		if a.Criticality != wire.CriticalPlus || a.Deadline <= 0 {
			t.Errorf("%+v", a)
		}
		a.Repeatable = true
		a.Done = func(o *Observation) { h.Resume(o.Call.Outcome == dispatcher.OutcomeOK) }
		g.below.Ask(1, a)
	}
	g.s.Ask(0, Ask{Criticality: wire.CriticalPlus, Deadline: time.Second})
	g.w.Run(2 * time.Second)
	if o, _ := g.only(t); o != dispatcher.OutcomeOK || ran != 3 {
		t.Errorf("%v after %d runs", o, ran)
	}
	g.audit(t)
}

// A call that was begun is cancelled when its caller chooses, even by another's Done, and not after its outcome.
func TestBeginCancels(t *testing.T) {
	g := newGraph(t)
	g.below.Ask(0, Ask{}) // so that the session is known, and may have two calls outstanding
	g.w.Run(time.Millisecond)
	cancelled := func(o *Observation) bool { return o.Call.Outcome == dispatcher.OutcomeCancelled }
	var outcomes []bool
	g.ask = func(h *Handling) {
		var loser func()
		loser, _ = g.below.Begin(0, Ask{Service: time.Millisecond, Done: func(o *Observation) { outcomes = append(outcomes, cancelled(o)) }})
		winner, ok := g.below.Begin(0, Ask{Service: 10 * us, Done: func(o *Observation) {
			outcomes = append(outcomes, cancelled(o))
			loser()
			h.Resume(true)
		}})
		g.w.At(g.w.Elapsed()+5*time.Millisecond, winner) // has ended
		if !ok {
			t.Error("a call could not be made")
		}
	}
	g.s.Ask(0, Ask{})
	g.w.Run(3 * time.Millisecond)
	g.s.Ask(0, Ask{})
	g.w.Run(20 * time.Millisecond)
	if len(g.ended) != 2 || len(outcomes) != 4 {
		t.Fatalf("%d calls, %v", len(g.ended), outcomes)
	}
	if outcomes[0] || !outcomes[1] || outcomes[2] || !outcomes[3] {
		t.Errorf("cancelled: %v", outcomes)
	}
	g.audit(t)
}

func TestRegularArrivals(t *testing.T) {
	g := newGraph(t)
	var made []time.Duration
	s := g.w.NewSource(g.leaf, SourceConfig{Regular: true, Observe: func(o *Observation) { made = append(made, o.Made.Sub(g.w.Instant(0))) }})
	if err := s.AddClients(g.h, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.SetRate(1000); err != nil {
		t.Fatal(err)
	}
	g.w.Run(4500 * us)
	for i, at := range made {
		if at != time.Duration(i+1)*time.Millisecond {
			t.Errorf("call %d at %v", i, at)
		}
	}
	if len(made) != 4 {
		t.Errorf("%d calls", len(made))
	}
}
