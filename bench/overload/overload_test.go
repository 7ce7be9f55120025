//go:build linux

package overload

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/callers"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/toolbox"
)

func TestMain(m *testing.M) {
	prove.Children()
	os.Exit(m.Run())
}

// short are the experiments as they are, in moments: nothing collapses in so little time, and nothing recovers.
func short(full bool) []*experiment {
	const moment = 30 * time.Millisecond
	q := queue{length: moment, calibrate: time.Second, full: full}
	s := storm{before: moment, trouble: moment, patience: moment, calibrate: time.Second, full: full}
	l := levels{warmup: moment, length: moment, calibrate: time.Second, full: full}
	k := locks{warmup: moment, length: moment, calibrate: time.Second}
	return []*experiment{q.experiment(), s.experiment(), l.experiment(), k.experiment()}
}

// What must hold however slow the machine is: each arm is run over AF_XDP, all calls are in the books, these balance at both ends, and all of it can be shown and judged.
func TestArmsForReal(t *testing.T) {
	labtest.Require(t)
	for _, e := range short(false) {
		r := prove.NewRun("overload", 1)
		var out bytes.Buffer
		r.Out = &out
		got, err := e.measure(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", e.id, err)
		}
		if len(got.capacity) != 1 || got.capacity[0] <= 0 {
			t.Errorf("%s: capacity %v", e.id, got.capacity)
		}
		for i, rows := range got.rows {
			if len(rows) != 1 {
				t.Fatalf("%s: %d rounds of arm %d", e.id, len(rows), i)
			}
			c := rows[0].Calls
			if ended := c.Answered + c.Rejected + c.Unsent + c.Lost; ended > c.Made {
				t.Errorf("%s, %s, %s: %d calls ended of %d: %+v", e.id, rows[0].Point, rows[0].Arm, ended, c.Made, c)
			}
		}
		if err := got.show(); err != nil {
			t.Fatal(err)
		}
		if err := e.judge(got); err != nil {
			t.Fatal(err)
		}
		for i := range e.arms {
			if !strings.Contains(out.String(), e.arms[i].name) {
				t.Errorf("%s: the table has no %s:\n%s", e.id, e.arms[i].name, out.String())
			}
		}
	}
}

// Each arm has one of its name in the simulator, at both sizes.
func TestArmsAreTheSimulators(t *testing.T) {
	simulated := map[string]*toolbox.Experiment{}
	for _, e := range toolbox.Experiments() {
		simulated[e.ID] = e
	}
	for _, full := range []bool{false, true} {
		for _, e := range short(full) {
			if e.play != nil { // it is none of the toolbox
				continue
			}
			seen := map[string]bool{}
			for _, j := range simulated[e.id].Jobs(e.size) {
				seen[j.At+j.Arm] = true
			}
			for i := range e.arms {
				if a := &e.arms[i]; !seen[a.point+a.name] {
					t.Errorf("%s: the simulator has no %s at %s", e.id, a.name, a.point)
				}
			}
		}
	}
}

