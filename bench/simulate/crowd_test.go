package simulate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// Clients that wake up together, or make several calls each, ask for no more than the demand says; their calls meet each other.
func TestTogether(t *testing.T) {
	alone, crowd := small("none", 0.3), small("none", 0.3)
	crowd.Together, crowd.Burst = 10, 5
	a, c := run(t, alone), run(t, crowd)
	if math.Abs(c.OfferedPerS/a.OfferedPerS-1) > 0.2 {
		t.Errorf("offered %.0f/s together, %.0f/s one by one", c.OfferedPerS, a.OfferedPerS)
	}
	if c.LatencyP50 < 1.5*a.LatencyP50 {
		t.Errorf("p50 %v together, %v one by one", c.LatencyP50, a.LatencyP50)
	}
}

// Every client greets once, and those that are idle do nothing else.
func TestGreet(t *testing.T) {
	s := small("stillwater", 0)
	s.Demand, s.Measure = []Step{{}}, Duration(time.Millisecond)
	s.Greet, s.Idle = Duration(10*time.Millisecond), 300
	if r := run(t, s); r.Calls != 400 || r.OfferedPerS != 0 || r.Pending != 0 {
		t.Errorf("%d calls, %v/s afterwards, %d pending", r.Calls, r.OfferedPerS, r.Pending)
	}
	s.Greet = 0
	if r := run(t, s); r.Calls != 300 {
		t.Errorf("%d calls of 300 idle clients in the warm-up", r.Calls)
	}
}

// Those who dial do so at the same instant; who is refused calls again until it is answered.
func TestDial(t *testing.T) {
	s := small("stillwater", 0)
	s.Demand, s.Measure, s.Budget = []Step{{}}, Duration(50*time.Millisecond), -1
	s.Dial = 2000
	once := run(t, s)
	s.Again = true
	again := run(t, s)
	if once.Calls != 2000 || once.Outcomes["rejected"] == 0 || once.Outcomes["ok"]+once.Outcomes["rejected"] != 2000 {
		t.Errorf("once: %d calls, %v", once.Calls, once.Outcomes)
	}
	if again.Outcomes["ok"] != 2000 || again.Calls <= 2000 || again.LastAnswer <= once.LastAnswer {
		t.Errorf("again: %d calls, %v, the last answer after %v", again.Calls, again.Outcomes, time.Duration(again.LastAnswer))
	}
}

func TestMix(t *testing.T) {
	m := mix{
		{Share: 3, Service: workload.ServiceTime{Mean: 10 * time.Microsecond}},
		{Share: 1, Service: workload.ServiceTime{Mean: 50 * time.Microsecond}, Method: 2},
	}
	if near := m.nearest(); near.Mean != 20*time.Microsecond || near.Shape != workload.Bimodal || m.methods() != 3 {
		t.Errorf("%v, %d methods", near, m.methods())
	}
	rng, long := rand.New(rand.NewPCG(1, 1)), 0
	for range 10_000 {
		method, d := m.draw(rng)
		if (method == 2) != (d == 50*time.Microsecond) || method != 2 && d != 10*time.Microsecond {
			t.Fatalf("method %d takes %v", method, d)
		}
		if method == 2 {
			long++
		}
	}
	if long < 2300 || long > 2700 {
		t.Errorf("%d of 10000 are long, want about 2500", long)
	}
	s := small("stillwater", 0.3)
	s.Mix = m
	if r := run(t, s); r.Scenario.Service.Mean != 20*time.Microsecond || r.LatencyP99 < 60_000 || r.LatencyP50 > 40_000 {
		t.Errorf("service %v, p50 %v, p99 %v", r.Scenario.Service, r.LatencyP50, r.LatencyP99)
	}
}

