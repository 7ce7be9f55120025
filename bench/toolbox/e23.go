package toolbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
	"github.com/stillwater-rpc/stillwater/wire"
)

// e23 is cheap calls next to expensive ones.
func e23() *Experiment {
	return &Experiment{
		ID: "E23", Title: "cheap calls next to expensive ones",
		About: "Four CPUs and two methods, 50 us with 10 ms each and 5 ms with 100 ms each, exponential, from so many clients of their own. None: no control. Nothing said: ours. By requests: the expensive calls say that they are\n" +
			"sheddable, and a request is a unit. By work: the same, and units are learnt. Weights: no level, and both methods have the same weight. Answered: calls that are answered within their time. Of capacity: work of those.",
		Figures: []string{figShare, figCheap, figExpensive, figCheapWork, figRefused},
		Charts:  []chart{{Figure: figCheap, Title: "Cheap calls answered", X: "cheap load, times the capacity"}},
		Jobs:    e23Jobs, Judge: e23Judge,
	}
}

const (
	mixCPUs        = 4
	mixWarmup      = time.Second / 2
	cheapService   = 50 * time.Microsecond
	dearService    = 5 * time.Millisecond
	cheapBudget    = 10 * time.Millisecond // and the SLO
	dearBudget     = 100 * time.Millisecond
	dearLoad       = 1.5 // times the capacity
	armSilent      = "nothing said"
	armByRequests  = "by requests"
	armByWork      = "by work"
	armWeights     = "weights"
	mixModest      = 0.4 // of the capacity: less than half
	mixGreedy      = 1.5
	mixClientsFew  = 20
	mixClientsMany = 200
)

// kinds of calls, by class.
var mixed = [2]struct {
	service, budget time.Duration
	level           wire.Criticality // where levels are said
	figure          string
}{
	{cheapService, cheapBudget, wire.Critical, figCheap}, {dearService, dearBudget, wire.Sheddable, figExpensive},
}

func e23Jobs(size Size) (all []job) {
	measured := time.Second
	if size.Full {
		measured = 20 * time.Second
	}
	add := func(load float64, clients int, arm string) {
		all = append(all, job{At: mixPoint(load, clients), X: load, Arm: arm, Clients: 2 * clients, Play: func(ctx context.Context, seed uint64) (Sample, error) {
			m := &mix{w: stage(seed), rng: rand.New(rand.NewPCG(seed, 0)), arm: arm, clients: clients, loads: [2]float64{load, dearLoad}}
			return m.play(ctx, measured, seed)
		}})
	}
	arms := []string{armSilent, armByRequests, armByWork, armWeights}
	add(mixModest, mixClientsFew, armNone)
	for _, load := range []float64{mixModest, mixGreedy} {
		for _, clients := range []int{mixClientsFew, mixClientsMany} {
			for _, arm := range arms {
				if load == mixModest || clients == mixClientsFew || size.Full {
					add(load, clients, arm)
				}
			}
		}
	}
	return all
}

func mixPoint(load float64, clients int) string {
	return fmt.Sprintf("%g and %gx, 2 x %d clients", load, dearLoad, clients)
}

// mix is a server with cheap and expensive calls.
type mix struct {
	w       *sim.World
	rng     *rand.Rand
	arm     string
	clients int // of each kind
	loads   [2]float64
	source  *sim.Source
	until   time.Duration

	made, good, refused [2]int
}

// admission is what the arm says of the methods.
func (m *mix) admission() []admit.MethodConfig {
	switch m.arm {
	case armByRequests:
		return []admit.MethodConfig{{Cost: 1}, {Cost: 1}}
	case armWeights:
		return []admit.MethodConfig{{Weight: 1}, {Weight: 1}}
	}
	return make([]admit.MethodConfig, len(mixed))
}

// busy is how long a call of a kind takes a CPU.
func (m *mix) busy(kind int) time.Duration { return mixed[kind].service + costs.Receive + costs.Send }

