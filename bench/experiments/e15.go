package experiments

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// e15 is the toy ledger.
func e15() *Experiment {
	return &Experiment{
		ID: "E15", Title: "the toy ledger",
		About: "Four workers, service constant 100us, round trip 10us, no other costs. A, B, C and D register with a call each, so each has a credit; then A alone has demand. The requests that\n" +
			"start in a round of 110us, which is what a call takes, say how many of the four workers it is allowed to use; later: in the mean of the last 20 of 100 rounds. Backlog:\n" +
			"A has eight calls at any time; closed loop: four. After that all wake up, with four calls each: the burst.",
		Figures: []string{figRound1, figRound2, figRound3, figLater, figBurst, figBurstOK, figRefused, figQueued},
		Jobs:    e15Jobs, Judge: e15Judge,
	}
}

const (
	toyWorkers = 4
	toySlots   = 64 // of a client: they limit nobody
	toyBacklog = "backlog"
	toyClosed  = "closed loop"
	toyService = 100 * time.Microsecond
	toyTrip    = 10 * time.Microsecond
	toyPeriod  = toyService + toyTrip // of a call that finds a worker free
	toyBegin   = time.Millisecond     // of A's demand
	toyRounds  = 100                  // until all wake up
	toyLater   = 20                   // of them, the last ones
)

// toys are the laws: credits that never move, one that grows as published, and ours.
func toys() map[string]func() credit.Controller {
	config := credit.BreakwaterConfig{Workers: toyWorkers, Slots: toySlots, TargetDelay: 2 * toyService}
	fixed, published := config, config
	published.Headroom, published.CatchUp, published.Recovery, published.NoFloor = -1, -1, -1, true
	published.IdleCounts, published.Uninvited, fixed.Uninvited = true, true, true
	return map[string]func() credit.Controller{
		"fixed shares":           func() credit.Controller { return frozen{credit.NewBreakwater(fixed)} },
		baseline.BreakwaterPaper: func() credit.Controller { return credit.NewBreakwater(published) },
		baseline.Stillwater:      func() credit.Controller { return credit.NewBreakwater(config) },
		baseline.None:            func() credit.Controller { return credit.NewNone(toyWorkers) },
	}
}

// frozen gives each client a credit, whatever happens.
type frozen struct{ *credit.Breakwater }

// Window is one.
func (frozen) Window(credit.Holding) uint64 { return 1 }

func e15Jobs(Size) (all []job) {
	laws := toys()
	for _, demand := range []struct {
		name  string
		calls int
	}{{toyBacklog, 2 * toyWorkers}, {toyClosed, toyWorkers}} {
		for _, name := range []string{"fixed shares", baseline.BreakwaterPaper, baseline.Stillwater, baseline.None} {
			all = append(all, job{At: demand.name, Arm: name, Seeds: 1, Play: func(_ context.Context, seed uint64) (Sample, error) {
				return playToy(laws[name], demand.calls, seed)
			}})
		}
	}
	return all
}

// toy is the ledger on the stage.
type toy struct {
	w       *sim.World
	s       *sim.Source
	started [toyRounds]int // requests, by round
	figures map[string]float64
}

func playToy(law func() credit.Controller, calls int, seed uint64) (Sample, error) {
	t := &toy{w: sim.NewWorld(seed, sim.Network{OneWay: toyTrip / 2}), figures: map[string]float64{figBurst: 0, figBurstOK: 0, figRefused: 0, figQueued: 0}}
	const target = 2 * toyService
	m, err := t.w.AddMachine(dispatcher.Config{TrustedNetwork: true, SlotsMax: toySlots}, sim.MachineConfig{
		CPUs: toyWorkers, Poller: true, Plan: t.plan,
		Serve:  dispatcher.ServeConfig{TargetDelay: target, DropThreshold: 2 * target},
		Ledger: func() *credit.Ledger { return credit.NewLedger(credit.Config{Slots: toySlots}, law()) },
	})
	if err != nil {
		return Sample{}, err
	}
	t.s = t.w.NewSource(m, sim.SourceConfig{Service: constant(toyService), Observe: t.observe})
	if err := t.s.AddClients(t.w.AddHost(dispatcher.Config{SlotsMax: toySlots}), 4); err != nil {
		return Sample{}, err
	}
	for client := range 4 {
		t.w.At(0, func() { t.s.Call(client) })
	}
	t.w.At(toyBegin, func() { t.calls(0, calls) })
	t.w.At(t.end(), func() {
		for client := range 4 {
			t.calls(client, toyWorkers)
		}
	})
	t.w.Run(t.end() + 10*time.Millisecond)
	t.figures[figRound1], t.figures[figRound2], t.figures[figRound3] = float64(t.started[0]), float64(t.started[1]), float64(t.started[2])
	later := 0
	for _, n := range t.started[toyRounds-toyLater:] {
		later += n
	}
	t.figures[figLater] = float64(later) / toyLater
	return Sample{Figures: t.figures}, t.w.Audit()
}

// end is when A is not alone any more.
func (t *toy) end() time.Duration { return toyBegin + toyRounds*toyPeriod }

// calls has a client make so many calls.
func (t *toy) calls(client, count int) {
	for range count {
		t.s.Call(client)
	}
}

// plan counts the requests that start.
func (t *toy) plan(k sim.Work, steps []sim.Step) []sim.Step {
	if at := t.w.Elapsed() - toyBegin; at >= 0 && t.w.Elapsed() < t.end() {
		t.started[at/toyPeriod]++
	}
	return sim.Compute(k, steps)
}

// observe has A call again while it is alone, and counts the burst.
func (t *toy) observe(o *sim.Observation) {
	made := t.w.Elapsed() - o.Latency
	switch {
	case made >= t.end():
		t.figures[figBurst]++
		if o.Call.Outcome == dispatcher.OutcomeOK {
			t.figures[figBurstOK]++
			t.figures[figQueued] = max(t.figures[figQueued], float64(o.Call.Timing.RequestQueue))
		} else {
			t.figures[figRefused]++
		}
	case made >= toyBegin && t.w.Elapsed() < t.end():
		t.w.At(t.w.Elapsed(), func() { t.s.Call(0) })
	}
}

// constant is a service time.
type constant time.Duration

// Sample is always the same.
func (c constant) Sample(*rand.Rand) time.Duration { return time.Duration(c) }

func e15Judge(t *Table) []Check {
	ours, fixed := t.Row(toyBacklog, baseline.Stillwater), t.Row(toyBacklog, "fixed shares")
	queued := ours.Mean(figQueued)
	return []Check{
		exactly("each holds one credit, so A starts with", ours, figRound1, 1),
		bound("speculation lets A have more by its third call,", []*Row{ours}, figRound3, 2, true),
		bound("the pool grows until A fills the server, of its workers", []*Row{ours, t.Row(toyClosed, baseline.Stillwater)}, figLater, toyWorkers, true),
		{Met: queued <= float64(4*toyService), Text: fmt.Sprintf("the door holds the burst: no request of it is queued for more than twice the target, %s: %s",
			kindOf(figQueued).Text(float64(4*toyService)), kindOf(figQueued).Text(queued))},
		exactly("the control arm, fixed shares, stays at", fixed, figLater, 1),
	}
}

// exactly checks a count.
func exactly(text string, r *Row, figure string, want float64) Check {
	got := r.Mean(figure)
	return Check{Met: got == want, Text: fmt.Sprintf("%s %g of 4: %g", text, want, got)}
}
