package faultsim

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// TestSwarm is what the continuous integration runs: new seeds each time.
func TestSwarm(t *testing.T) {
	seeds := 200
	if raceEnabled || testing.Short() {
		seeds = 20
	}
	s := Swarm{First: seedtest.Seed(t), Count: seeds, Parallel: 2}
	played := 0
	s.Each = func(r *Result) bool {
		played++
		for _, v := range r.Violations {
			t.Errorf("seed %d: %s", r.Seed, v)
		}
		if r.Failed() {
			t.Errorf("TEST_SEED=%d; or: stillwater sim faults --seed %d --shrink", r.Seed, r.Seed)
		}
		return true
	}
	if err := s.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if played != seeds {
		t.Errorf("%d seeds were played, of %d", played, seeds)
	}
}

// The same plan takes the same course, and so does its file.
func TestReplay(t *testing.T) {
	seed := seedtest.Seed(t)
	for i := range uint64(5) {
		plan := Draw(seed + i)
		text, err := plan.Text()
		if err != nil {
			t.Fatal(err)
		}
		read, err := Read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(plan, read) {
			t.Errorf("seed %d: its file says something else", plan.Seed)
		}
		one, err := Play(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Play(t.Context(), read)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(one, again) {
			t.Errorf("seed %d: %+v, then %+v", plan.Seed, one, again)
		}
	}
}

// A panic of what is tested is a violation, and does not end the swarm.
func TestPanicIsAViolation(t *testing.T) {
	r, err := playJudged(t.Context(), quiet(), func(*sim.Observation) error { panic("injected") })
	if err != nil || len(r.Violations) != 1 || r.Signature() != "panic: injected" {
		t.Errorf("%v, %+v", err, r)
	}
}

// quiet is a plan with one call and no fault.
func quiet() Plan {
	ten := Duration(10 * time.Microsecond)
	return Plan{
		Scheme: "stillwater", Hosts: 1, Sessions: 1, CPUs: 1, RTT: ten, Service: ten, SLO: 20 * ten, End: 100 * ten,
		Calls: []Call{{At: ten, Service: ten}},
	}
}

// A swarm ends with its context, and when its owner has seen enough.
func TestSwarmEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	played := 0
	endless := Swarm{Count: 1 << 30, Each: func(*Result) bool { played++; cancel(); return true }}
	if err := endless.Run(ctx); !errors.Is(err, context.Canceled) || played != 1 {
		t.Errorf("%v after %d", err, played)
	}
	played = 0
	endless.Each = func(*Result) bool { played++; return played < 3 }
	if err := endless.Run(t.Context()); err != nil || played != 3 {
		t.Errorf("%v after %d", err, played)
	}
}