func (m *mix) play(ctx context.Context, measured time.Duration, seed uint64) (Sample, error) {
	// The mean service of what is asked for.
	rate := m.loads[0]/m.busy(0).Seconds() + m.loads[1]/m.busy(1).Seconds()
	s := server{
		cpus: mixCPUs, service: time.Duration((m.loads[0] + m.loads[1]) / rate * float64(time.Second)), slo: cheapBudget, clients: 2 * m.clients, methods: m.admission(),
	}
	if m.arm != armNone {
		s.scheme = baseline.Stillwater
	}
	machine, err := s.add(m.w, seed)
	if err != nil {
		return Sample{}, err
	}
	if m.source, err = s.callers(m.w, machine, sim.SourceConfig{}, seed); err != nil {
		return Sample{}, err
	}
	m.until = mixWarmup + measured
	for kind := range mixed {
		m.arrive(kind)
	}
	if err := simulate.Advance(ctx, m.w, m.until+dearBudget); err != nil {
		return Sample{}, err
	}
	figures, all, work := map[string]float64{}, 0., [2]float64{}
	for kind, k := range mixed {
		figures[k.figure] = float64(m.good[kind]) / float64(m.made[kind])
		work[kind] = float64(m.good[kind]) * m.busy(kind).Seconds()
		all += work[kind]
	}
	figures[figShare] = all / (mixCPUs * measured.Seconds())
	figures[figCheapWork] = work[0] / max(all, 1e-9)
	figures[figRefused] = float64(m.refused[0]) / float64(m.made[0])
	return Sample{Figures: figures}, m.w.Audit()
}

// arrive makes a call of a kind, and foresees the next.
func (m *mix) arrive(kind int) {
	made := m.w.Elapsed()
	if made >= m.until {
		return
	}
	rate := m.loads[kind] * mixCPUs / m.busy(kind).Seconds()
	m.w.At(made+time.Duration(m.rng.ExpFloat64()/rate*float64(time.Second)), func() { m.arrive(kind) })
	k, counts := mixed[kind], made >= mixWarmup
	if counts {
		m.made[kind]++
	}
	ask := sim.Ask{Class: kind, Service: exponential(k.service).Sample(m.rng), Done: func(o *sim.Observation) {
		switch {
		case !counts:
		case o.Call.Outcome == dispatcher.OutcomeOK && o.Latency <= k.budget:
			m.good[kind]++
		case o.Call.Outcome == dispatcher.OutcomeRejected:
			m.refused[kind]++
		}
	}}
	if m.arm != armNone {
		ask.Deadline = k.budget
	}
	if m.arm == armByRequests || m.arm == armByWork {
		ask.Criticality = k.level
	}
	m.source.Ask(kind*m.clients+m.rng.IntN(m.clients), ask)
}

func e23Judge(t *Table) []Check {
	at := func(arm string, load float64) []*Row {
		return only(t.Of(arm), func(r *Row) bool { return r.X == load })
	}
	return []Check{
		bound("weights: of cheap calls that ask for less than half", at(armWeights, mixModest), figCheap, 0.95, true),
		bound("weights, both ask for too much: cheap ones have of the work", at(armWeights, mixGreedy), figCheapWork, 0.45, true),
		bound("weights, both ask for too much: cheap ones have of the work", at(armWeights, mixGreedy), figCheapWork, 0.55, false),
		bound("weights: goodput of the capacity", t.Of(armWeights), figShare, 0.93, true),
		bound("levels, by work: cheap calls that ask for less than half", at(armByWork, mixModest), figCheap, 0.95, true),
		bound("the control arm, a request is a unit, fails the cheap ones: answered", at(armByRequests, mixModest), figCheap, 0.9, false),
		bound("the control arm, nothing said, fails the cheap ones: answered", t.Of(armSilent), figCheap, 0.15, false),
		collapse(t.Of(armNone), figShare, 0.05),
	}
}
