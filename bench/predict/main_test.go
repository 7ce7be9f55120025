//go:build linux

package main

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

func TestMain(m *testing.M) {
	prove.Children()
	os.Exit(m.Run())
}

// What must hold however slow the machine is: each point is there, with the slices of both sides, and all of it can be shown.
func TestPointsOnce(t *testing.T) {
	labtest.Require(t)
	r := prove.NewRun("predict", 1)
	s := settings{sessions: 20, slo: 200 * us, window: 60 * ms, warmup: 5 * ms, calibrate: 50 * ms}
	points := slices.DeleteFunc(s.plan(), func(p point) bool { return !p.Spike && p.Load != boundLoad })
	e, err := measure(context.Background(), r, s, points)
	if err != nil {
		t.Fatal(err)
	}
	if in := e.inputs[0]; in.CapacityPerS <= 0 || in.UndisturbedPerS < in.CapacityPerS {
		t.Errorf("%+v", in)
	}
	if len(points) != 2*len(schemes) {
		t.Fatalf("%d points", len(points))
	}
	for i, c := range e.rounds[0] {
		if c.point != e.points[i] || c.CapacityPerS <= 0 || c.UndisturbedPerS <= 0 {
			t.Errorf("%s: %+v", c.describe(), c)
		}
		if n := 3; c.Spike && (len(c.Real.Slices) != n || len(c.Predicted.Slices) != n || len(c.WithAway.Slices) != n) {
			t.Errorf("%s: slices %v and %v", c.describe(), c.Real.Slices, c.Predicted.Slices)
		}
	}
	if err := e.show(r); err != nil && !errors.Is(err, errBusy) {
		t.Fatal(err)
	}
}

// TestDoubt: a pass on a machine where others have the CPU would be none, and neither would one where ours serves nobody.
func TestDoubt(t *testing.T) {
	s := settings{slo: 200 * us, window: 60 * ms}
	for _, x := range []struct {
		name       string
		taken      float64
		real       float64
		busy, good bool
	}{
		{"as predicted", 0.01, 90_000, false, true},
		{"nearly", 0.01, 82_000, false, true},
		{"not", 0.01, 80_000, false, false},
		{"nobody served, as predicted", 0.01, 0, false, false},
		{"busy", 0.5, 90_000, true, true},
	} {
		e := &experiment{settings: s, points: s.plan(), inputs: []inputs{{ServerAway: away{Share: x.taken}}}}
		round := make([]comparison, len(e.points))
		for i, p := range e.points {
			predicted := figures{GoodputPerS: 90_000}
			if x.real == 0 {
				predicted.GoodputPerS = 0
			}
			round[i] = comparison{point: p, CapacityPerS: 100_000, Real: figures{GoodputPerS: x.real}, Predicted: predicted}
		}
		e.rounds = [][]comparison{round}
		r := prove.NewRun("predict", 1)
		if err := e.show(r); errors.Is(err, errBusy) != x.busy || !x.busy && err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if good := len(r.Missed()) == 0; good != x.good {
			t.Errorf("%s: missed %q", x.name, r.Missed())
		}
	}
}

func TestPlan(t *testing.T) {
	s := settings{exponential: true}
	seen := make(map[point]bool)
	for _, p := range s.plan() {
		if seen[p] || p.Service.Mean != prove.Work.Mean {
			t.Errorf("%s: twice, or of other work", p.describe())
		}
		seen[p] = true
	}
	if want := 2 * (len(loads) + 1) * len(schemes); len(seen) != want {
		t.Errorf("%d points, want %d", len(seen), want)
	}
}

