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
	"github.com/stillwater-rpc/stillwater/wire"
)

// e10 is criticality.
func e10() *Experiment {
	return &Experiment{
		ID: "E10", Title: "criticality",
		About: "One CPU, 1 ms, exponential; a quarter of the calls of each of the four levels, from 4, 20 or 100 clients, with 200 ms each, at 1.5 and 3 times the capacity. None: no control at all. No levels: ours, but no\n" +
			"call says how much it matters. Ours: it does, the clients' queues and the door go by it. Answered: calls of a level that are answered within their 200 ms.",
		Figures: []string{figShare, figLevel4, figLevel3, figLevel2, figLevel1, figLeast},
		Charts:  []chart{{Figure: figLevel3, Title: "Critical calls answered", X: "load, times the capacity"}},
		Jobs:    e10Jobs, Judge: e10Judge,
	}
}

const (
	levelService = time.Millisecond
	levelBudget  = 200 * time.Millisecond
	levelClients = 20 // usually
	levelWarmup  = 5 * time.Second
	armFlat      = "no levels"
)

// levels are those of the wire, the least first, with their figures.
var levels = []struct {
	of     wire.Criticality
	figure string
}{
	{wire.Sheddable, figLevel1}, {wire.SheddablePlus, figLevel2}, {wire.Critical, figLevel3}, {wire.CriticalPlus, figLevel4},
}

func e10Jobs(size Size) (all []job) {
	measured := 20 * time.Second
	if size.Full {
		measured = 2 * time.Minute
	}
	add := func(load float64, clients int, arm string) {
		all = append(all, job{At: levelPoint(load, clients), X: load, Arm: arm, Clients: clients, Play: func(ctx context.Context, seed uint64) (Sample, error) {
			p := &privileged{w: stage(seed), rng: rand.New(rand.NewPCG(seed, 0)), arm: arm, clients: clients}
			return p.play(ctx, load, measured, seed)
		}})
	}
	for _, load := range []float64{1.5, 3} {
		add(load, levelClients, armNone)
		add(load, levelClients, armFlat)
		for _, clients := range []int{4, levelClients, 100} {
			add(load, clients, armOurs)
		}
	}
	return all
}

func levelPoint(load float64, clients int) string {
	return fmt.Sprintf("%gx, %d clients", load, clients)
}

// privileged is a server whose calls matter more or less.
type privileged struct {
	w       *sim.World
	rng     *rand.Rand
	arm     string
	clients int
	source  *sim.Source
	rate    float64
	until   time.Duration

	made, good [4]int // by level
}

func (p *privileged) play(ctx context.Context, load float64, measured time.Duration, seed uint64) (Sample, error) {
	s := server{service: levelService, slo: levelBudget, clients: p.clients}
	if p.arm != armNone {
		s.scheme = baseline.Stillwater
	}
	m, err := s.add(p.w, seed)
	if err != nil {
		return Sample{}, err
	}
	if p.source, err = s.callers(p.w, m, sim.SourceConfig{}, seed); err != nil {
		return Sample{}, err
	}
	p.rate, p.until = load*s.capacity(), levelWarmup+measured
	p.arrive()
	if err := simulate.Advance(ctx, p.w, p.until+levelBudget); err != nil {
		return Sample{}, err
	}
	figures, good := map[string]float64{figLeast: 1}, 0
	for i, l := range levels {
		figures[l.figure] = float64(p.good[i]) / float64(p.made[i])
		good += p.good[i]
	}
	for i := range levels {
		figures[figLeast] = min(figures[figLeast], float64(p.good[i])/float64(max(good, 1)))
	}
	figures[figShare] = float64(good) / measured.Seconds() / s.capacity()
	return Sample{Figures: figures}, p.w.Audit()
}

// arrive makes a call of some level, and foresees the next.
func (p *privileged) arrive() {
	made := p.w.Elapsed()
	if made >= p.until {
		return
	}
	p.w.At(made+time.Duration(p.rng.ExpFloat64()/p.rate*float64(time.Second)), p.arrive)
	level := p.rng.IntN(len(levels))
	counts := made >= levelWarmup
	if counts {
		p.made[level]++
	}
	ask := sim.Ask{Service: exponential(levelService).Sample(p.rng), Done: func(o *sim.Observation) {
		if counts && o.Call.Outcome == dispatcher.OutcomeOK && o.Latency <= levelBudget {
			p.good[level]++
		}
	}}
	if p.arm != armNone {
		ask.Deadline = levelBudget
	}
	if p.arm == armOurs {
		ask.Criticality = levels[level].of
	}
	p.source.Ask(p.rng.IntN(p.clients), ask)
}

func e10Judge(t *Table) []Check {
	at := func(load float64) []*Row { return only(t.Of(armOurs), func(r *Row) bool { return r.X == load }) }
	return []Check{
		bound("ours at 1.5x: critical plus", at(1.5), figLevel4, 0.999, true),
		bound("ours at 1.5x: critical", at(1.5), figLevel3, 0.999, true),
		bound("ours at 1.5x: goodput of the capacity", at(1.5), figShare, 0.98, true),
		bound("ours at 3x: critical plus", at(3), figLevel4, 0.999, true),
		bound("ours: no level starves: the least, of all that is answered,", t.Of(armOurs), figLeast, 0.015, true),
		bound("the control arm, without levels, fails those that matter: critical plus", t.Of(armFlat), figLevel4, 0.75, false),
		collapse(t.Of(armNone), figShare, 0.05),
	}
}
