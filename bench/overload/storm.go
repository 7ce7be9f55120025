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
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// storm is E3, the metastable retry storm.
type storm struct {
	before, trouble time.Duration
	patience        time.Duration // the longest time after the trouble; 0 = each arm's own
	calibrate       time.Duration
	full            bool // all loads
}

const (
	stormTimeout  = time.Second
	stormAttempts = 4
	stormSlow     = 5 // times as long
	stormSettled  = 3 // seconds
	stormLast     = 10
	stormSessions = 4 // the simulator's clients
	stormOffered  = 800

	armQueue  = "bounded queue"
	armNewest = "newest first"
	armCancel = "cancellation"
	armBudget = "budget"
)

// recovers are the arms' bounds, by their names.
var recovers = map[string]time.Duration{armOurs: 15 * time.Second, armQueue: 15 * time.Second, armNewest: 15 * time.Second, armCancel: 30 * time.Second, armBudget: time.Minute}

// stormNone is how long the control arm is watched after the trouble: what waits in vain grows all the time.
const stormNone = 30 * time.Second

// Storm is the command of E3.
func Storm() prove.Command {
	var s storm
	return prove.Command{
		Name: "storm", Rounds: 1,
		About: "E3, the metastable retry storm, for real: for 10 s a server has a fifth of its capacity, and its callers try again.",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&s.before, "before", 10*time.Second, "how long all is well at first")
			f.DurationVar(&s.trouble, "trouble", 10*time.Second, "how long the server is slow")
			f.DurationVar(&s.patience, "patience", 0, "the longest time that an arm is watched after that; 0 = 10 s longer than its bound, and the control arm 30 s")
			f.DurationVar(&s.calibrate, "calibrate", 3*time.Second, "how long capacity is measured, in each round")
			f.BoolVar(&s.full, "full", false, "the control arm and ours also at 240, 400 and 600 calls a second: 10 minutes a round")
		},
		Run: func(ctx context.Context, r *prove.Run) error { return s.experiment().run(ctx, r) },
	}
}

func (s *storm) experiment() *experiment {
	e := &experiment{id: "E3", size: toolbox.Small(), calibrate: s.calibrate, patience: stormTimeout, judge: stormJudge, columns: []column{
		{figure: figAfter, title: "after", unit: "% offered", decimals: 1, divide: 0.01, width: 9}, {figure: figRecovered, title: "recovered", unit: "s", divide: 1e9, width: 9},
		{figure: figServed, title: "served", unit: "/s after", divide: 1, width: 8}, {figure: figAttempts, title: "attempts", unit: "a call", decimals: 2, divide: 1, width: 8, apart: true},
		{figure: figBacklog, title: "backlog", unit: "attempts", divide: 1, width: 8, apart: s.full || s.patience > 0}, {figure: figRejected, title: "refused", unit: "% of calls", decimals: 1, divide: 0.01, width: 10},
		{figure: figLateness, title: "callers", unit: "ms late", decimals: 1, divide: 1e6, width: 7},
	}}
	e.figures = func(_ *arm, _ float64, r *callers.Result) map[string]float64 { return s.figures(r) }
	loads := []float64{stormOffered}
	if s.full {
		e.size, loads = toolbox.Full(), []float64{240, 400, 600, stormOffered}
	}
	for _, offered := range loads {
		for _, a := range stormArms() {
			if _, alone := recovers[a.name]; offered != stormOffered && alone && a.name != armOurs {
				continue
			}
			a.point = fmt.Sprintf("%g/s", offered)
			a.slow = span{s.before, s.before + s.trouble, stormSlow}
			a.calls.PerS, a.calls.Service = offered, workload.ServiceTime{Shape: workload.Exponential, Mean: serviceMean}
			a.calls.Length = s.before + s.trouble + s.after(a.name)
			e.arms = append(e.arms, a)
		}
	}
	return e
}

// after is how long an arm is watched.
func (s *storm) after(arm string) time.Duration {
	after := stormNone
	if bound, found := recovers[arm]; found {
		after = bound + stormLast*time.Second
	}
	if s.patience > 0 {
		after = min(after, s.patience)
	}
	return after
}

