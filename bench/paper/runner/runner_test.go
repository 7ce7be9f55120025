package runner

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/paper"
	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
)

const us = simulate.Duration(time.Microsecond)

// point is a short run.
func point(scheme paper.Scheme) paper.Point {
	return paper.Point{
		Figure: "F3", Scheme: scheme, Clients: 1000, Load: []paper.Step{{At: 0, DemandPerS: 1.6e6}}, Workers: 10,
		Service: workload.ServiceTime{Shape: workload.Exponential, Mean: 10 * time.Microsecond}, SLO: 200 * time.Microsecond,
		RTT: 10 * time.Microsecond, Warmup: 5 * time.Millisecond, Measured: 10 * time.Millisecond, Window: 5 * time.Millisecond,
	}
}

// Every point that is planned is a scenario that can be played.
func TestScenarioOfEveryPoint(t *testing.T) {
	for _, size := range []paper.Size{paper.Full(), paper.Small()} {
		plan, err := paper.NewPlan(nil, nil, size)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plan.Points {
			s := Scenario(p, 1)
			if err := s.Validate(); err != nil {
				t.Errorf("%s: %v", p.Name(), err)
			}
			text, err := s.Text()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := simulate.Read(bytes.NewReader(text)); err != nil || again.Law != s.Law || again.Server.Pause != s.Server.Pause {
				t.Errorf("%s: read back as %+v, %v", p.Name(), again, err)
			}
		}
	}
}

func TestScenario(t *testing.T) {
	p := point(paper.BreakwaterArtifact)
	p.Tuning.Breakwater = paper.BreakwaterTuning{Alpha: 0.1, Beta: 0.2, TargetDelay: 30 * time.Microsecond, DropThreshold: 40 * time.Microsecond}
	p.Tuning.DAGOR = paper.DAGORTuning{Threshold: time.Microsecond, Alpha: 0.3, Beta: 0.4}
	p.Tuning.SEDA = paper.SEDATuning{Target: 2 * time.Microsecond, AdjI: 5, AdjD: 6}
	want := simulate.Law{
		Alpha: 0.1, Beta: 0.2, Target: 30 * us, DropThreshold: 40 * us,
		DAGOR: simulate.DAGOR{Threshold: us, Alpha: 0.3, Beta: 0.4}, SEDA: simulate.SEDA{Target: 2 * us, AdjI: 5, AdjD: 6},
	}
	for _, parts := range []struct {
		paper.Parts
		noCredits, noSpeculation, noAQM bool
	}{
		{Parts: paper.Parts{}}, // of a scheme without such parts
		{Parts: paper.Parts{Credits: true, Speculation: true, AQM: true}},
		{Parts: paper.Parts{Credits: true, Speculation: true}, noAQM: true},
		{Parts: paper.Parts{Credits: true, AQM: true}, noSpeculation: true},
		{Parts: paper.Parts{Credits: true}, noSpeculation: true, noAQM: true},
		{Parts: paper.Parts{AQM: true}, noCredits: true},
	} {
		p.Parts = parts.Parts
		want.Quiet = true // the scheme is breakwater-artifact
		want.NoCredits, want.NoSpeculation, want.NoAQM = parts.noCredits, parts.noSpeculation, parts.noAQM
		s := Scenario(p, 9)
		if s.Law != want {
			t.Errorf("%v: %+v, want %+v", p.Parts, s.Law, want)
		}
		if s.Seed != 9 || s.Server.CPUs != 10 || !s.Server.Threads || s.Scheme != "breakwater-artifact" || s.SLO != 200*us || s.Window != 5000*us {
			t.Errorf("%+v", s)
		}
	}
}

// What comes out has every value that the figures read, and is the same again.
func TestRun(t *testing.T) {
	p := point(paper.BreakwaterArtifact)
	r, err := Runner{}.Run(context.Background(), p, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.GoodputPerS < 5e5 || r.ThroughputPerS < r.GoodputPerS || r.CapacityPerS < 8e5 || r.LatencyNsP99 < r.LatencyNsP50 || r.RxPerS < 5e5 ||
		r.TxPerS < 5e5 || len(r.Series) != 2 || r.Series[1].End != p.Measured || r.Series[1].GoodputPerS == 0 {
		t.Errorf("%+v", r)
	}
	again, err := Runner{}.Run(context.Background(), p, 1)
	if err != nil || again.GoodputPerS != r.GoodputPerS || again.LatencyNsP99 != r.LatencyNsP99 || !slices.Equal(again.Series, r.Series) {
		t.Errorf("%+v, then %+v, %v", r, again, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (Runner{}).Run(ctx, p, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
