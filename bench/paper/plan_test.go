package paper

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/paper/published"
	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// plan plans, or fails the test. The plans of everything are kept: many tests look at them and none changes them.
func plan(t testing.TB, figures []string, schemes []Scheme, size Size) *Plan {
	t.Helper()
	all := figures == nil && schemes == nil
	if p, found := plans.Load(size); found && all {
		return p.(*Plan)
	}
	p, err := NewPlan(figures, schemes, size)
	if err != nil {
		t.Fatal(err)
	}
	if all {
		plans.Store(size, p)
	}
	return p
}

// plans are those of everything, by Size.
var plans sync.Map

// TestEveryRowHasAPlace: each published row is in the plan once, with a run or a reason. The tuned points of F11 are in it twice.
func TestEveryRowHasAPlace(t *testing.T) {
	rows, err := published.Rows()
	if err != nil {
		t.Fatal(err)
	}
	places, why := map[int]int{}, map[string]int{}
	for _, c := range plan(t, nil, nil, Full()).Cells {
		if c.Row == nil {
			continue
		}
		places[c.Row.Line]++
		if (c.Point < 0) != (c.Why != "") {
			t.Errorf("line %d: point %d, reason %q", c.Row.Line, c.Point, c.Why)
		}
		if c.Why != "" {
			why[c.Why]++
		}
	}
	for _, r := range rows {
		want := 1
		if r.Panel == "best" {
			want = 2
		}
		if places[r.Line] != want {
			t.Errorf("line %d, %s %s %s at %s, has %d places, want %d", r.Line, r.Figure, r.Panel, r.Scheme, r.X, places[r.Line], want)
		}
	}
	want := map[string]int{
		"a line of the drawing, not a run":                                          28,
		"the paper does not say which settings this point has; compared as a cloud": 78,
	}
	if fmt.Sprint(why) != fmt.Sprint(want) {
		t.Errorf("not simulated: %v, want %v", why, want)
	}
}

// find returns the point of a published row.
func find(t *testing.T, p *Plan, figure, panel, scheme, x string) Point {
	t.Helper()
	i := slices.IndexFunc(p.Cells, func(c Cell) bool {
		return c.Row != nil && c.Figure == figure && c.Panel == panel && c.Row.Scheme == scheme && c.XText == x
	})
	if i < 0 {
		t.Fatalf("no cell %s %s %s %s", figure, panel, scheme, x)
	}
	return p.Points[p.Cells[i].Point]
}

