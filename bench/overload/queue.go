//go:build linux

package overload

import (
	"context"
	"errors"
	"flag"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/callers"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/toolbox"
	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// queue is E1, the queue of 60 s.
type queue struct {
	length    time.Duration
	calibrate time.Duration
	full      bool // all processes, and the knife edge
}

const (
	queueOffered = 1500 // a second
	queueTimeout = time.Second
	queueLength  = time.Minute // as in the simulator
	armBound     = "bound 0.5 s"
	armEdge      = "bound 1 s"

	queueMin      = 0.98 // of the capacity
	queueCollapse = 0.20 // of the capacity: what is answered before the queue is a second long counts
	queueEdge     = 0.60
)

// processes are of arrivals and of service, the hardest first.
var processes = []struct {
	name     string
	arrivals workload.Process
	shape    workload.Shape
}{
	{"Poisson, exponential", workload.Poisson, workload.Exponential},
	{"Poisson", workload.Poisson, workload.Constant},
	{"deterministic", workload.Fixed, workload.Constant},
}

// Queue is the command of E1.
func Queue() prove.Command {
	var q queue
	return prove.Command{
		Name: "queue", Rounds: 1,
		About: "E1, the queue of 60 s, for real: 1,500 calls a second at a server that can do 1,000, for a minute, by callers who give up after a second.",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&q.length, "length", queueLength, "how long calls come, for each arm")
			f.DurationVar(&q.calibrate, "calibrate", 3*time.Second, "how long capacity is measured, in each round")
			f.BoolVar(&q.full, "full", false, "all three processes of arrivals and service, and a bound of exactly the time-out: 13 minutes a round")
		},
		Run: func(ctx context.Context, r *prove.Run) error { return q.experiment().run(ctx, r) },
	}
}

func (q *queue) experiment() *experiment {
	e := &experiment{id: "E1", size: toolbox.Full(), calibrate: q.calibrate, patience: queueTimeout, figures: queueFigures, judge: queueJudge, columns: []column{
		{figure: figServed, title: "served", unit: "/s", divide: 1, width: 6}, {figure: figGoodput, title: "goodput", unit: "/s", divide: 1, width: 7},
		{figure: figShare, title: "goodput", unit: "% of cap.", decimals: 1, divide: 0.01, width: 7},
		{figure: figBacklog, title: "backlog", unit: "calls", divide: 1, width: 7, apart: q.length != queueLength},
		{figure: figP99, title: "p99", unit: "ms", decimals: 1, divide: 1e6, width: 8, apart: q.length != queueLength},
		{figure: figRefused, title: "refused", unit: "%", decimals: 1, divide: 0.01, width: 7}, {figure: figRejected, title: "by server", unit: "%", decimals: 1, divide: 0.01, width: 7},
		{figure: figLateness, title: "callers", unit: "ms late", decimals: 1, divide: 1e6, width: 7},
	}}
	for i, p := range processes {
		if i > 0 && !q.full {
			break
		}
		for _, a := range q.arms() {
			if a.name == armEdge && !q.full {
				continue
			}
			a.point = p.name
			a.calls = callers.Plan{
				Arrivals: p.arrivals, PerS: queueOffered, Service: workload.ServiceTime{Shape: p.shape, Mean: serviceMean}, Length: q.length, Within: queueTimeout, Deadline: a.calls.Deadline,
			}
			e.arms = append(e.arms, a)
		}
	}
	return e
}

// arms are the servers, and whether calls say their time-out.
func (q *queue) arms() []arm {
	half, edge, ours := uncontrolled(), uncontrolled(), controlled(queueTimeout, queueSessions)
	half.name, half.server.QueueMax = armBound, 500
	edge.name, edge.server.QueueMax = armEdge, 1000
	ours.calls.Deadline = queueTimeout
	return []arm{uncontrolled(), edge, half, ours}
}

// queueSessions are the simulator's clients.
const queueSessions = 4

func queueFigures(a *arm, capacityPerS float64, r *callers.Result) map[string]float64 {
	perS := func(count int) float64 { return float64(count) / a.calls.Length.Seconds() }
	return map[string]float64{
		figServed: perS(r.Answered), figGoodput: perS(r.Good), figShare: perS(r.Good) / capacityPerS, figBacklog: float64(r.Pending), figP99: float64(r.LatencyP99),
		figRefused: ratio(r.Rejected+r.Unsent, r.Made), figRejected: ratio(r.Rejected, r.Made), figLateness: float64(r.LatenessP99),
	}
}

func queueJudge(t *table) error {
	share := column{figure: figShare, unit: "%", divide: 0.01}
	edge := func(a *arm) bool { return a.name == armEdge && a.point == processes[0].name }
	errs := []error{
		t.bound("ours: goodput of the capacity", named(armOurs), share, queueMin, true),
		t.bound("the control arm, a queue without an end, collapses: goodput of the capacity", named(armNone), share, queueCollapse, false),
	}
	if len(t.arms) > len(processes) { // the full size
		errs = append(errs, t.bound("a bound of exactly the time-out is a knife edge: goodput of the capacity with exponential service", edge, share, queueEdge, false))
	}
	return errors.Join(errs...)
}
