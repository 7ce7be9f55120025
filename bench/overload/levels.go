//go:build linux

package overload

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/callers"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/toolbox"
	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// levels is E10, criticality.
type levels struct {
	warmup, length time.Duration
	calibrate      time.Duration
	full           bool // also with fewer and with more clients, and longer
}

const (
	levelBudget  = 200 * time.Millisecond
	levelClients = 20 // usually
	armFlat      = "no levels"

	levelMin      = 0.999
	levelShareMin = 0.98
	levelLeastMin = 0.015
	levelFlatMax  = 0.75
	levelCollapse = 0.05
)

// levelFigures are those of callers.Levels.
var levelFigures = [len(callers.Levels)]string{figBatch, figSheddable, figCritical, figPlus}

// Levels is the command of E10.
func Levels() prove.Command {
	var l levels
	return prove.Command{
		Name: "levels", Rounds: 1,
		About: "E10, criticality, for real: a quarter of the calls of each of the four levels, at 1.5 and 3 times what the server can do.",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&l.warmup, "warmup", 5*time.Second, "load before what is measured")
			f.DurationVar(&l.length, "length", 20*time.Second, "measured time of each arm")
			f.DurationVar(&l.calibrate, "calibrate", 3*time.Second, "how long capacity is measured, in each round")
			f.BoolVar(&l.full, "full", false, "ours also with 4 and 100 clients: 5 minutes a round")
		},
		Run: func(ctx context.Context, r *prove.Run) error { return l.experiment().run(ctx, r) },
	}
}

func (l *levels) experiment() *experiment {
	e := &experiment{id: "E10", size: toolbox.Small(), calibrate: l.calibrate, patience: levelBudget, figures: levelsFigures, judge: levelsJudge, columns: []column{
		{figure: figShare, title: "goodput", unit: "% of cap.", decimals: 1, divide: 0.01, width: 7}, {figure: figPlus, title: "critical+", unit: "% answered", decimals: 2, divide: 0.01, width: 10},
		{figure: figCritical, title: "critical", unit: "% answered", decimals: 2, divide: 0.01, width: 10}, {figure: figSheddable, title: "sheddable+", unit: "% answered", decimals: 2, divide: 0.01, width: 10},
		{figure: figBatch, title: "sheddable", unit: "% answered", decimals: 2, divide: 0.01, width: 10}, {figure: figLeast, title: "least", unit: "% of all", decimals: 2, divide: 0.01, width: 8},
		{figure: figServed, title: "served", unit: "/s", divide: 1, width: 6}, {figure: figP99, title: "p99", unit: "ms", decimals: 1, divide: 1e6, width: 8},
		{figure: figBacklog, title: "backlog", unit: "calls", divide: 1, width: 7}, {figure: figRejected, title: "by server", unit: "% refused", decimals: 1, divide: 0.01, width: 9},
		{figure: figLateness, title: "callers", unit: "ms late", decimals: 1, divide: 1e6, width: 7},
	}}
	sizes := []int{levelClients}
	if l.full {
		sizes = []int{4, levelClients, 100}
	}
	for _, load := range []float64{1.5, 3} {
		for _, clients := range sizes {
			for _, a := range levelArms(clients) {
				if clients != levelClients && a.name != armOurs {
					continue
				}
				a.point = fmt.Sprintf("%gx, %d clients", load, clients)
				a.calls.Warmup, a.calls.Length, a.calls.Drain = l.warmup, l.warmup+l.length, levelBudget
				a.calls.PerS, a.calls.Service = load/serviceMean.Seconds(), workload.ServiceTime{Shape: workload.Exponential, Mean: serviceMean}
				a.calls.Within, a.calls.Levels = levelBudget, true
				e.arms = append(e.arms, a)
			}
		}
	}
	return e
}

// levelArms are no control, control without levels, and control with them.
func levelArms(clients int) []arm {
	flat, ours := controlled(levelBudget, clients), controlled(levelBudget, clients)
	flat.name = armFlat
	flat.calls.Deadline, ours.calls.Deadline = levelBudget, levelBudget
	ours.calls.Told = true
	return []arm{uncontrolled(), flat, ours}
}

func levelsFigures(a *arm, capacityPerS float64, r *callers.Result) map[string]float64 {
	figures := map[string]float64{
		figShare: float64(r.Good) / (a.calls.Length - a.calls.Warmup).Seconds() / capacityPerS, figLeast: 1,
		figServed: served(r.Seconds[min(int(a.calls.Warmup/time.Second), len(r.Seconds)):]), figP99: float64(r.LatencyP99), figBacklog: float64(r.Pending), figRejected: ratio(r.Rejected, r.Made), figLateness: float64(r.LatenessP99),
	}
	for i, level := range r.Levels {
		figures[levelFigures[i]] = ratio(level.Good, level.Made)
		figures[figLeast] = min(figures[figLeast], ratio(level.Good, r.Good))
	}
	return figures
}

func levelsJudge(t *table) error {
	of := func(figure string) column { return column{figure: figure, unit: "%", divide: 0.01} }
	at := func(perS float64) func(*arm) bool {
		return func(a *arm) bool { return a.name == armOurs && a.calls.PerS == perS }
	}
	const medium, heavy = 1500, 3000
	return errors.Join(
		t.bound("ours at 1.5x: critical plus answered", at(medium), of(figPlus), levelMin, true),
		t.bound("ours at 1.5x: critical answered", at(medium), of(figCritical), levelMin, true),
		t.bound("ours at 1.5x: goodput of the capacity", at(medium), of(figShare), levelShareMin, true),
		t.bound("ours at 3x: critical plus answered", at(heavy), of(figPlus), levelMin, true),
		t.bound("ours: no level starves: the least, of all that is answered,", named(armOurs), of(figLeast), levelLeastMin, true),
		t.bound("the control arm without levels fails those that matter: critical plus answered", named(armFlat), of(figPlus), levelFlatMax, false),
		t.bound("the control arm without control collapses: goodput of the capacity", named(armNone), of(figShare), levelCollapse, false),
	)
}