// TestSetUps checks what the figures' labels do not say, or say wrongly.
func TestSetUps(t *testing.T) {
	p := plan(t, nil, nil, Full())
	const us = time.Microsecond
	exp := func(mean time.Duration) workload.ServiceTime {
		return workload.ServiceTime{Shape: workload.Exponential, Mean: mean}
	}
	for _, tt := range []struct {
		figure, panel, curve, x string
		scheme                  Scheme
		demand                  float64
		clients                 int
		service                 workload.ServiceTime
		slo                     time.Duration
	}{
		{"F1", "a", "win-based RL", "1.3", Window, 1.3e6, 1000, exp(10 * us), 200 * us},
		{"F1", "b", "CoDel", "10000", CoDel, 2e6, 10000, exp(10 * us), 200 * us},
		{"F3", "c", "Breakwater", "0.7", BreakwaterArtifact, 0.7e6, 1000, exp(10 * us), 200 * us},
		{"F4", "a-0.9x", "DAGOR", "bimodal", DAGOR, 0.8e6, 1000, workload.ServiceTime{Shape: workload.Bimodal, Mean: 10 * us}, 200 * us},
		{"F4", "b-1.2x", "SEDA", "constant", SEDA, 1.0e6, 1000, workload.ServiceTime{Mean: 10 * us}, 200 * us},
		{"F4", "c-2x", "SEDA", "exponential", SEDA, 1.6e6, 1000, exp(10 * us), 200 * us},
		{"F5", "a-1us", "SEDA", "6.0", SEDA, 6e6, 1000, exp(us), 110 * us},
		{"F5", "c-100us", "DAGOR", "180", DAGOR, 180e3, 1000, exp(100 * us), 1100 * us},
		{"F6", "a-1x", "Breakwater", "100", BreakwaterArtifact, 0.8e6, 100, exp(10 * us), 200 * us},
		{"F6", "b-2x", "SEDA", "10000", SEDA, 1.6e6, 10000, exp(10 * us), 200 * us},
		{"F9", "a", "no control", "0.2996", None, 0.3e6, 1000, exp(10 * us), 200 * us},
		{"F9", "b-offchart-lb", "no control", "1.3875", None, 1.3884e6, 1000, exp(10 * us), 200 * us},
		{"S7", "slide7", "no control", "0.8524", None, 0.8515e6, 1000, exp(10 * us), 200 * us},
		{"F10", "-", "Breakwater", "a0.05%/b10%", BreakwaterArtifact, 1.6e6, 1000, exp(10 * us), 200 * us},
		{"F11", "best", "DAGOR", "790.0", DAGOR, 1e6, 1000, exp(10 * us), 200 * us},
		{"F12", "d", "Breakwater", "5.0", BreakwaterArtifact, 5e6, 10000, workload.ServiceTime{Mean: 2240}, 50 * us},
	} {
		got := find(t, p, tt.figure, tt.panel, tt.curve, tt.x)
		if got.Scheme != tt.scheme || math.Abs(got.DemandPerS()-tt.demand) > 1e-6 || got.Clients != tt.clients || got.Service != tt.service || got.SLO != tt.slo {
			t.Errorf("%s %s %s at %s: %+v", tt.figure, tt.panel, tt.curve, tt.x, got)
		}
		if n := got.Requests(); math.Abs(n-500_000) > 1 || got.Workers != 10 || got.RTT != 10*us || got.Warmup != Full().warmup(got) {
			t.Errorf("%s %s: %v requests of %+v", tt.figure, tt.panel, n, got)
		}
	}
}

// TestWarmup: SEDA's clients begin with a few requests a second, and the others do not.
func TestWarmup(t *testing.T) {
	const ms = time.Millisecond
	p := plan(t, nil, nil, Full())
	for _, tt := range []struct {
		figure, panel, curve, x string
		want                    time.Duration
	}{
		{"F3", "a", "Breakwater", "1.6", 300 * ms}, {"F3", "a", "DAGOR", "1.6", 300 * ms}, {"F3", "a", "SEDA", "1.6", 2000 * ms},
		{"F5", "a-1us", "SEDA", "6.0", 2000 * ms}, {"F5", "c-100us", "SEDA", "180", 2000 * ms}, {"F6", "a-1x", "SEDA", "10000", 2000 * ms},
	} {
		if got := find(t, p, tt.figure, tt.panel, tt.curve, tt.x).Warmup; got != tt.want {
			t.Errorf("%s %s %s at %s: %v, want %v", tt.figure, tt.panel, tt.curve, tt.x, got, tt.want)
		}
	}
}

func TestParts(t *testing.T) {
	p := plan(t, nil, nil, Full())
	for curve, want := range map[string]Parts{
		"credit": {Credits: true}, "credit+spec": {Credits: true, Speculation: true}, "credit+spec+AQM": whole,
	} {
		if got := find(t, p, "F9", "a", curve, "1.0"); got.Parts != want || got.Scheme != BreakwaterArtifact {
			t.Errorf("%s: %v of %s", curve, got.Parts, got.Scheme)
		}
	}
	if got := find(t, p, "F8", "b", "sync-TX", "1.0").Parts; got != (Parts{Credits: true, AQM: true}) {
		t.Errorf("sync: %v", got)
	}
	// What the issue asks for and the paper does not have.
	for _, scheme := range creditSchemes {
		if !slices.ContainsFunc(p.Points, func(p Point) bool { return p.Scheme == scheme && p.Parts == Parts{AQM: true} }) {
			t.Errorf("%s never runs with its AQM alone", scheme)
		}
	}
}

