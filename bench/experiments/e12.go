package experiments

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// e12 are the paper's load curves.
func e12() *Experiment {
	return &Experiment{
		ID: "E12", Title: "the paper's load curves",
		About: "10 workers, RTT 10 us, SLO 10 (service + RTT), open loop. Loads are multiples of the capacity, 10 / (service + packet costs). SEDA, which begins with a\n" +
			"few requests per second, is run at the full size alone, with 2 s of warm-up; DAGOR takes 100 ms, more than the small size gives.",
		Figures: []string{figOffered, figGoodput, figShare, figNet, figP50, figP99, figSLO, figDrops, figUnsent, figCredits},
		Charts: []chart{
			{Figure: figShare, Title: "Goodput over load", X: "load, times the capacity"},
			{Figure: figP99, Title: "p99 over load", X: "load, times the capacity", Line: true, LogY: true},
		},
		Jobs: e12Jobs, Judge: e12Judge,
	}
}

// service is a distribution, for short.
func service(shape workload.Shape, mean time.Duration) workload.ServiceTime {
	return workload.ServiceTime{Shape: shape, Mean: mean}
}

// warmup scales the size's: a shorter service takes as many calls in a shorter time.
func warmup(s Size, service time.Duration) simulate.Duration {
	if service < 10*time.Microsecond {
		return simulate.Duration(s.Warmup * 3 / 10)
	}
	return simulate.Duration(s.Warmup)
}

// atLoad is the scenario at a multiple of its capacity.
func atLoad(s Size, w simulate.Scenario, load float64) simulate.Scenario {
	if w.Warmup == 0 {
		w.Warmup = warmup(s, w.Complete().Service.Mean)
	}
	w.Demand = []simulate.Step{{PerS: load * w.Capacity()}}
	if w.Measure == 0 {
		w.Measure = simulate.Duration(float64(s.Calls) / w.Demand[0].PerS * float64(time.Second))
	}
	return w
}

// curve is a panel of E12.
type curve struct {
	service workload.ServiceTime
	clients int
	loads   []float64
}

func e12Curves(size Size) (all []curve) {
	const us = time.Microsecond
	if !size.Full {
		return []curve{
			{service(workload.Exponential, 10*us), 1000, []float64{0.5, 1, 2}},
			{service(workload.Exponential, 10*us), 100, []float64{1, 2}},
			{service(workload.Exponential, 10*us), 10_000, []float64{1, 2}},
			{service(workload.Constant, 10*us), 1000, []float64{2}},
			{service(workload.Bimodal, 10*us), 1000, []float64{2}},
			{service(workload.Exponential, us), 1000, []float64{2}},
			{service(workload.Exponential, 100*us), 1000, []float64{2}},
		}
	}
	for _, mean := range []time.Duration{10 * us, us, 100 * us} {
		for _, shape := range []workload.Shape{workload.Exponential, workload.Constant, workload.Bimodal} {
			all = append(all, curve{service(shape, mean), 1000, []float64{0.1, 0.5, 0.9, 1, 1.2, 2}})
		}
		for _, clients := range []int{100, 10_000} {
			all = append(all, curve{service(workload.Exponential, mean), clients, []float64{0.5, 0.9, 1, 1.2, 2}})
		}
	}
	return all
}

// rivals are the schemes that are compared everywhere; ours is the first, and the control arm the last.
var rivals = []string{baseline.Stillwater, baseline.BreakwaterPaper, baseline.BreakwaterArtifact, baseline.DAGOR, baseline.None}

// rivalsAndSEDA are those of the full size: it takes long. It is the last, so that the others have their colours in all charts.
var rivalsAndSEDA = slices.Concat(rivals, []string{baseline.SEDA})

const (
	sedaWarmup = 2 * time.Second
	sedaSeeds  = 2
	crowded    = 0.9 // below this load nobody has to wait, and
	calmSeeds  = 3   // say the same
)

