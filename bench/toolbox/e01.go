package toolbox

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// e1 is the queue of 60 s.
func e1() *Experiment {
	return &Experiment{
		ID: "E1", Title: "the 60 s queue",
		About: "One CPU, service 1 ms, 1,500 calls a second for 60 s (20 s at the small size), whose callers give up after 1 s. None: a queue without an end, of calls without a deadline. Bound: the same\n" +
			"queue takes 500 or 1,000 requests, which are 0.5 or 1 s of work, and refuses the rest. Drop expired: what has waited for 1 s is not started. Age bound: what is left of the second must do\n" +
			"for the learnt service time (credit/admit.Age). Ours: the callers' second is the calls' deadline, and the server has credits. Counted from the first call; backlog: calls that wait\n" +
			"at the end, at either side.",
		Figures: []string{figGoodput, figShare, figThroughput, figBacklog, figP99, figRefused},
		Charts:  []chart{{Figure: figShare, Title: "Goodput", Named: true}},
		Jobs:    e1Jobs, Judge: e1Judge,
	}
}

const (
	queueOffered = 1500
	queueTimeout = time.Second
	armBound     = "bound 0.5 s"
	armEdge      = "bound 1 s"
	armExpired   = "drop expired"
	armAge       = "age bound"
)

// processes are of arrivals and of service.
var processes = []struct {
	name    string
	regular bool
	shape   workload.Shape
}{
	{"deterministic", true, workload.Constant},
	{"Poisson", false, workload.Constant},
	{"Poisson, exponential", false, workload.Exponential},
}

// queueArms are the servers.
func queueArms() map[string]server {
	usual := server{service: time.Millisecond, slo: queueTimeout}
	half, edge, ours := usual, usual, usual
	half.serve.QueueMax, edge.serve.QueueMax = 500, 1000
	half.slots, edge.slots = 1000, 1000
	ours.scheme = baseline.Stillwater
	return map[string]server{armNone: usual, armBound: half, armEdge: edge, armOurs: ours}
}

func e1Jobs(size Size) (all []job) {
	length := 20 * time.Second
	if size.Full {
		length = time.Minute
	}
	arms := queueArms()
	for i, p := range processes {
		for _, arm := range []string{armExpired, armAge} {
			all = append(all, job{At: p.name, X: float64(i), Arm: arm, Play: func(ctx context.Context, seed uint64) (Sample, error) {
				return playGate(ctx, arm, p.regular, workload.ServiceTime{Shape: p.shape, Mean: time.Millisecond}, length, seed)
			}})
		}
		for _, arm := range []string{armNone, armEdge, armBound, armOurs} {
			calls := sim.SourceConfig{Service: workload.ServiceTime{Shape: p.shape, Mean: time.Millisecond}, Regular: p.regular}
			if arm == armOurs {
				calls.Deadline = queueTimeout
			}
			all = append(all, job{At: p.name, X: float64(i), Arm: arm, Play: func(ctx context.Context, seed uint64) (Sample, error) {
				return playQueue(ctx, arms[arm], calls, length, seed)
			}})
		}
	}
	return all
}

func playQueue(ctx context.Context, s server, calls sim.SourceConfig, length time.Duration, seed uint64) (Sample, error) {
	w := stage(seed)
	m, err := s.add(w, seed)
	if err != nil {
		return Sample{}, err
	}
	t := &tally{w: w, within: queueTimeout}
	calls.Observe = t.observe
	source, err := s.callers(w, m, calls, seed)
	if err != nil {
		return Sample{}, err
	}
	if err := source.SetRate(queueOffered); err != nil {
		return Sample{}, err
	}
	if err := simulate.Advance(ctx, w, length); err != nil {
		return Sample{}, err
	}
	return Sample{Figures: map[string]float64{
		figGoodput: t.per(t.good), figShare: t.per(t.good) / s.capacity(), figThroughput: t.per(t.answers), figBacklog: float64(w.Checks().Pending()),
		figP99: float64(t.p99()), figRefused: float64(t.refused) / float64(w.Checks().Calls),
	}}, w.Audit()
}

// playGate is the same queue with an admit.Gate before it, and nothing else: one that drops what has waited for the whole time-out, or one with learnt
// service times.
func playGate(ctx context.Context, arm string, regular bool, service workload.ServiceTime, length time.Duration, seed uint64) (Sample, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	config := open(1)
	g := &gated{w: stage(seed), service: func() time.Duration { return service.Sample(rng) }}
	if arm == armExpired {
		config.MaxWait = queueTimeout
	} else {
		config.Door.NoAge, g.budget = false, queueTimeout
	}
	g.gate = admit.NewGate(config)
	t := &tally{w: g.w, within: queueTimeout}
	calls := 0
	var arrive func()
	arrive = func() {
		calls++
		made := g.w.Elapsed()
		g.arrive(func(ok bool) {
			outcome := dispatcher.OutcomeRejected
			if ok {
				outcome = dispatcher.OutcomeOK
			}
			t.end(outcome, made, g.w.Elapsed()-made)
		})
		gap := 1.0
		if !regular {
			gap = rng.ExpFloat64()
		}
		g.w.At(made+time.Duration(gap/queueOffered*float64(time.Second)), arrive)
	}
	g.w.At(0, arrive)
	if err := simulate.Advance(ctx, g.w, length); err != nil {
		return Sample{}, err
	}
	return Sample{Figures: map[string]float64{
		figGoodput: t.per(t.good), figShare: t.per(t.good) * service.Mean.Seconds(), figThroughput: t.per(t.answers), figBacklog: float64(g.gate.Waiting()),
		figP99: float64(t.p99()), figRefused: float64(t.refused) / float64(calls),
	}}, g.gate.Audit()
}

const (
	queueCollapse = 0.20 // of the capacity: what is answered before the queue is a second long counts
	queueMin      = 0.98
)

func e1Judge(t *Table) []Check {
	return []Check{
		bound("ours: goodput of the capacity", t.Of(armOurs), figShare, queueMin, true),
		collapse(t.Of(armNone), figShare, queueCollapse),
		bound("the age bound alone, without credits, is no knife edge: goodput of the capacity", t.Of(armAge), figShare, queueMin, true),
		bound("to drop what has already expired is too late: goodput of the capacity", t.Of(armExpired), figShare, 0.75, false),
		bound("a bound of exactly the time-out is a knife edge: goodput of the capacity with exponential service", []*Row{t.Row("Poisson, exponential", armEdge)}, figShare, 0.6, false),
	}
}
