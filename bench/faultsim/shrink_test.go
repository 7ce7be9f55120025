package faultsim

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// injected is a defect for the shrinker to find: calls that lose their server are violations.
func injected(o *sim.Observation) error {
	if o.Call.Outcome == dispatcher.OutcomePeerLost {
		return errors.New("injected")
	}
	return nil
}

func playInjected(ctx context.Context, p Plan) (*Result, error) { return playJudged(ctx, p, injected) }

// failing finds a long plan that shows the injected defect.
func failing(t *testing.T) Plan {
	t.Helper()
	for seed := uint64(1); ; seed++ {
		plan := Draw(seed)
		r, err := playInjected(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		if r.Signature() == "injected" && len(plan.Faults) > 5 && len(plan.Calls) > 50 && plan.Sessions > 10 {
			return plan
		}
	}
}

// A call needs a session, and one fault to lose its server by: what is left is that, and no more.
func TestShrink(t *testing.T) {
	plan := failing(t)
	short, err := shrink(t.Context(), plan, 5000, playInjected)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d faults, %d calls, %d sessions: %+v", len(plan.Faults), len(plan.Calls), plan.Sessions, short)
	if len(short.Faults) > 1 || len(short.Calls) > 2 || len(short.Closes) > 0 || short.Sessions > 2 || short.Hosts > 1 {
		t.Errorf("it is not short: %+v", short)
	}
	r, err := playInjected(t.Context(), short)
	if err != nil || r.Signature() != "injected" {
		t.Errorf("it fails no more, or otherwise: %v, %+v", err, r)
	}
	again, err := shrink(t.Context(), plan, 5000, playInjected)
	if err != nil || !reflect.DeepEqual(short, again) {
		t.Errorf("it shrinks to something else: %v, %+v", err, again)
	}
}

// A shrinker keeps to what it may try, and leaves a plan alone that does not fail.
func TestShrinkHasABound(t *testing.T) {
	plan, runs := failing(t), 0
	count := func(ctx context.Context, p Plan) (*Result, error) { runs++; return playInjected(ctx, p) }
	if _, err := shrink(t.Context(), plan, 7, count); err != nil || runs != 8 {
		t.Errorf("%v after %d runs: one to see it fail, and seven", err, runs)
	}
	if same, err := Shrink(t.Context(), quiet(), 100); err != nil || !reflect.DeepEqual(same, quiet()) {
		t.Errorf("%v, %+v", err, same)
	}
}