func TestTuning(t *testing.T) {
	p := plan(t, nil, nil, Full())
	const us = time.Microsecond
	breakwater := BreakwaterTuning{0.001, 0.02, 80 * us, 160 * us}
	if got := find(t, p, "F6", "b-2x", "Breakwater", "10000").Tuning; got != (Tuning{Breakwater: breakwater}) {
		t.Errorf("breakwater is tuned for 10,000 clients: %+v", got)
	}
	if got := find(t, p, "F5", "a-1us", "Breakwater", "0.5").Tuning.Breakwater; got.TargetDelay != 45*us || got.DropThreshold != 90*us {
		t.Errorf("at 1 us: %+v", got)
	}
	if got := find(t, p, "F10", "-", "Breakwater", "a0.05%/b8%").Tuning.Breakwater; math.Abs(got.Alpha-0.0005) > 1e-12 || math.Abs(got.Beta-0.08) > 1e-12 {
		t.Errorf("F10: %+v", got)
	}
	for x, want := range map[string]float64{"100": 400, "1000": 40, "10000": 4} {
		if got := find(t, p, "F6", "a-1x", "SEDA", x).Tuning.SEDA; math.Abs(got.AdjI-want) > 1e-9 || got.Target != 80*us {
			t.Errorf("SEDA for %s clients: %+v", x, got)
		}
	}
	for x, want := range map[string]time.Duration{"constant": 60 * us, "exponential": 70 * us, "bimodal": 80 * us} {
		if got := find(t, p, "F4", "c-2x", "DAGOR", x).Tuning.DAGOR; got.Threshold != want {
			t.Errorf("DAGOR, %s: %+v", x, got)
		}
	}
	sets := map[string]bool{}
	for _, c := range p.Cells {
		if c.Panel == "27sets" && c.Row == nil {
			sets[fmt.Sprintf("%s %+v", c.Scheme, p.Points[c.Point].Tuning)] = true
		}
	}
	if len(sets) != 5*27 {
		t.Errorf("%d settings, want 27 of each of 5 schemes", len(sets))
	}
}

// TestRunsAreShared: what several figures read is run once.
func TestRunsAreShared(t *testing.T) {
	p := plan(t, nil, nil, Full())
	first := find(t, p, "F3", "a", "Breakwater", "1.6")
	for _, other := range []Point{
		find(t, p, "F5", "b-10us", "Breakwater", "1.6"), find(t, p, "F4", "c-2x", "Breakwater", "exponential"), find(t, p, "F6", "b-2x", "Breakwater", "1000"),
		find(t, p, "F8", "a", "spec", "1.6"), find(t, p, "F9", "b", "credit+spec+AQM", "1.6"), find(t, p, "F10", "-", "Breakwater", "a0.1%/b2%"),
	} {
		if other.key() != first.key() {
			t.Errorf("another run: %+v", other)
		}
	}
	keys := map[string]bool{}
	for _, point := range p.Points {
		if keys[point.key()] {
			t.Errorf("runs twice: %s", point.Name())
		}
		keys[point.key()] = true
	}
}

// TestSideBySide: where a figure has a point of any scheme, all are run.
func TestSideBySide(t *testing.T) {
	p := plan(t, nil, nil, Full())
	for _, f := range []string{"F1", "F3", "F4", "F5", "F6", "F7", "F12"} {
		at := map[place]map[Scheme]bool{}
		for _, c := range p.Cells {
			if c.Figure == f && c.Point >= 0 {
				if at[c.place()] == nil {
					at[c.place()] = map[Scheme]bool{}
				}
				if at[c.place()][c.Scheme] {
					t.Fatalf("%s is twice at %+v of %s", c.Scheme, c.place(), f)
				}
				at[c.place()][c.Scheme] = true
			}
		}
		for where, schemes := range at {
			if len(schemes) != len(Schemes()) {
				t.Errorf("%s at %+v: %d schemes", f, where, len(schemes))
			}
		}
	}
}