func e12Jobs(size Size) (all []job) {
	for i, c := range e12Curves(size) {
		panel := fmt.Sprintf("%s, %d clients", ascii(c.service), c.clients)
		for _, load := range c.loads {
			schemes := rivals
			if size.Full && i == 0 && load >= 1 {
				schemes = rivalsAndSEDA
			}
			for _, scheme := range schemes {
				s := simulate.Scenario{Scheme: scheme, Clients: c.clients, Service: c.service}
				j := job{Panel: panel, At: fmt.Sprintf("%gx", load), X: load, Arm: scheme, Clients: c.clients}
				switch scheme {
				case baseline.SEDA:
					s.Warmup, j.Seeds = simulate.Duration(sedaWarmup), sedaSeeds
				case baseline.DAGOR: // its cut moves once a millisecond, however short the service is
					s.Warmup = simulate.Duration(size.Warmup)
				case baseline.None:
					j.Seeds = 1
				}
				if load < crowded && j.Seeds == 0 {
					j.Seeds = min(size.Seeds, calmSeeds)
				}
				j.Play = playing(atLoad(size, s, load))
				all = append(all, j)
			}
		}
	}
	return all
}

// ascii is the distribution in plain letters, so that tables are aligned everywhere.
func ascii(s workload.ServiceTime) string {
	return fmt.Sprintf("%s %gus", s.Shape, float64(s.Mean)/float64(time.Microsecond))
}

// What ours is held to.
const (
	behindMax    = 0.005
	behindOne    = 0.025 // with one seed: two runs of as many calls differ by that much
	fewClients   = 1000
	netMin       = 0.97 // at twice the capacity, with few clients
	netMinMany   = 0.95
	dropsMax     = 0.01
	collapsedMax = 0.30 // goodput of the control arm, of the capacity
)

func e12Judge(t *Table) []Check {
	ours, none := t.Of(baseline.Stillwater), t.Of(baseline.None)
	few := func(r *Row) bool { return r.Clients <= fewClients }
	return []Check{
		behind(t),
		bound("ours: p99 within the SLO,", ours, figTail, 1, false),
		bound("ours: drops up to 1,000 clients", only(ours, few), figDrops, dropsMax, false),
		bound("ours at 2x up to 1,000 clients: goodput of the capacity that credit messages leave", only(ours, func(r *Row) bool { return r.X == 2 && few(r) }), figNet, netMin, true),
		bound("ours at 2x with 10,000 clients: the same", only(ours, func(r *Row) bool { return r.X == 2 && !few(r) }), figNet, netMinMany, true),
		collapse(only(none, func(r *Row) bool { return r.X >= 1.2 }), figShare, collapsedMax),
	}
}

// behind compares ours with the best of the others at every point, seed by seed: they have the same arrivals, so most of the chance cancels out.
func behind(t *Table) Check {
	worst, at, points, missed, open, limit := math.Inf(1), "", 0, 0, 0, behindMax
	if t.Size.Seeds == 1 {
		limit = behindOne
	}
	for _, r := range t.Of(baseline.Stillwater) {
		best := (*Row)(nil)
		for _, other := range t.Rows {
			if other.Point() == r.Point() && other != r && (best == nil || other.Mean(figGoodput) > best.Mean(figGoodput)) {
				best = other
			}
		}
		if best == nil {
			continue
		}
		points++
		mean, half := advantage(r, best)
		switch {
		case mean < -limit && mean+half < 0:
			missed++
		case mean-half < -limit:
			open++
		}
		if mean < worst {
			worst = mean
			at = fmt.Sprintf("%+.2f %% +- %.2f at %s, against %s", 100*mean, 100*half, r.Point(), best.Arm)
		}
	}
	text := fmt.Sprintf("ours is not below the best by more than %.1f %%: the least is %s", 100*limit, at)
	switch {
	case t.Size.Seeds == 1:
		text += " (one seed cannot tell less)"
	case missed+open > 0:
		text += fmt.Sprintf(" (95 %% interval); %d of %d points miss it, of %d more the interval reaches that far", missed, points, open)
	}
	return Check{Met: missed == 0, Text: text}
}

// student is the 97.5 % quantile of Student's t, by degrees of freedom.
var student = []float64{0, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228}

// advantage is by how much one line's goodput is above another's, and half of its 95 % interval; with one seed the interval is unknown, and zero.
func advantage(r, other *Row) (mean, half float64) {
	n := min(len(r.Samples), len(other.Samples))
	var all []float64
	for i := range n {
		all = append(all, r.Samples[i].Figures[figGoodput]/other.Samples[i].Figures[figGoodput]-1)
	}
	for _, v := range all {
		mean += v / float64(n)
	}
	if n < 2 {
		return mean, 0
	}
	var squares float64
	for _, v := range all {
		squares += (v - mean) * (v - mean)
	}
	deviation := math.Sqrt(squares / float64(n-1))
	return mean, student[min(n-1, len(student)-1)] * deviation / math.Sqrt(float64(n))
}
