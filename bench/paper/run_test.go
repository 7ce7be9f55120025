package paper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// output runs the options and returns what was printed.
func output(t *testing.T, o Options) (*Report, string) {
	t.Helper()
	var b bytes.Buffer
	o.Out = &b
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r, b.String()
}

// TestSameBytes: how many run at once, and which ends first, shows nowhere.
func TestSameBytes(t *testing.T) {
	f := newFake(t, Small())
	scatter(f)
	for _, asJSON := range []bool{false, true} {
		o := Options{Runner: f, Size: Small(), JSON: asJSON, Seed: seedtest.Seed(t)}
		o.Parallel = 1
		_, first := output(t, o)
		o.Parallel = 16
		if _, second := output(t, o); first != second {
			t.Errorf("JSON %v: %d bytes of one at a time, %d others of 16", asJSON, len(first), len(second))
		}
	}
}

// TestFiguresCome: a figure is printed once its runs are there, not when all are.
func TestFiguresCome(t *testing.T) {
	f := newFake(t, Small())
	var b lockedBuffer
	var early atomic.Bool
	f.change = func(p Point, _ *Result) {
		if p.Figure == "F12" && strings.Contains(b.String(), "F1  Motivation") {
			early.Store(true)
		}
	}
	if _, err := Run(context.Background(), Options{Runner: f, Size: Small(), Parallel: 1, Out: &b}); err != nil {
		t.Fatal(err)
	}
	if !early.Load() {
		t.Error("F1 was not printed before the last figure ran")
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestTextHasEveryRow: each row that has a run is a line, with Windows those of F7 too.
func TestTextHasEveryRow(t *testing.T) {
	f := newFake(t, Full())
	_, text := output(t, Options{Runner: f, Windows: true, Costs: "receive 1 ns."})
	row, lines := regexp.MustCompile(`^\d+ +\S+ .* (k/s|µs|%) `), 0
	for line := range strings.Lines(text) {
		if row.MatchString(line) {
			lines++
		}
	}
	// Less the lines and the clouds, and the three tuned points say two things.
	if want := 4905 - 28 - 78 + 3; lines != want {
		t.Errorf("%d rows are printed, want %d", lines, want)
	}
	for _, want := range []string{
		"Costs, the same for all: receive 1 ns.\n", "seed 1.", "F3  Load curves", "Summary: how far", "Checks of order: ", "78 published rows beside these: the paper does not say",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the text", want)
		}
	}
	if _, short := output(t, Options{Runner: f}); len(short) > len(text)/3 {
		t.Errorf("%d bytes without the windows, %d with them", len(short), len(text))
	}
}

// TestObjects: each published value is in one object, under its name and in base units.
func TestObjects(t *testing.T) {
	f := newFake(t, Full())
	_, text := output(t, Options{Runner: f, JSON: true})
	values, ours, spikes := 0, 0, 0
	for line := range strings.Lines(text) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if o["schema"] != "stillwater.sim.paper.v1" || o["experiment"] == nil || o["point"] == nil || o["scheme"] == nil && o["not_simulated"] == nil {
			t.Fatalf("%s", line)
		}
		for key := range o {
			if strings.HasPrefix(key, "published_") && strings.Contains(key, "_per_s") || strings.HasPrefix(key, "published_latency") ||
				key == "published_drop_ratio" || key == "published_reject_delay_ns_avg" {
				values++
			}
		}
		if o["scheme"] == "stillwater" {
			ours++
			for _, key := range []string{"goodput_per_s", "capacity_per_s", "latency_ns_p99", "slo_ns"} {
				if v, found := o[key].(float64); !found || v <= 0 {
					t.Fatalf("no %s: %s", key, line)
				}
			}
		}
		if o["point"] == "spike" {
			spikes++
			if o["scheme"] == "seda" && (o["recovery_ns"] != 1.58e9 || o["published_recovery_ns"] != 1.58e9) {
				t.Errorf("%s", line)
			}
		}
	}
	// The points of F11's clouds and its tuned ones say two things.
	if want := 4905 + 78 + 3; values != want {
		t.Errorf("%d published values, want %d", values, want)
	}
	if ours < 600 || spikes != len(Schemes()) {
		t.Errorf("%d objects of ours and %d spikes", ours, spikes)
	}
}

// TestOneObject is the form of one, as the documentation has it.
func TestOneObject(t *testing.T) {
	f := newFake(t, Full())
	f.change = func(p Point, r *Result) { r.LatencyNsP50, r.GoodputPerS = math.NaN(), 700e3 }
	_, text := output(t, Options{Runner: f, JSON: true, Figures: []string{"F4"}, Schemes: []Scheme{BreakwaterArtifact}})
	first, _, _ := strings.Cut(text, "\n")
	const want = `{"schema":"stillwater.sim.paper.v1","experiment":"E12","figure":"F4","panel":"a-0.9x","point":"constant","scheme":"breakwater-artifact",` +
		`"published_curve":"Breakwater","clients":1000,"demand_per_s":800000,"service":"constant:10µs",` +
		`"goodput_per_s":700000,"published_goodput_per_s":795240,"throughput_per_s":`
	if !strings.HasPrefix(first, want) || !strings.HasSuffix(first, `"outside":["goodput"]}`) || strings.Contains(first, "p50") {
		t.Errorf("%s", first)
	}
}

// stuck is a runner whose runs end with their context.
type stuck struct{ started chan struct{} }