func TestSpikePoint(t *testing.T) {
	full := find(t, plan(t, []string{"F7"}, nil, Full()), "F7", "a", "SEDA", "4.02")
	if got := fmt.Sprint(full.Load); got != "[{0s 400000} {2s 800000} {4s 1.2e+06} {6s 800000} {8s 400000}]" || full.Measured != 10*time.Second || full.Window != 20*time.Millisecond {
		t.Errorf("full: %+v", full)
	}
	if n := full.Requests(); math.Abs(n-7.2e6) > 1 {
		t.Errorf("%v requests", n)
	}
	small := plan(t, []string{"F7"}, nil, Small())
	left := 0
	for _, c := range small.Cells {
		if c.Row != nil && c.Metric == Goodput && c.Scheme == SEDA {
			if c.Point >= 0 {
				left++
			}
			if c.XText == "4.2" && c.Window != 600*time.Millisecond {
				t.Errorf("4.2 s is read at %v", c.Window)
			}
			if c.XText == "4.22" && c.Why == "" {
				t.Errorf("4.22 s is read at %v, of stages of 200 ms", c.Window)
			}
		}
	}
	if left != 50 {
		t.Errorf("%d windows of ten times shorter stages, want 50", left)
	}
}

func TestPlanOfSome(t *testing.T) {
	p := plan(t, []string{"F3"}, []Scheme{DAGOR, Protego}, Small())
	if len(p.Points) != 28 {
		t.Errorf("%d points, want 14 of two schemes", len(p.Points))
	}
	for _, c := range p.Cells {
		if c.Figure != "F3" || c.Scheme != DAGOR && c.Scheme != Protego {
			t.Errorf("nobody asked for %s of %s", c.Scheme, c.Figure)
		}
	}
	for name, err := range map[string]error{
		"figure":   second(NewPlan([]string{"F2"}, nil, Full())),
		"scheme":   second(NewPlan(nil, []Scheme{"tcp"}, Full())),
		"requests": second(NewPlan(nil, nil, Size{Stage: time.Second})),
		"nothing":  second(NewPlan([]string{"S7"}, []Scheme{SEDA}, Full())),
		"warm-up":  second(NewPlan(nil, nil, Size{Requests: 1, Warmup: -1, Stage: time.Second})),
		"stage":    second(NewPlan(nil, nil, Size{Requests: 1, Stage: 30 * time.Millisecond})),
	} {
		if !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A scheme alone has the values that it has beside all others: those that stand beside published ones need not run what was published.
func TestPlanOfOneScheme(t *testing.T) {
	values := func(p *Plan, s Scheme) (all []string) {
		for _, c := range p.Cells {
			if c.Scheme == s {
				all = append(all, fmt.Sprintf("%s %+v %s %t", c.Figure, c.place(), c.curve(), c.Point >= 0))
			}
		}
		slices.Sort(all)
		return all
	}
	whole := plan(t, nil, nil, Small())
	for _, s := range Schemes() {
		want, got := values(whole, s), values(plan(t, nil, []Scheme{s}, Small()), s)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %d values alone, and %d beside the others", s, len(got), len(want))
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestSeeds: schemes meet the same arrivals at one load, and other ones at another load or with another seed.
func TestSeeds(t *testing.T) {
	p := plan(t, nil, nil, Full())
	a, b := find(t, p, "F3", "a", "Breakwater", "1.6"), find(t, p, "F3", "a", "SEDA", "1.6")
	c := find(t, p, "F3", "a", "SEDA", "1.4")
	if a.seed(7) != b.seed(7) {
		t.Error("two schemes at one load have two seeds")
	}
	if a.seed(7) == c.seed(7) || a.seed(7) == a.seed(8) {
		t.Error("one seed for two loads, or for two seeds")
	}
}
