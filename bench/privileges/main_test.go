//go:build linux

package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bench/prove"
)

func TestMain(m *testing.M) {
	prove.Children()
	os.Exit(m.Run())
}

// Both must serve: each has been asked and has answered. How fast is for the command to say.
func TestBothEcho(t *testing.T) {
	labtest.Require(t)
	r := prove.NewRun("privileges", 1)
	e, err := measure(context.Background(), r, settings{window: 20 * time.Millisecond, warmup: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for v, at := range e.perS {
		for i, perS := range at {
			if len(perS) != 1 {
				t.Errorf("%s at %d outstanding: %v", names[v], outstanding[i], perS)
			}
		}
	}
	if err := e.show(r); err != nil {
		t.Fatal(err)
	}
}

func TestMoreRightsAreNoticed(t *testing.T) {
	var lines []string
	for name, value := range wanted {
		lines = append(lines, name+":\t"+value)
	}
	status := strings.Join(lines, "\n") + "\n"
	if err := checkStatus(status); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		strings.Replace(status, "CapEff:\t0000000000002000", "CapEff:\t0000000000003000", 1), // CAP_NET_ADMIN as well
		strings.Replace(status, "CapPrm", "CapBnd", 1),
		"",
	} {
		if checkStatus(bad) == nil {
			t.Errorf("%q is taken for nobody's", bad)
		}
	}
	if err := checkRights(1); err == nil {
		t.Error("process 1 is taken for nobody's")
	}
}
