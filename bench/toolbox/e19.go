package toolbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// e19 is the slow-start spiral.
func e19() *Experiment {
	return &Experiment{
		ID: "E19", Title: "the slow-start spiral",
		About: "Three servers of 1,000 calls a second, 2,400 a second in turn to those that are taken for healthy, each given up after a second. One of them crashes, and comes back cold: it takes five times as\n" +
			"long, and is warm after 3,000 requests. Every second, a server half of whose calls got no answer is taken for dead, and restarted, which takes 2 s. None: queues without an end. Gate alone:\n" +
			"a server admits a tenth of what arrives at first, and all after 5 s. Ours: the gate, deadlines and credits; a call that finds others waiting for a credit of its server goes to the\n" +
			"next one. What was refused or never sent is nobody's failure. After: goodput of the last 10 s.",
		Figures: []string{figAfter, figRecovery, figRestarts, figP99},
		Course:  course(spiralCrash, spiralCrash+spiralRestart, "the first restart"),
		Jobs:    e19Jobs, Judge: e19Judge,
	}
}

const (
	spiralServers  = 3
	spiralService  = time.Millisecond
	spiralOffered  = 2400
	spiralTimeout  = time.Second
	spiralCold     = 5    // times as long
	spiralWarm     = 3000 // requests
	spiralCrash    = 10 * time.Second
	spiralRestart  = 2 * time.Second
	spiralSick     = 0.5 // of the calls of a second, unanswered
	spiralGate     = 5 * time.Second
	spiralSettle   = 6 * time.Second // until the gates of the first start are open
	armGate        = "gate alone"
	armCredits     = "credits alone"
	spiralSuspects = 20 // calls in that second at least
)

func e19Jobs(size Size) (all []job) {
	length := time.Minute
	if size.Full {
		length = 3 * time.Minute
	}
	for _, arm := range []string{armNone, armGate, armCredits, armOurs} {
		all = append(all, job{At: fmt.Sprintf("%d servers, one restarts cold", spiralServers), Arm: arm, Play: func(ctx context.Context, seed uint64) (Sample, error) {
			s := &spiral{w: stage(seed), rng: rand.New(rand.NewPCG(seed, 0)), arm: arm}
			return s.play(ctx, length, seed)
		}})
	}
	return all
}

// spiral is some servers, and a balancer that knows which are healthy.
type spiral struct {
	w       *sim.World
	rng     *rand.Rand
	arm     string
	servers []*replica
	turn    int
	t       *tally
	crashes int
}

// replica is one server.
type replica struct {
	s             *spiral
	m             *sim.Machine
	source        *sim.Source
	served        int // since its start: what warms it
	down          bool
	asked, silent int // calls that ended in this second, and those of them that were sent and not answered
}

func (s *spiral) play(ctx context.Context, length time.Duration, seed uint64) (Sample, error) {
	s.t = &tally{w: s.w, within: spiralTimeout, slice: time.Second, from: spiralSettle}
	for range spiralServers {
		if err := s.add(seed); err != nil {
			return Sample{}, err
		}
	}
	s.arrive()
	s.w.At(spiralSettle, s.check)
	s.w.At(spiralCrash, func() { s.servers[0].restart() })
	if err := simulate.Advance(ctx, s.w, length); err != nil {
		return Sample{}, err
	}
	series := s.t.series[:min(int(length/time.Second), len(s.t.series))]
	for len(series) < int(length/time.Second) {
		series = append(series, 0)
	}
	figures := map[string]float64{
		figAfter: average(series[len(series)-stormLast:]) / spiralOffered, figRestarts: float64(s.crashes), figP99: float64(s.t.p99()),
	}
	back := int((spiralCrash + spiralRestart) / time.Second)
	if at := settled(series[back:], spiralOffered); at >= 0 && figures[figAfter] >= 0.95 {
		figures[figRecovery] = float64(time.Duration(at) * time.Second)
	}
	return Sample{Figures: figures, Series: series}, s.w.Audit()
}

