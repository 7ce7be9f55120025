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
	prove.Children()
	os.Exit(m.Run())
}

// Every variant must work at every number outstanding. How fast is for the command to say.
func TestEveryVariantEchoes(t *testing.T) {
	labtest.Require(t)
	r := prove.NewRun("ports", 1)
	e, err := measure(context.Background(), r, settings{window: 20 * time.Millisecond, warmup: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for v, at := range e.got {
		for i, f := range at {
			if len(f.perS) != 1 {
				t.Errorf("%s at %d outstanding: %d figures", variants[v].name, outstanding[i], len(f.perS))
			}
		}
	}
	if err := e.show(r); err != nil {
		t.Fatal(err)
	}
}

func TestRatioIsOfTheSameRound(t *testing.T) {
	e := &experiment{}
	e.got[xdp] = []figures{{perS: []float64{20, 300, 40}}}
	e.got[udp] = []figures{{perS: []float64{10, 100, 10}}}
	if got := e.ratio(xdp, udp, 0); got.Median != 3 || got.Min != 2 || got.Max != 4 {
		t.Errorf("%+v", got)
	}
}
