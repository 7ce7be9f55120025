package paper

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeResults runs the undistorted fake over a plan.
func fakeResults(t testing.TB, p *Plan) []Result {
	t.Helper()
	return resultsOf(t, newFake(t, p.Size), p)
}

func resultsOf(t testing.TB, f *fake, p *Plan) []Result {
	t.Helper()
	results, err := drive(context.Background(), f, p.Points, 1, 4, func([]Result, int, int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestPublishedMatchesItself: a runner that gives the published values back is within every tolerance, though one run stands for points
// that the paper drew from several, and meets every check that holds for the published figures.
func TestPublishedMatchesItself(t *testing.T) {
	p := plan(t, nil, nil, Full())
	r := newReport(p, fakeResults(t, p))
	for _, c := range r.Comparisons {
		if c.Judged() && !c.Within() {
			t.Errorf("line %d: %v published, %v ours", c.Row.Line, c.Published, c.Ours)
		}
	}
	// By the issue: F3 14+14, F4 9, F5 12+14+15, F6 6, F8 28, F9 42+42, F12 12+12, of the artifact.
	if want := 14 + 14 + 9 + 41 + 6 + 28 + 84 + 24; r.Judged != want {
		t.Errorf("%d judged, want %d", r.Judged, want)
	}
	for _, c := range r.Checks {
		if !c.Met && c.Kind != BestCheck { // the model of ours makes no claim
			t.Errorf("%s: %s", c.Kind, c.Text)
		}
	}
	kinds := map[CheckKind]int{}
	for _, c := range r.Checks {
		kinds[c.Kind]++
	}
	if kinds[CollapseCheck] != 6 || kinds[RecoveryCheck] != 5 || kinds[OrderCheck] < 80 || kinds[BestCheck] != 14+9+41+6+12 {
		t.Errorf("checks %v", kinds)
	}
}

func TestTolerance(t *testing.T) {
	p := plan(t, nil, nil, Full())
	for _, tt := range []struct {
		figure, panel, curve, x string
		metric                  Metric
		want                    float64
	}{
		{"F3", "a", "Breakwater", "0.9", Goodput, 0.03},
		{"F3", "b", "Breakwater", "0.9", P99Latency, 0.15},
		{"F3", "c", "Breakwater", "0.9", DropRatio, 0},
		{"F3", "a", "DAGOR", "0.9", Goodput, 0},
		{"F4", "c-2x", "Breakwater", "bimodal", Goodput, 0.03},
		{"F5", "c-100us", "Breakwater", "180", Goodput, 0.05},
		{"F6", "a-1x", "Breakwater", "100", Goodput, 0.03},
		{"F7", "a", "Breakwater", "4.02", Goodput, 0},
		{"F8", "a", "sync", "1.6", Goodput, 0.05},
		{"F9", "a", "credit", "1.6", Throughput, 0.05},
		{"F9", "b", "credit+spec", "1.6", P99Latency, 0.15},
		{"F9", "b-offchart-lb", "no control", "1.3875", P99Latency, 0},
		{"F10", "-", "Breakwater", "a0.1%/b4%", Goodput, 0},
		{"F11", "best", "Breakwater", "810.4", P99Latency, 0},
		{"F12", "a", "Breakwater", "5.0", Goodput, 0.05},
		{"F12", "c", "Breakwater", "5.0", P99Latency, 0.15},
		{"F12", "b", "Breakwater", "5.0", MedianLatency, 0},
	} {
		found := false
		for _, c := range p.Cells {
			if c.Row != nil && c.Figure == tt.figure && c.Panel == tt.panel && c.Row.Scheme == tt.curve && c.XText == tt.x && c.Metric == tt.metric {
				found = true
				if got := tolerance(c); got != tt.want {
					t.Errorf("%s %s %s at %s: %v, want %v", tt.figure, tt.panel, tt.curve, tt.x, got, tt.want)
				}
			}
		}
		if !found {
			t.Errorf("no %v in %s %s %s at %s", tt.metric, tt.figure, tt.panel, tt.curve, tt.x)
		}
	}
}

// TestOffIsSeen distorts one scheme by what is just allowed, and by a little more.
func TestOffIsSeen(t *testing.T) {
	p := plan(t, []string{"F3"}, nil, Full())
	for _, tt := range []struct {
		name           string
		goodput, p99   float64
		outside        int
		largest, other float64 // of the summaries of goodput and p99
	}{
		{"low, just allowed", 0.9701, 1, 0, -0.0299, 0},
		{"low", 0.969, 1, 14, -0.031, 0},
		{"high", 1.031, 1, 14, 0.031, 0},
		{"slow, just allowed", 1, 1.149, 0, 0, 0.149},
		{"slow", 1, 1.151, 14, 0, 0.151},
		{"not there", math.NaN(), 1, 14, math.NaN(), 0},
	} {
		f := newFake(t, Full())
		// F5 b draws the same runs once more, and is what the fake learned last.
		exact := map[string]Result{}
		for _, c := range p.Cells {
			if c.Row != nil && c.Scheme == BreakwaterArtifact {
				key := p.Points[c.Point].key()
				r, found := exact[key]
				if !found {
					r = f.known[key]
				}
				learn(&r, c)
				exact[key] = r
			}
		}
		f.change = func(p Point, r *Result) {
			if known, found := exact[p.key()]; found {
				*r = known
				r.GoodputPerS *= tt.goodput
				r.LatencyNsP99 *= tt.p99
			}
		}
		r := newReport(p, resultsOf(t, f, p))
		if r.Judged != 28 || r.Judged-r.Within != tt.outside || r.Passed && tt.outside > 0 {
			t.Errorf("%s: %d of %d within, passed %v; want %d outside", tt.name, r.Within, r.Judged, r.Passed, tt.outside)
		}
		for _, s := range r.Summaries {
			want := map[Metric]float64{Goodput: tt.largest, P99Latency: tt.other}
			v, found := want[s.Metric]
			same := math.Abs(s.Largest-v) < 1e-9 || math.IsNaN(s.Largest) && math.IsNaN(v)
			if s.Curve == string(BreakwaterArtifact) && found && !same {
				t.Errorf("%s: largest of %v is %v, want %v", tt.name, s.Metric, s.Largest, v)
			}
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}} {
		if got := median(tt.values); got != tt.want {
			t.Errorf("%v: %v", tt.values, got)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}

// TestLowerBounds: ours above a lower bound is not off, below it is.
func TestLowerBounds(t *testing.T) {
	p := plan(t, []string{"F9"}, []Scheme{None}, Full())
	results := fakeResults(t, p)
	for _, factor := range []float64{0.5, 1.5} {
		changed := make([]Result, len(results))
		for i, r := range results {
			r.LatencyNsP99 *= factor
			changed[i] = r
		}
		bounds := 0
		for _, c := range compare(p.Cells, changed) {
			if c.Row == nil || !c.AtLeast() {
				continue
			}
			bounds++
			if factor > 1 && !math.IsNaN(c.Residual) || factor < 1 && math.Abs(c.Residual+0.5) > 0.02 || c.Judged() {
				t.Errorf("%v times the bound at %s: residual %v", factor, c.XText, c.Residual)
			}
		}
		if bounds != 4 {
			t.Errorf("%d lower bounds, want 4", bounds)
		}
	}
}

// distortions are what each kind of check must see.
var distortions = []struct {
	name   string
	change func(Point, *Result)
	kind   CheckKind
	words  string
}{
	{"seda wins", func(p Point, r *Result) {
		if p.Scheme == SEDA {
			r.GoodputPerS *= 1.2
		}
	}, OrderCheck, "F3 a at 1.6M/s, goodput of breakwater-artifact above that of seda"},
	{"dagor is fast", func(p Point, r *Result) {
		if p.Scheme == DAGOR {
			r.LatencyNsP99 /= 3
		}
	}, OrderCheck, "F12 c at 5M/s, p99 latency of breakwater-artifact below that of dagor"},
	{"few clients help", func(p Point, r *Result) {
		if p.Scheme == BreakwaterArtifact && p.Clients == 100 {
			r.GoodputPerS *= 1.05
		}
	}, OrderCheck, "F6 a-1x at 100 clients, goodput of breakwater-artifact below that of dagor"},
	{"ours is worse", func(p Point, r *Result) {
		if p.Scheme == Stillwater {
			r.GoodputPerS *= 0.9
		}
	}, BestCheck, "F4 c-2x at constant, goodput of stillwater at least that of breakwater-artifact"},
	{"codel holds", func(p Point, r *Result) {
		if p.Scheme == CoDel {
			r.GoodputPerS = p.DemandPerS()
		}
	}, CollapseCheck, "F1 a, goodput of codel"},
	{"a short tail", func(p Point, r *Result) {
		if p.Scheme == None {
			r.LatencyNsP99 = 1.9e6
		}
	}, CollapseCheck, "F9 b at 1.3884M/s, p99 of none: 1900.0 µs, 9.5 SLOs (at least 10)"},
	{"slow again", func(p Point, r *Result) {
		for i := range r.Series {
			if p.Scheme == BreakwaterArtifact && i >= 200 && i < 202 {
				r.Series[i].GoodputPerS = 0
			}
		}
	}, RecoveryCheck, "breakwater-artifact recovers from the spike in 60ms (published: 20ms)"},
	{"never again", func(p Point, r *Result) {
		for i := range r.Series {
			if p.Scheme == SEDA && i >= 200 {
				r.Series[i].GoodputPerS = 0
			}
		}
	}, RecoveryCheck, "seda recovers from the spike in no time within its stage (published: 1.58s)"},
	{"ours dips", func(p Point, r *Result) {
		if p.Scheme == Stillwater && len(r.Series) > 0 {
			r.Series[302].GoodputPerS *= 0.8
		}
	}, RecoveryCheck, "stillwater keeps"},
}

func TestChecksFail(t *testing.T) {
	for _, tt := range distortions {
		f := newFake(t, Full())
		f.change = tt.change
		figure, _, _ := strings.Cut(tt.words, " ")
		if tt.kind == RecoveryCheck {
			figure = "F7"
		}
		p := plan(t, []string{figure}, nil, Full())
		found := false
		for _, c := range newReport(p, resultsOf(t, f, p)).Checks {
			if !c.Met && c.Kind == tt.kind && strings.HasPrefix(c.Text, tt.words) {
				found = true
			}
		}
		if !found {
			t.Errorf("%s: nothing says that %q", tt.name, tt.words)
		}
	}
}

// TestPublishedRecovery holds the function against what the paper says in its text: within one window, 500 ms, 1.58 s; and no dip,
// 77.5 %, 82.6 %, each of which depends on its base.
func TestPublishedRecovery(t *testing.T) {
	for scheme, want := range map[Scheme]Recovery{
		BreakwaterArtifact: {20 * time.Millisecond, 0.97}, DAGOR: {500 * time.Millisecond, 0.788}, SEDA: {1580 * time.Millisecond, 0.816},
	} {
		got, found := publishedRecovery(scheme)
		if !found || got.Time != want.Time || math.Abs(got.Dip-want.Dip) > 0.005 {
			t.Errorf("%s: %+v, want %+v", scheme, got, want)
		}
	}
	if got, found := publishedRecovery(Stillwater); found {
		t.Errorf("ours is published: %+v", got)
	}
}

func TestRecovery(t *testing.T) {
	const n = 10
	series := func(spike ...float64) []float64 {
		all := make([]float64, 5*n)
		for i := range all {
			all[i] = 100
		}
		copy(all[2*n:], spike)
		return all
	}
	for _, tt := range []struct {
		name    string
		goodput []float64
		want    time.Duration
	}{
		{"at once", series(), windowWidth},
		{"at the edge", series(95), windowWidth},
		{"in the third", series(0, 94.9, 95.1, 10), 3 * windowWidth},
		{"never", series(make([]float64, n)...), -1},
		{"cut short", series()[:2*n+5], -1},
		{"nothing", nil, -1},
	} {
		if got := recoveryOf(tt.goodput, n).Time; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	dipped := series()
	dipped[3*n+1] = 60
	if got := recoveryOf(dipped, n).Dip; math.Abs(got-60/96.0) > 1e-9 { // settled: the mean of the stage, the dip in it
		t.Errorf("dip %v", got)
	}
}

// Who never recovers has nothing that a stage settles at, and a dash in its line, without a unit.
func TestRecoveryCells(t *testing.T) {
	const n = 10
	collapsed := append(slices.Repeat([]float64{100}, 2*n), make([]float64, 3*n)...)
	p := RecoveryPair{Scheme: None, Ours: recoveryOf(collapsed, n)}
	if got, want := strings.Join(p.cells(), " "), "none – never – –"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Ours.Dip = 0.95
	if got, want := strings.Join(p.cells(), " "), "none – never – 95.00 %"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A curve that is nothing everywhere has lost all, and not an unknown part.
func TestLost(t *testing.T) {
	for _, c := range []struct{ peak, last, want float64 }{{800, 800, 0}, {800, 200, 0.75}, {800, 0, 1}, {0, 0, 1}} {
		if got := lost(c.peak, c.last); got != c.want {
			t.Errorf("from %v to %v: %v lost, want %v", c.peak, c.last, got, c.want)
		}
	}
}