// The simulator's figures have the names under which ours stand beside them.
func TestFiguresAreTheSimulators(t *testing.T) {
	e := short(false)[1]
	e.arms = e.arms[len(e.arms)-1:]
	r := prove.NewRun("overload", 1)
	got := &table{experiment: e, Run: r, rows: make([][]row, 1)}
	if err := got.simulate(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, figure := range []string{figAfter, figRecovered, figBacklog} {
		if !got.hasSimulated(column{figure: figure}) {
			t.Errorf("the simulator has no %s: %v", figure, got.simulated)
		}
	}
	if got.hasSimulated(column{figure: figLateness}) || got.hasSimulated(column{figure: figAfter, apart: true}) {
		t.Error("what the simulator has not, or of another length of time, is shown")
	}
	if cells := got.cells(0); cells[2] != nil || cells[3] == nil {
		t.Errorf("what was not measured, beside what was simulated: %v", cells)
	}
	e.arms[0].name = "nobody"
	if err := got.simulate(context.Background()); err == nil {
		t.Error("an arm that the simulator has not is simulated")
	}
}

func TestQueueFigures(t *testing.T) {
	a := &arm{calls: callers.Plan{Length: 10 * time.Second}}
	got := queueFigures(a, 500, &callers.Result{Made: 200, Good: 90, Answered: 100, Rejected: 20, Unsent: 30, Pending: 40, LatencyP99: 7, LatenessP99: 3})
	for figure, want := range map[string]float64{
		figServed: 10, figGoodput: 9, figShare: 0.018, figBacklog: 40, figP99: 7, figRefused: 0.25, figRejected: 0.1, figLateness: 3,
	} {
		if math.Abs(got[figure]-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", figure, got[figure], want)
		}
	}
}

func TestLocksFigures(t *testing.T) {
	a := &arm{calls: callers.Plan{Warmup: time.Second, Length: 11 * time.Second}}
	got := locksFigures(a, 20, &callers.Result{Made: 400, Good: 100, Rejected: 40, LatencyP99: 7, LatenessP99: 3})
	for figure, want := range map[string]float64{figGoodput: 10, figShare: 0.5, figP99: 7, figRejected: 0.1, figLateness: 3} {
		if math.Abs(got[figure]-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", figure, got[figure], want)
		}
	}
}

// Each bound of the lock can be missed, and ours is held against fixed workers of the same run.
func TestLocksJudge(t *testing.T) {
	for _, x := range []struct {
		none, fixed, ours, gate float64
		missed                  int
	}{{0, 0.9, 0.94, 1.3, 0}, {0, 0.93, 0.94, 1.3, 1}, {0, 0.9, 0.92, 1.3, 2}, {0, 0.9, 0.94, 1.29, 1}, {0.06, 0.9, 0.94, 1.3, 1}} {
		e := (&locks{warmup: time.Second, length: time.Second}).experiment()
		got := &table{experiment: e, Run: prove.NewRun("overload", 1)}
		for i, share := range []float64{x.none, x.fixed, x.ours, x.gate} {
			got.rows = append(got.rows, []row{{Arm: e.arms[i].name, Figures: map[string]float64{figShare: share}}})
		}
		if err := got.judge(got); err != nil {
			t.Fatal(err)
		}
		if n := len(got.Missed()); n != x.missed {
			t.Errorf("%+v: %d missed: %q", x, n, got.Missed())
		}
	}
}

// The simulator plays the arms of the lock, and they come to what E16 says of shorter times.
func TestLocksAreSimulated(t *testing.T) {
	l := locks{warmup: 8 * time.Second, length: time.Second} // it takes that long to find the bound
	e := l.experiment()
	share := map[string]float64{}
	for i := range e.arms {
		figures, err := e.play(t.Context(), &e.arms[i], 1)
		if err != nil {
			t.Fatal(err)
		}
		share[e.arms[i].name] = figures[figShare]
	}
	if share[armNone] > lockCollapse || share[armGate] < lockGateMin || share[armFixed] > 0.92 || share[armOurs] < lockGain*share[armFixed] {
		t.Errorf("of what the lock can do: %v", share)
	}
}

func TestLevelsFigures(t *testing.T) {
	a := &arm{calls: callers.Plan{Warmup: time.Second, Length: 11 * time.Second}}
	got := levelsFigures(a, 20, &callers.Result{Good: 100, Levels: [4]callers.Level{{Made: 100, Good: 5}, {Made: 100, Good: 10}, {Made: 50, Good: 35}, {Made: 50, Good: 50}}})
	for figure, want := range map[string]float64{figShare: 0.5, figBatch: 0.05, figSheddable: 0.1, figCritical: 0.7, figPlus: 1, figLeast: 0.05} {
		if math.Abs(got[figure]-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", figure, got[figure], want)
		}
	}
}

// Recovered is the first second from which three have 95 % of what is asked for in them.
func TestSettled(t *testing.T) {
	seconds := func(good ...int) (all []callers.Second) {
		for _, n := range good {
			all = append(all, callers.Second{Made: 100, Good: n})
		}
		return all
	}
	for _, x := range []struct {
		seconds []callers.Second
		want    int
	}{
		{nil, -1},
		{seconds(100, 100), -1}, // too short to say
		{seconds(100, 100, 100), 0},
		{seconds(95, 95, 95), 0},
		{seconds(94, 95, 95), -1},
		{seconds(0, 95, 95, 95), 1},
		{seconds(0, 0, 0, 300), 1}, // what was waiting
		{make([]callers.Second, 5), -1},
	} {
		if got := settled(x.seconds); got != x.want {
			t.Errorf("%v: %d, want %d", x.seconds, got, x.want)
		}
	}
}

func TestStormFigures(t *testing.T) {
	s := storm{before: time.Second, trouble: time.Second}
	r := &callers.Result{Made: 10, Attempts: 25, Pending: 3, Seconds: make([]callers.Second, 15)}
	for i := range r.Seconds {
		r.Seconds[i] = callers.Second{Made: 10, Answered: 12}
		if i >= 4 {
			r.Seconds[i].Good = 10
		}
	}
	got := s.figures(r)
	for figure, want := range map[string]float64{figAfter: 1, figServed: 12, figAttempts: 2.5, figBacklog: 3, figRecovered: 2e9} {
		if got[figure] != want {
			t.Errorf("%s is %v, want %v", figure, got[figure], want)
		}
	}
	for i := range r.Seconds {
		r.Seconds[i].Good = 0
	}
	if _, found := s.figures(r)[figRecovered]; found {
		t.Error("what answers nothing has recovered")
	}
}

// tableOf is a table of a storm in which all arms came to the same.
func tableOf(figures map[string]float64) *table {
	e := (&storm{before: 10 * time.Second, trouble: 10 * time.Second}).experiment()
	got := &table{experiment: e, Run: prove.NewRun("overload", 1), rows: make([][]row, len(e.arms))}
	for i := range e.arms {
		got.rows[i] = []row{{Arm: e.arms[i].name, Figures: figures}}
	}
	return got
}

// Each bound of the storm can be missed: what never recovers misses the bounds of recovery, what recovers misses that of the control arm, which must not.
func TestStormJudge(t *testing.T) {
	for _, x := range []struct {
		name    string
		figures map[string]float64
		missed  int
	}{
		{"all recover at once", map[string]float64{figAfter: 1, figRecovered: 0}, 1},
		{"none does", map[string]float64{figAfter: 0}, 6},
		{"all do at 15 s", map[string]float64{figAfter: 1, figRecovered: 15e9}, 1},
		{"all do at 16 s", map[string]float64{figAfter: 1, figRecovered: 16e9}, 4},
		{"all do at 61 s", map[string]float64{figAfter: 1, figRecovered: 61e9}, 6},
	} {
		got := tableOf(x.figures)
		if err := got.judge(got); err != nil {
			t.Fatal(err)
		}
		if n := len(got.Missed()); n != x.missed {
			t.Errorf("%s: %d missed: %q", x.name, n, got.Missed())
		}
	}
}

// A figure of callers who were late is no figure; the control arm may be late.
func TestDoubt(t *testing.T) {
	limit := latenessShare * float64(stormTimeout)
	for _, x := range []struct {
		late float64
		arms string // which of them are; "" = all
		busy bool
	}{{0, "", false}, {limit, "", false}, {limit + 1, "", true}, {limit + 1, armNone, false}, {limit + 1, armOurs, true}} {
		got := tableOf(nil)
		for i := range got.rows {
			r := &got.rows[i][0]
			r.Figures = map[string]float64{figLateness: 0}
			if x.arms == "" || x.arms == r.Arm {
				r.Figures[figLateness] = x.late
			}
		}
		if err := got.doubt(); errors.Is(err, errBusy) != x.busy || !x.busy && err != nil {
			t.Errorf("%v late, arms %q: %v", time.Duration(x.late), x.arms, err)
		}
	}
}

func TestBoundWithoutArms(t *testing.T) {
	if err := tableOf(nil).bound("nobody's", named("nobody"), column{figure: figAfter, divide: 1}, 1, true); err == nil {
		t.Error("a bound on nothing is judged")
	}
}