// stormArms are the servers and callers. All but ours repeat calls by a loop of their own, as those do who put a timer and a loop around a call; and but for one of them the
// runtime is told nothing of the time-out, so that what was given up is served all the same.
func stormArms() []arm {
	loop := func(name string, budget sw.BudgetConfig) arm {
		a := uncontrolled()
		a.name = name
		a.calls.Loop = &callers.Loop{Timeout: stormTimeout, Attempts: stormAttempts, Budget: budget}
		return a
	}
	bounded, newest, cancelled := loop(armQueue, callers.Unlimited), loop(armNewest, callers.Unlimited), loop(armCancel, callers.Unlimited)
	bounded.server.QueueMax = 500
	newest.server.Admission.Order.NewestFirst = stormTimeout / 2
	cancelled.calls.Deadline = stormTimeout
	ours := controlled(stormTimeout, stormSessions)
	ours.calls.Deadline, ours.calls.Repeatable = stormAttempts*stormTimeout, true
	ours.retry = sw.RetryConfig{Timeout: stormTimeout}
	return []arm{loop(armNone, callers.Unlimited), bounded, newest, cancelled, loop(armBudget, sw.BudgetConfig{}), ours}
}

func (s *storm) figures(r *callers.Result) map[string]float64 {
	good, made := 0, 0
	last := r.Seconds[max(len(r.Seconds)-stormLast, 0):]
	for _, one := range last {
		good, made = good+one.Good, made+one.Made
	}
	figures := map[string]float64{
		figAfter: ratio(good, made), figServed: served(last), figAttempts: ratio(r.Attempts, r.Made),
		figBacklog: float64(r.Pending), figRejected: ratio(r.Rejected, r.Made), figLateness: float64(r.LatenessP99),
	}
	if at := settled(r.Seconds[min(int((s.before+s.trouble)/time.Second), len(r.Seconds)):]); at >= 0 {
		figures[figRecovered] = float64(time.Duration(at) * time.Second)
	}
	return figures
}

// settled is the first second from which three answer, in the mean, 95 % of the calls that are made in them; below zero = none.
func settled(seconds []callers.Second) int {
	for at := 0; at+stormSettled <= len(seconds); at++ {
		good, made := 0, 0
		for _, s := range seconds[at : at+stormSettled] {
			good, made = good+s.Good, made+s.Made
		}
		if made > 0 && ratio(good, made) >= 0.95 {
			return at
		}
	}
	return -1
}

func stormJudge(t *table) error {
	seconds, share := column{figure: figRecovered, unit: "s", divide: 1e9}, column{figure: figAfter, unit: "%", divide: 0.01}
	errs := []error{
		t.bound("ours: goodput after it, of what is offered,", named(armOurs), share, 0.97, true),
		t.bound("the control arm collapses at 400 calls a second and more, for good: goodput after it, of what is offered,",
			func(a *arm) bool { return a.name == armNone && a.calls.PerS >= 400 }, share, 0.01, false),
	}
	for _, name := range []string{armOurs, armQueue, armNewest, armCancel, armBudget} {
		alone := ""
		if name != armOurs {
			alone = " alone"
		}
		errs = append(errs, t.recovery(name, alone, seconds))
	}
	return errors.Join(errs...)
}

// recovery is the bound of an arm's recovery. One that never recovered, in any round, counts with all the time that it was watched.
func (t *table) recovery(name, alone string, c column) error {
	for i := range t.arms {
		for at := range t.rows[i] {
			if r := &t.rows[i][at]; r.Arm == name {
				if _, found := r.Figures[figRecovered]; !found {
					a := &t.arms[i]
					return t.AtMost("E3 "+name+alone+": recovered, which it never was, within", (a.calls.Length - a.slow.to).Seconds(), recovers[name].Seconds(), c.unit)
				}
			}
		}
	}
	return t.bound(name+alone+": recovered within", named(name), c, float64(recovers[name]), false)
}