func (s stuck) Run(ctx context.Context, _ Point, _ uint64) (Result, error) {
	s.started <- struct{}{}
	<-ctx.Done()
	return Result{}, ctx.Err()
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := stuck{make(chan struct{}, 1000)}
	go func() {
		<-s.started
		<-s.started
		cancel()
	}()
	_, err := Run(ctx, Options{Runner: s, Out: io.Discard, Parallel: 2})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := len(s.started); n > 0 {
		t.Errorf("%d runs were started after the end", n)
	}
}

// failing is a fake that fails at one point.
type failing struct {
	*fake
	err error
}

func (f failing) Run(ctx context.Context, p Point, seed uint64) (Result, error) {
	if p.Scheme == SEDA && p.Panel == "a-0.9x" && p.Service.Shape == workload.Constant {
		return Result{}, f.err
	}
	return f.fake.Run(ctx, p, seed)
}

func TestRunnerFails(t *testing.T) {
	broken := errors.New("broken")
	f := failing{newFake(t, Small()), broken}
	_, err := Run(context.Background(), Options{Runner: f, Size: Small(), Out: io.Discard, Parallel: 3})
	if !errors.Is(err, broken) || !strings.Contains(fmt.Sprint(err), "F4 a-0.9x seda, 1000 clients, constant:10µs, 800k/s") {
		t.Errorf("%v", err)
	}
	if n := int(f.runs.Load()); n >= len(plan(t, nil, nil, Small()).Points)/2 {
		t.Errorf("%d runs after the failure", n)
	}
}

// seeds is a runner that notes the seeds of its runs.
type seeds struct {
	*fake
	mu    sync.Mutex
	known map[string]uint64
}

func (s *seeds) Run(ctx context.Context, p Point, seed uint64) (Result, error) {
	s.mu.Lock()
	s.known[p.key()] = seed
	s.mu.Unlock()
	return s.fake.Run(ctx, p, seed)
}

// TestRunsGetTheirSeeds: each point runs once, with the seed that belongs to it.
func TestRunsGetTheirSeeds(t *testing.T) {
	s := &seeds{fake: newFake(t, Small()), known: map[string]uint64{}}
	seed := seedtest.Seed(t)
	r, _ := output(t, Options{Runner: s, Size: Small(), Seed: seed})
	if n := int(s.runs.Load()); n != len(r.Plan.Points) {
		t.Errorf("%d runs of %d points", n, len(r.Plan.Points))
	}
	for _, p := range r.Plan.Points {
		if s.known[p.key()] != p.seed(seed) {
			t.Errorf("%s ran with another seed", p.Name())
		}
	}
}

// TestSentencesBesideObjects: in JSON mode what is for people goes beside the bar, and only there.
func TestSentencesBesideObjects(t *testing.T) {
	side, err := os.Create(filepath.Join(t.TempDir(), "side"))
	if err != nil {
		t.Fatal(err)
	}
	defer side.Close()
	r, text := output(t, Options{Runner: newFake(t, Small()), Size: Small(), JSON: true, Figures: []string{"F6"}, Progress: side})
	said, err := os.ReadFile(side.Name())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(said), "\n"+r.Verdict+"\n") || !strings.Contains(string(said), "54 runs, ") || strings.Contains(text, r.Verdict) {
		t.Errorf("beside: %q", said)
	}
}

// full is a writer that takes so many bytes.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestOutputFails(t *testing.T) {
	f := newFake(t, Small())
	for _, room := range []int{0, 500, 5000} {
		for _, asJSON := range []bool{false, true} {
			_, err := Run(context.Background(), Options{Runner: f, Size: Small(), Out: &full{room}, JSON: asJSON, Figures: []string{"F3", "F4"}})
			if !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("room for %d bytes, JSON %v: %v", room, asJSON, err)
			}
		}
	}
	_, err := Run(context.Background(), Options{Runner: f, Size: Small(), Out: io.Discard, HTML: filepath.Join(t.TempDir(), "no", "such"), Figures: []string{"F6"}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("page: %v", err)
	}
}

func TestOptions(t *testing.T) {
	f := newFake(t, Small())
	for name, o := range map[string]Options{
		"no runner":   {Out: io.Discard},
		"no output":   {Runner: f},
		"parallel":    {Runner: f, Out: io.Discard, Parallel: -1},
		"a figure":    {Runner: f, Out: io.Discard, Figures: []string{"F2"}},
		"a scheme":    {Runner: f, Out: io.Discard, Schemes: []Scheme{"tcp"}},
		"half a size": {Runner: f, Out: io.Discard, Size: Size{Requests: 1}},
	} {
		if _, err := Run(context.Background(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := f.runs.Load(); n > 0 {
		t.Errorf("%d runs of bad options", n)
	}
	for _, s := range Schemes() {
		if got, err := ParseScheme(string(s)); err != nil || got != s {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
}

// TestEmptyResults: a runner that measured nothing makes bad figures, and no panic.
func TestEmptyResults(t *testing.T) {
	f := newFake(t, Small())
	nan := math.NaN()
	for _, r := range []Result{{}, {GoodputPerS: nan, ThroughputPerS: nan, CapacityPerS: nan, LatencyNsP50: nan, LatencyNsP99: nan, DropRatioServer: nan}} {
		f.change = func(_ Point, result *Result) { *result = r }
		for _, asJSON := range []bool{false, true} {
			report, _ := output(t, Options{Runner: f, Size: Small(), JSON: asJSON, HTML: filepath.Join(t.TempDir(), "page.html")})
			if report.Passed || report.Within > 0 {
				t.Errorf("%d of %d within", report.Within, report.Judged)
			}
		}
	}
}