// add puts up one server, warm.
func (s *spiral) add(seed uint64) error {
	r := &replica{s: s, served: spiralWarm}
	config := server{service: spiralService, slo: spiralTimeout, plan: r.plan}
	if s.arm == armGate || s.arm == armOurs {
		config.serve.Admission.Warmup = spiralGate
	}
	if s.credits() {
		config.scheme = baseline.Stillwater
	}
	var err error
	if r.m, err = config.add(s.w, seed); err == nil {
		r.source, err = config.callers(s.w, r.m, sim.SourceConfig{}, seed)
	}
	s.servers = append(s.servers, r)
	return err
}

// credits reports whether the servers have them, and calls deadlines.
func (s *spiral) credits() bool { return s.arm == armCredits || s.arm == armOurs }

// plan takes longer while the server is cold.
func (r *replica) plan(k sim.Work, steps []sim.Step) []sim.Step {
	cold := max(1-float64(r.served)/spiralWarm, 0)
	r.served++
	return append(steps, sim.Step{For: time.Duration(float64(k.Service) * (1 + (spiralCold-1)*cold))})
}

// restart kills the server's process, and starts another, which is cold.
func (r *replica) restart() {
	r.s.crashes++
	r.down = true
	r.m.Kill()
	r.s.w.At(r.s.w.Elapsed()+spiralRestart, func() {
		r.m.Restart()
		r.down, r.served, r.asked, r.silent = false, 0, 0, 0
	})
}

// check is the balancer's, once a second.
func (s *spiral) check() {
	for _, r := range s.servers {
		if !r.down && r.asked >= spiralSuspects && float64(r.silent) > spiralSick*float64(r.asked) {
			r.restart()
		}
		r.asked, r.silent = 0, 0
	}
	s.w.At(s.w.Elapsed()+time.Second, s.check)
}

// arrive makes a call, and foresees the next.
func (s *spiral) arrive() {
	s.w.At(s.w.Elapsed()+time.Duration(s.rng.ExpFloat64()/spiralOffered*float64(time.Second)), s.arrive)
	made := s.w.Elapsed()
	r := s.choose()
	if r == nil {
		s.t.end(dispatcher.OutcomeDeadline, made, spiralTimeout)
		return
	}
	ask := sim.Ask{Service: exponential(spiralService).Sample(s.rng)}
	if s.credits() {
		ask.Deadline = spiralTimeout
	}
	ended := false
	end := func(outcome dispatcher.Outcome) {
		if ended {
			return
		}
		ended = true
		r.judge(outcome)
		s.t.end(outcome, made, s.w.Elapsed()-made)
	}
	ask.Done = func(o *sim.Observation) { end(o.Call.Outcome) }
	s.turn++
	r.source.Ask(s.turn%r.source.Clients(), ask)
	s.w.At(made+spiralTimeout, func() { end(dispatcher.OutcomeDeadline) })
}

// judge notes what became of a call that the server was given.
func (r *replica) judge(outcome dispatcher.Outcome) {
	switch outcome {
	case dispatcher.OutcomeExpired, dispatcher.OutcomeQueueFull, dispatcher.OutcomeThrottled: // never sent
		return
	case dispatcher.OutcomeDeadline, dispatcher.OutcomePeerLost:
		r.silent++
	}
	r.asked++
}

// choose is the next server in turn; with credits, the next at which nobody waits for one, if there is any.
func (s *spiral) choose() *replica {
	var first *replica
	for i := range s.servers {
		r := s.servers[(s.turn+i)%len(s.servers)]
		switch {
		case r.down:
			continue
		case !s.credits() || r.free():
			return r
		case first == nil:
			first = r
		}
	}
	return first
}

// free reports whether the session whose turn it is has nobody waiting.
func (r *replica) free() bool {
	at := (r.s.turn + 1) % r.source.Clients()
	session := r.source.Session(at)
	return session == nil || session.Waiting() == 0
}

func e19Judge(t *Table) []Check {
	return []Check{
		bound("ours: recovered within", t.Of(armOurs), figRecovery, float64(10*time.Second), false),
		bound("ours: restarts", t.Of(armOurs), figRestarts, 1, false),
		bound("ours: goodput after it, of what is offered,", t.Of(armOurs), figAfter, 0.98, true),
		bound("the control arm spirals: restarts", t.Of(armNone), figRestarts, 5, true),
		collapse(t.Of(armNone), figAfter, 0.6),
	}
}
