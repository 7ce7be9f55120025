//go:build linux

package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bench/prove"
)

func TestMain(m *testing.M) {
	children()
	os.Exit(m.Run())
}

// Every arm must give every figure. How fast is for the command to say.
func TestEveryArmIsMeasured(t *testing.T) {
	labtest.Require(t)
	r := prove.NewRun("rings", 1)
	e, err := measure(context.Background(), r, settings{span: span{Warmup: time.Millisecond, Window: 5 * time.Millisecond}, Look: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	for arm, at := range e.got {
		for i, figures := range at {
			if len(figures) != 1 || figures[0] <= 0 {
				t.Errorf("%s, %s: %v", arms[arm], measures[i].name, figures)
			}
		}
	}
	if err := e.show(r); err != nil {
		t.Fatal(err)
	}
}

func TestGainIsOfTheSameRound(t *testing.T) {
	e := &experiment{}
	e.got[0][sendOne], e.got[1][sendOne] = []float64{20, 300, 40}, []float64{10, 100, 10}
	e.got[0][echoSpinP50], e.got[1][echoSpinP50] = []float64{10, 100, 10}, []float64{20, 300, 40}
	for _, at := range []int{sendOne, echoSpinP50} {
		if got := e.gain(1, at); got.Median != 3 || got.Min != 2 || got.Max != 4 {
			t.Errorf("%s: %+v", measures[at].name, got)
		}
	}
}

// A figure that is worse in one round of two is within the spread; in both, it is not.
func TestBounds(t *testing.T) {
	e := &experiment{}
	for arm := range arms {
		for at := range measures {
			e.got[arm][at] = []float64{100, 100}
		}
	}
	e.got[0][sendOne] = []float64{90, 101}
	e.got[0][receiveSpin] = []float64{90, 99}
	e.got[0][sendBurst] = []float64{114, 114}
	r := prove.NewRun("rings", 2)
	if err := e.show(r); err != nil {
		t.Fatal(err)
	}
	if missed := r.Missed(); len(missed) != 3 { // received, of both, and the bursts
		t.Errorf("missed: %q", missed)
	}
}
