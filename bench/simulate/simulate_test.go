package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// small is a scenario of 20,000 calls.
func small(scheme string, load float64) Scenario {
	s := Scenario{
		Seed: 1, Scheme: scheme, Clients: 100, Service: workload.ServiceTime{Shape: workload.Exponential, Mean: 10 * time.Microsecond},
		Warmup: Duration(5 * time.Millisecond),
	}
	demand := load * s.Capacity()
	s.Demand = []Step{{PerS: demand}}
	s.Measure = Duration(20_000 / demand * float64(time.Second))
	return s
}

func run(t *testing.T, s Scenario) *Result {
	t.Helper()
	r, err := Run(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every scheme plays: below capacity all of them serve what is asked, and nothing forbidden happens at twice of it either.
func TestEverySchemePlays(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine and millions of events: run without the race detector, by scripts/test too")
	}
	for _, scheme := range baseline.Names() {
		low := small(scheme, 0.5)
		low.Warmup = Duration(150 * time.Millisecond) // published ones begin carefully
		half := run(t, low)
		if half.GoodputPerS < 0.97*half.OfferedPerS {
			t.Errorf("%s at half of capacity: %.0f good of %.0f offered, %v", scheme, half.GoodputPerS, half.OfferedPerS, half.Outcomes)
		}
		twice := run(t, small(scheme, 2))
		if len(twice.Violations) > 0 || twice.ThroughputPerS == 0 || twice.ThroughputPerS > 1.05*twice.CapacityPerS {
			t.Errorf("%s at twice the capacity: %+v", scheme, twice)
		}
	}
}

// The control arm collapses, and ours does not: else the experiment shows nothing.
func TestControlArmCollapses(t *testing.T) {
	none, ours := small(baseline.None, 2), small(baseline.Stillwater, 2)
	none.Measure, ours.Measure = Duration(40*time.Millisecond), Duration(40*time.Millisecond)
	if r := run(t, none); r.GoodputPerS > 0.1*r.CapacityPerS {
		t.Errorf("without control goodput is %.0f of %.0f", r.GoodputPerS, r.CapacityPerS)
	}
	if r := run(t, ours); r.GoodputPerS < 0.95*r.CapacityPerS || r.DropRatio > 0.01 {
		t.Errorf("ours: goodput %.0f of %.0f, %.2f %% dropped", r.GoodputPerS, r.CapacityPerS, 100*r.DropRatio)
	}
}

// A scenario is a file: what is read is what was written, and it gives the same result to the byte.
func TestFileReplays(t *testing.T) {
	s := small("dagor", 1.2)
	s.Name, s.Window = "a story", Duration(time.Millisecond)
	s.Server.Wait = &Wait{For: Duration(time.Microsecond), Share: 0.1, Lock: true}
	s.Network.Loss = 0.01
	text, err := s.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var results [2][]byte
	for i, s := range []Scenario{s, again} {
		if results[i], err = json.Marshal(run(t, s)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(results[0], results[1]) {
		t.Errorf("two results:\n%s\n%s", results[0], results[1])
	}
}

func TestBadScenarios(t *testing.T) {
	for text, want := range map[string]string{
		``:                                "EOF",
		`{}`:                              "nothing is measured",
		`{"measure":"1s"}`:                "demand must begin at 0",
		`{"measure":"1s","demand":[]}{}`:  "something stands behind it",
		`{"measure":"1s","clinets":5}`:    `unknown field "clinets"`,
		`{"measure":"1","demand":[]}`:     "missing unit",
		`{"measure":"-1s","demand":[{}]}`: "it cannot be negative",
		`{"measure":"1s","demand":[{"at":"1s"}]}`:                                                     "demand must begin at 0",
		`{"measure":"1s","demand":[{"per_s":-1}]}`:                                                    "from 0 to",
		`{"measure":"1s","demand":[{"per_s":1},{"at":"2s","per_s":1},{"at":"1s"}]}`:                   "each later than the one before",
		`{"measure":"1s","demand":[{"per_s":1}],"scheme":"magic"}`:                                    "it must be stillwater",
		`{"measure":"1s","demand":[{"per_s":1}],"clients":-1}`:                                        "at least one on each",
		`{"measure":"1s","demand":[{"per_s":1}],"clients":2,"hosts":3}`:                               "at least one on each",
		`{"measure":"1s","demand":[{"per_s":1}],"server":{"cpus":-1}}`:                                "-1 CPUs",
		`{"measure":"1s","demand":[{"per_s":1}],"network":{"loss":1.5}}`:                              "a probability is between 0 and 1",
		`{"measure":"1s","demand":[{"per_s":1}],"server":{"wait":{"share":2}}}`:                       "a share between 0 and 1",
		`{"measure":"1s","demand":[{"per_s":1}],"server":{"wait":{"share":1,"depth":1,"gate":true}}}`: "a gate is in front of a lock",
	} {
		_, err := Read(strings.NewReader(text))
		if !errors.Is(err, ErrScenario) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The capacities that the paper states for its machine follow from one overhead.
func TestPaperCapacities(t *testing.T) {
	for mean, want := range map[time.Duration]float64{10 * time.Microsecond: 850e3, time.Microsecond: 3.6e6, 100 * time.Microsecond: 98e3} {
		s := Scenario{Service: workload.ServiceTime{Mean: mean}}
		if got := s.Capacity(); math.Abs(got/want-1) > 0.01 {
			t.Errorf("%v: %.0f/s, the paper says %.0f", mean, got, want)
		}
	}
	s := Scenario{Service: workload.ServiceTime{Mean: 10 * time.Microsecond}}
	s.Server.Wait = &Wait{For: Duration(50 * time.Microsecond), Share: 0.1, Lock: true}
	if got := s.Capacity(); math.Abs(got/200e3-1) > 1e-9 {
		t.Errorf("a lock held for 50 us by one call in ten: %.0f/s, want 200000", got)
	}
}

// Windows are slices of the same run: together they hold what the whole holds.
func TestWindowsAddUp(t *testing.T) {
	s := small("stillwater", 1.5)
	s.Window = s.Measure / 4
	r := run(t, s)
	var sum float64
	for _, w := range r.Windows {
		sum += w.GoodputPerS / float64(len(r.Windows))
	}
	if len(r.Windows) < 4 || math.Abs(sum*float64(len(r.Windows))/4/r.GoodputPerS-1) > 0.01 {
		t.Errorf("%d windows, mean goodput %.0f; of the whole %.0f", len(r.Windows), sum, r.GoodputPerS)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := small("stillwater", 1)
	s.Measure = Duration(time.Hour)
	if _, err := Run(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