// A disk keeps no CPU busy: who looks at these does not see that the server is full.
func TestSignals(t *testing.T) {
	s := small("stillwater", 1)
	s.Clients = 1000
	s.Service.Mean = 2 * time.Microsecond
	s.Server.Wait, s.Server.InService = &Wait{For: Duration(40 * time.Microsecond), Share: 1, Depth: 4}, 12
	s.SLO, s.Measure = Duration(600*time.Microsecond), Duration(100*time.Millisecond)
	s.Demand = []Step{{PerS: 1.5 * s.Capacity()}}
	age := run(t, s)
	s.Server.Signal = SignalLoad
	load := run(t, s)
	if age.PoolCuts == 0 || load.PoolCuts > 0 || age.BusyRatio > 0.1 {
		t.Errorf("cuts by age %d, by load %d; CPUs busy %v", age.PoolCuts, load.PoolCuts, age.BusyRatio)
	}
	// The door still sees the queue, and keeps the goodput; but the credits were given out for what it refuses.
	if age.DropRatio > 0.01 || load.DropRatio < 0.1 || age.GoodputPerS < load.GoodputPerS {
		t.Errorf("refused by age %v, by load %v; goodput by age %.0f, by load %.0f", age.DropRatio, load.DropRatio, age.GoodputPerS, load.GoodputPerS)
	}
	// It sees a CPU that is full.
	s.Server.Wait, s.Service.Mean = nil, 20*time.Microsecond
	s.Demand = []Step{{PerS: 2 * s.Capacity()}}
	if full := run(t, s); full.PoolCuts == 0 {
		t.Error("full CPUs cut no pool")
	}
	s.Server.Signal = SignalLength
	if full := run(t, s); full.PoolCuts == 0 {
		t.Error("a full queue cuts no pool")
	}
}

// What a run takes is counted: nobody waits for a credit, and no pool is cut, in a server that has nothing to do.
func TestEffort(t *testing.T) {
	calm, full := run(t, small("stillwater", 0.1)), run(t, small("stillwater", 2))
	paper := run(t, small("breakwater-paper", 2)) // whose clients ask, and are told
	if calm.PoolCuts > 0 || calm.CreditCost > 0 || math.Abs(calm.PacketsPerRequest-2) > 0.1 || math.Abs(calm.BusyRatio-0.085) > 0.01 {
		t.Errorf("calm: %d of %d updates cut the pool, credits cost %v, %v packets a request, busy %v",
			calm.PoolCuts, calm.PoolUpdates, calm.CreditCost, calm.PacketsPerRequest, calm.BusyRatio)
	}
	if full.PoolCuts == 0 || full.PoolCuts > full.PoolUpdates || paper.CreditCost <= 0 || paper.Unasked > 0 || full.Unasked == 0 || full.WakeP99 == 0 || full.Woken == 0 || full.EventsPerRequest < 2 {
		t.Errorf("full: %d of %d updates cut the pool, credits cost the paper's law %v, %d and %d went without, %d calls waited, p99 %v, %v events a request",
			full.PoolCuts, full.PoolUpdates, paper.CreditCost, full.Unasked, paper.Unasked, full.Woken, full.WakeP99, full.EventsPerRequest)
	}
}

// With a drain every call has its outcome.
func TestDrain(t *testing.T) {
	s := small("stillwater", 2)
	s.Budget = -1
	if r := run(t, s); r.Pending == 0 {
		t.Error("nobody waits at the end of an overload without deadlines")
	}
	s.Drain = Duration(5 * time.Second)
	if r := run(t, s); r.Pending != 0 {
		t.Errorf("%d calls have no outcome", r.Pending)
	}
}

func TestBadCrowds(t *testing.T) {
	for text, want := range map[string]string{
		`"idle":-1`:                                   "crowd",
		`"dial":10000000`:                             "from 0 to",
		`"mix":[{"share":0}]`:                         "shares above 0",
		`"mix":[{"share":1,"method":5000}]`:           "methods from 0",
		`"mix":[{"share":1}],"samples":["1us"]`:       "no samples",
		`"drain":"-1s"`:                               "cannot be negative",
		`"server":{"signal":"temperature"}`:           "signal",
		`"server":{"signal":"load"},"scheme":"codel"`: "not for codel",
	} {
		_, err := Read(strings.NewReader(`{"measure":"1s","demand":[{"per_s":1}],` + text + `}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
