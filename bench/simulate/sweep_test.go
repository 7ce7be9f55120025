package simulate

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// A sweep's file says the same runs again, and a scenario's file is a sweep of one.
func TestSweepFile(t *testing.T) {
	w := Sweep{Scenario: small("", 1), Schemes: []string{"stillwater", "none"}, Loads: []float64{0.5, 2}, Calls: 1000}
	w.Demand, w.Measure = nil, 0
	text, err := w.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadSweep(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	runs := again.Scenarios()
	if len(runs) != 4 || runs[0].Scheme != "stillwater" || runs[1].Scheme != "none" || runs[3].Demand[0].PerS != 2*w.Capacity() {
		t.Errorf("%+v", runs)
	}
	if got := runs[2].Demand[0].PerS * time.Duration(runs[2].Measure).Seconds(); got < 999 || got > 1001 {
		t.Errorf("%v calls are measured", got)
	}
	one := small("dagor", 1)
	if text, err = one.Text(); err != nil {
		t.Fatal(err)
	}
	if again, err = ReadSweep(bytes.NewReader(text)); err != nil || len(again.Scenarios()) != 1 || again.Scenarios()[0].Scheme != "dagor" {
		t.Errorf("%v: %+v", err, again)
	}
}

func TestBadSweeps(t *testing.T) {
	const service = `{"service":"constant:10us",`
	for text, want := range map[string]string{
		service + `"loads":[1],"demand":[{"per_s":1}]}`:               "both loads and a demand",
		service + `"calls":5,"measure":"1s","demand":[{"per_s":1}]}`:  "calls are of a load",
		service + `"loads":[1],"calls":5,"measure":"1s"}`:             "give one of them",
		service + `"loads":[-1],"calls":5}`:                           "above 0",
		service + `"loads":[1]}`:                                      "nothing is measured",
		service + `"loads":[1],"calls":5,"schemes":["magic"]}`:        "it must be stillwater",
		service + `"loads":[1],"calls":5,"samples":["-1us"]}`:         "from 0 to",
		`{"loads":[1],"calls":5,"server":{"costs":{"receive":"0s"}}}`: "a server that could answer",
		service + `"loads":[1],"calls":5,"server":{"cpus":8193}}`:     "8193 CPUs: from 1 to 8192",
		service + `"laods":[1]}`:                                      `unknown field "laods"`,
	} {
		if _, err := ReadSweep(strings.NewReader(text)); !errors.Is(err, ErrScenario) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := ReadSweep(strings.NewReader(service + `"loads":[1],"calls":5,"server":{"cpus":8192}}`)); err != nil {
		t.Errorf("as many CPUs as there may be: %v", err)
	}
}

// Samples are drawn evenly, and published settings are looked up by the shape that is like them.
func TestSamples(t *testing.T) {
	for _, shape := range []workload.Shape{workload.Constant, workload.Exponential, workload.Bimodal} {
		rng := workload.ServiceRand(1)
		var drawn samples
		for range 10_000 {
			drawn = append(drawn, Duration(workload.ServiceTime{Shape: shape, Mean: 10 * time.Microsecond}.Sample(rng)))
		}
		near := drawn.nearest()
		if near.Shape != shape || near.Mean < 9*time.Microsecond || near.Mean > 11*time.Microsecond {
			t.Errorf("samples of %v are like %v", shape, near)
		}
	}
	s := small("stillwater", 0.5)
	s.Service, s.Samples = workload.ServiceTime{}, []Duration{Duration(5 * time.Microsecond), Duration(15 * time.Microsecond)}
	if r := run(t, s); r.LatencyP50 < 15_000 || r.LatencyP50 > 40_000 || r.Scenario.Service.Mean != 10*time.Microsecond {
		t.Errorf("p50 %v, service %v", r.LatencyP50, r.Scenario.Service)
	}
}

// All keeps the order, whoever is done first, and ends with the first error.
func TestAll(t *testing.T) {
	var got []int
	gate := make(chan struct{})
	err := All(t.Context(), 50, 8, func(_ context.Context, i int) (int, error) {
		if i == 0 {
			<-gate // done after some of the others
		} else if i == 7 {
			close(gate)
		}
		return i * i, nil
	}, func(i, square int) error {
		if square != i*i {
			t.Errorf("%d came as the result of %d", square, i)
		}
		got = append(got, i)
		return nil
	})
	if err != nil || len(got) != 50 || !slices.IsSorted(got) {
		t.Errorf("%v: %v", err, got)
	}
	bad := errors.New("bad")
	fail := func(at int) func(context.Context, int) (int, error) {
		return func(_ context.Context, i int) (int, error) {
			if i == at {
				return 0, bad
			}
			return i, nil
		}
	}
	if err := All(t.Context(), 50, 4, fail(20), func(int, int) error { return nil }); !errors.Is(err, bad) {
		t.Errorf("the error of a run: %v", err)
	}
	if err := All(t.Context(), 50, 4, fail(-1), func(int, int) error { return bad }); !errors.Is(err, bad) {
		t.Errorf("the error of who takes the results: %v", err)
	}
}
