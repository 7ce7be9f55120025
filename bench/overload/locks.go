//go:build linux

package overload

import (
	"context"
	"errors"
	"flag"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/callers"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/bench/toolbox"
	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// locks is the lock of E16, with longer times, which the timers of a host can keep.
type locks struct {
	warmup, length time.Duration
	calibrate      time.Duration
}

const (
	lockHeld     = 2 * time.Millisecond
	lockEvery    = 10 // calls: so they are full at 5,000 a second
	lockLoad     = 1.4
	lockBudget   = 30 * time.Millisecond
	lockSessions = 20
	armFixed     = "fixed workers"
	armGate      = "ours, gate"

	lockMin      = 0.94
	lockGain     = 1.03 // of what there is with fixed workers
	lockGateMin  = 1.3
	lockCollapse = 0.05
)

// Locks is the command of the lock.
func Locks() prove.Command {
	var l locks
	return prove.Command{
		Name: "locks", Rounds: 1,
		About: "The lock of E16, for real: one call in ten holds it for 2 ms, 1.4 times what it can do, by callers who give up after 30 ms.",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&l.warmup, "warmup", 15*time.Second, "load before what is measured: in it the server finds how many may wait for the lock")
			f.DurationVar(&l.length, "length", 15*time.Second, "measured time of each arm")
			f.DurationVar(&l.calibrate, "calibrate", 3*time.Second, "how long capacity is measured, in each round")
		},
		Run: func(ctx context.Context, r *prove.Run) error { return l.experiment().run(ctx, r) },
	}
}

func (l *locks) experiment() *experiment {
	held := workload.ServiceTime{Shape: workload.Constant, Mean: lockHeld}
	all := uncontrolled()
	all.locked = &target.Locked{Every: 1}
	all.calls = callers.Plan{Arrivals: workload.Fixed, PerS: 2 / lockHeld.Seconds(), Service: held}
	e := &experiment{
		id: "E16", size: toolbox.Full(), calibrate: l.calibrate, patience: lockBudget, figures: locksFigures, judge: locksJudge, probe: &all, each: lockEvery, play: l.simulate,
		columns: []column{
			{figure: figGoodput, title: "goodput", unit: "/s", divide: 1, width: 7}, {figure: figShare, title: "goodput", unit: "% of cap.", decimals: 1, divide: 0.01, width: 7},
			{figure: figP99, title: "p99", unit: "ms", decimals: 1, divide: 1e6, width: 8}, {figure: figRejected, title: "by server", unit: "% refused", decimals: 1, divide: 0.01, width: 9},
			{figure: figLateness, title: "callers", unit: "ms late", decimals: 1, divide: 1e6, width: 7},
		},
	}
	for _, a := range lockArms() {
		a.point = "a lock"
		a.calls = callers.Plan{
			Arrivals: workload.Poisson, PerS: lockLoad * lockEvery / lockHeld.Seconds(), Service: held, Warmup: l.warmup, Length: l.warmup + l.length, Drain: lockBudget,
			Within: lockBudget, Deadline: a.calls.Deadline,
		}
		e.arms = append(e.arms, a)
	}
	return e
}

// lockArms are no control, ours without the bound that it finds, with it, and with a gate in front of the lock.
func lockArms() []arm {
	ours := controlled(lockBudget, lockSessions)
	ours.calls.Deadline = lockBudget
	none, fixed, gate := uncontrolled(), ours, ours
	fixed.name, fixed.server.FixedWorkers, gate.name = armFixed, true, armGate
	none.locked = &target.Locked{Every: lockEvery}
	fixed.locked, ours.locked = none.locked, none.locked
	gate.locked = &target.Locked{Every: lockEvery, Gate: lockBudget}
	return []arm{none, fixed, ours, gate}
}

// simulate plays an arm in the simulator, on a machine with two CPUs.
func (l *locks) simulate(ctx context.Context, a *arm, seed uint64) (map[string]float64, error) {
	s := simulate.Scenario{
		Seed: seed, Scheme: a.server.Scheme, Clients: lockSessions, SLO: simulate.Duration(lockBudget),
		Service: workload.ServiceTime{Shape: workload.Constant, Mean: time.Microsecond},
		Server: simulate.Server{CPUs: 2, FixedWorkers: a.server.FixedWorkers, Wait: &simulate.Wait{
			For: simulate.Duration(lockHeld), Share: 1. / lockEvery, Lock: true, Gate: a.locked.Gate > 0,
		}},
		Warmup: simulate.Duration(l.warmup), Measure: simulate.Duration(l.length), Demand: []simulate.Step{{PerS: a.calls.PerS}},
	}
	r, err := simulate.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	return map[string]float64{
		figGoodput: r.GoodputPerS, figShare: r.GoodputPerS / r.CapacityPerS, figP99: float64(r.LatencyP99), figRejected: r.DropRatio,
	}, nil
}

func locksFigures(a *arm, capacityPerS float64, r *callers.Result) map[string]float64 {
	goodput := float64(r.Good) / (a.calls.Length - a.calls.Warmup).Seconds()
	return map[string]float64{
		figGoodput: goodput, figShare: goodput / capacityPerS, figP99: float64(r.LatencyP99), figRejected: ratio(r.Rejected, r.Made), figLateness: float64(r.LatenessP99),
	}
}

func locksJudge(t *table) error {
	share := column{figure: figShare, unit: "%", divide: 0.01}
	fixed := 0.0
	for i := range t.arms {
		if t.arms[i].name == armFixed {
			fixed = t.spread(i, figShare).Median
		}
	}
	return errors.Join(
		t.bound("ours: goodput of what the lock can do", named(armOurs), share, lockMin, true),
		t.bound("ours: the same beside fixed workers", named(armOurs), share, lockGain*fixed, true),
		t.bound("with a gate: goodput of what the lock can do without refusing", named(armGate), share, lockGateMin, true),
		t.bound("the control arm without control collapses: goodput of the capacity", named(armNone), share, lockCollapse, false),
	)
}