// TestScenario is the machine that the simulator is told of, by hand: 80,000/s with 10 us of work are 2.5 us besides.
func TestScenario(t *testing.T) {
	s := settings{sessions: 1000, slo: 200 * us, window: 600 * ms, warmup: 200 * ms}
	in := inputs{RoundTrip: 9 * us, Stalls: away{Share: 0.01, PerS: 50, Mean: 200 * us}}
	c := comparison{
		point:        point{Scheme: sw.SchemeStillwater, Service: prove.Work, Load: spike[0], Spike: true},
		CapacityPerS: 80_000, UndisturbedPerS: 100_000, ServerAway: away{Share: 0.05, PerS: 50, Mean: ms},
	}
	x := s.scenario(in, &c, 7)
	if err := x.Validate(); err != nil {
		t.Fatal(err)
	}
	costs := x.Server.Costs
	for name, pair := range map[string][2]time.Duration{
		"receive": {time.Duration(costs.Receive), 1250}, "send": {time.Duration(costs.Send), 1250}, "reject": {time.Duration(costs.Reject), 625},
		"credit": {time.Duration(costs.Credit), 625}, "round trip": {time.Duration(x.Network.RTT), 6500}, "SLO": {time.Duration(x.SLO), 200 * us},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	if got := x.Capacity(); math.Abs(got-c.CapacityPerS) > 1 {
		t.Errorf("capacity %v, want %v", got, c.CapacityPerS)
	}
	if x.Server.CPUs != 1 || x.Server.Poller || x.Hosts != 1 || x.Clients != s.sessions || x.Seed != 7 || x.Server.Wait != nil {
		t.Errorf("%+v", x)
	}
	if d := x.Demand; len(d) != 3 || d[0].PerS != 32_000 || math.Abs(d[1].PerS-112_000) > 1 || d[2].PerS != 32_000 || time.Duration(d[1].At) != 200*ms {
		t.Errorf("demand %+v", d)
	}

	x = s.withAway(in, &c, 7)
	if err := x.Validate(); err != nil {
		t.Fatal(err)
	}
	// 100 times a second, 6 % of the time in all, while 0.4 times 80,000 are served.
	if w := x.Server.Wait; w == nil || !w.Lock || time.Duration(w.For) != 600*us || w.Share != 100.0/32_000 {
		t.Errorf("away: %+v", w)
	}
	if x.Server.Costs.Receive != 0 {
		t.Errorf("a request costs %v to receive when it costs nothing undisturbed", x.Server.Costs.Receive)
	}
	if x.Network.RTT != 9000 {
		t.Errorf("round trip %v", x.Network.RTT)
	}
	in.RoundTrip = 0
	if x := s.scenario(in, &c, 7); x.Network.RTT <= 0 {
		t.Error("no round trip would be taken for the usual one")
	}
}

func TestReasons(t *testing.T) {
	quiet := func() comparison {
		f := figures{GoodputPerS: 90_000, LatencyP99: 100_000, PacketsOut: 0.5}
		return comparison{
			point:        point{Scheme: sw.SchemeNone, Service: workload.ServiceTime{Mean: 10 * us}, Load: 1},
			CapacityPerS: 100_000, CapacityAfterPerS: 100_000, Real: f, Predicted: f, WithAway: f,
		}
	}
	for _, x := range []struct {
		name   string
		change func(*comparison)
		want   []reason
	}{
		{"the same", func(*comparison) {}, nil},
		{"nearly the same", func(c *comparison) { c.Real.GoodputPerS *= 0.91; c.ServerAway.Share = 1 }, nil},
		{"both nothing", func(c *comparison) { c.Real.GoodputPerS, c.Predicted.GoodputPerS = 0, 999 }, nil},
		{"goodput", func(c *comparison) { c.Real.GoodputPerS *= 0.89 }, []reason{counted}},
		{"p99", func(c *comparison) { c.Real.LatencyP99 *= 1.11 }, []reason{counted}},
		{"p99, ours", func(c *comparison) { c.Real.LatencyP99 *= 1.11; c.Scheme = sw.SchemeStillwater }, []reason{unknown}},
		{"all", func(c *comparison) {
			c.Real.GoodputPerS, c.Real.PacketsOut, c.Retransmitted, c.CapacityAfterPerS = 0, 0.3, 0.02, 94_000
			c.ServerAway.Share, c.ClientAway.Share, c.Lateness.P99, c.Load = 0.02, 0.02, 20*us, 0.5
		}, []reason{cpuAway, late, drifted, batched, repeated, clientOut}},
	} {
		c := quiet()
		x.change(&c)
		if got := c.reasons(200 * us); !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

func TestUsage(t *testing.T) {
	before := usage{at: clock.Time(ms), cpu: 3 * ms, switches: 5}
	got := usage{at: clock.Time(101 * ms), cpu: 83 * ms, switches: 15}.since(before)
	if want := (away{Share: 0.2, PerS: 100, Mean: 2 * ms}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (usage{at: clock.Time(2 * ms), cpu: 9 * ms, switches: 5}).since(before); got != (away{}) {
		t.Errorf("more than one CPU: %+v", got)
	}
	if n := involuntary("Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t12\n"); n != 12 {
		t.Errorf("%d switches, want 12", n)
	}
	if n := involuntary("Name:\tx\n"); n != 0 {
		t.Errorf("%d switches of none", n)
	}
	mine, err := usageOf(os.Getpid())
	if err != nil || mine.cpu <= 0 {
		t.Errorf("this process: %+v, %v", mine, err)
	}
}

func TestStalls(t *testing.T) {
	var s stalls
	s.see(19*us, 0)        // the kernel's clock
	s.see(100*us, 0)       // the host
	s.see(2*ms, 2*ms-9*us) // another process
	s.see(300*us, 10*us)
	if got, want := s.over(100*ms), (away{Share: 0.004, PerS: 20, Mean: 200 * us}); math.Abs(got.Share-want.Share) > 1e-9 || got.PerS != want.PerS || got.Mean != want.Mean {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (&stalls{}).over(ms); got != (away{}) {
		t.Errorf("nothing is %+v", got)
	}
	if _, err := hostStalls(ms); err != nil {
		t.Error(err)
	}
}
