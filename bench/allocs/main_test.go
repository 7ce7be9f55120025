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

// The counting must count calls. How many objects they cost is for the command to say: the race detector allocates, too.
func TestCountsCalls(t *testing.T) {
	labtest.Require(t)
	for _, udp := range []bool{false, true} {
		r := prove.NewRun("allocs", 1)
		rounds, err := measure(context.Background(), r, settings{calls: 100, udp: udp, settle: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if len(rounds) != 1 || rounds[0].Calls < 100 {
			t.Errorf("udp %v: %+v", udp, rounds)
		}
		if err := show(r, rounds); err != nil {
			t.Fatal(err)
		}
	}
}
