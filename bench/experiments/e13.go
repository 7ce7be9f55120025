package experiments

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// e13 is about sizes beyond the paper.
func e13() *Experiment {
	return &Experiment{
		ID: "E13", Title: "sizes beyond the paper",
		About: "Exponential 10us at 2x. Every client has called once before. Sparse: each call is of another client; dense: whoever wakes up makes 10 calls; together: 50 clients wake up at\n" +
			"the same instant. At last 10 busy clients at 1.5x among 10,000 that hold what they were given when they registered. Packets, explicit credit messages and events of the simulation, timers included, are of both ends, for each request that arrived.",
		Figures: []string{figGoodput, figShare, figP99, figDrops, figPackets, figCredits, figEvents, figHost, figHeap},
		Charts: []chart{
			{Figure: figShare, Title: "Goodput at 2x", Named: true},
			{Figure: figEvents, Title: "Events a request", Named: true},
		},
		Jobs: e13Jobs, Judge: e13Judge,
	}
}

// crowds are the kinds of demand.
var crowds = []struct {
	name  string
	crowd simulate.Crowd
}{
	{"sparse", simulate.Crowd{}},
	{"dense", simulate.Crowd{Burst: 10}},
	{"together", simulate.Crowd{Together: 50}},
}

const (
	crowdCalls  = 3           // times the size's calls at each point: wake-ups of many are few
	greetLoad   = 0.5         // of the capacity, in calls that register
	busyAmong   = "busy ones" // 10 of them,
	busyIdle    = 10_000      // among so many
	busySeeds   = 5
	manyMin     = 0.95
	busyMin     = 0.98
	flatMax     = 1.1 // most of all sizes over the least
	heapMax     = 4 << 30
	hostMax     = 1.3 // CPU time of a call with 10,000 clients, and
	hostMaxMost = 2.0 // with 1,000,000: cache misses
	manyMost    = 1_000_000
)

func e13Jobs(size Size) (all []job) {
	sizes := []int{100, 1000, 10_000}
	if size.Full {
		sizes = append(sizes, 100_000, manyMost)
	}
	for _, c := range crowds {
		for _, clients := range sizes {
			schemes := []string{baseline.Stillwater, baseline.None}
			if clients > 10_000 {
				schemes = schemes[:1]
			}
			for _, scheme := range schemes {
				s := simulate.Scenario{Scheme: scheme, Clients: clients, Crowd: c.crowd, Service: service(workload.Exponential, 10*time.Microsecond)}
				s.Greet = simulate.Duration(float64(clients) / (greetLoad * s.Capacity()) * float64(time.Second))
				// Until as many calls were made as there are clients, those spend the credits that they were given when they registered, and nobody was overloaded.
				s.Warmup = simulate.Duration(max(30*time.Millisecond, time.Duration(float64(clients)/(2*s.Capacity())*float64(time.Second))))
				j := job{Panel: c.name, At: fmt.Sprintf("%d clients", clients), X: float64(clients), Clients: clients, Arm: scheme}
				s = atLoad(Size{Calls: crowdCalls * size.Calls}, s, 2)
				j.Play = playing(s)
				j.Seeds = 1
				if size.Full && scheme == baseline.Stillwater {
					j.Alone, j.Play = true, e13Measured(s)
				}
				all = append(all, j)
			}
		}
	}
	for _, scheme := range rivals {
		s := simulate.Scenario{Scheme: scheme, Clients: 10, Crowd: simulate.Crowd{Idle: busyIdle}, Service: service(workload.Exponential, 10*time.Microsecond)}
		s.Warmup = simulate.Duration(100 * time.Millisecond)
		all = append(all, job{Panel: busyAmong, At: "10 among 10000", Arm: scheme, Seeds: min(size.Seeds, busySeeds), Play: playing(atLoad(size, s, 1.5))})
	}
	return all
}

// e13Measured also measures the machine that runs it, which no table of a test can hold.
func e13Measured(s simulate.Scenario) func(context.Context, uint64) (Sample, error) {
	return func(ctx context.Context, seed uint64) (Sample, error) {
		var memory runtime.MemStats
		debug.FreeOSMemory()
		var began time.Duration
		var failed error
		s.Begun = func() { began, failed = cpuTime() } // what it costs to make the clients is no cost of a call
		sample, err := playing(s)(ctx, seed)
		if err = cmp.Or(err, failed); err != nil {
			return sample, err
		}
		ended, err := cpuTime()
		if err != nil {
			return Sample{}, err
		}
		runtime.ReadMemStats(&memory) // before anything of the run is freed: what it has taken from the system
		sample.Figures[figHeap] = float64(memory.HeapSys-memory.HeapReleased) / float64(s.Clients)
		sample.Figures[figHost] = float64(ended-began) / (sample.Figures[figOffered] * time.Duration(s.Measure).Seconds())
		return sample, nil
	}
}

// cpuTime is what this process has had, on all CPUs.
func cpuTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("reading the CPU time of this process: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

func e13Judge(t *Table) []Check {
	at2x := func(scheme string) []*Row {
		return only(t.Of(scheme), func(r *Row) bool { return r.Panel != busyAmong })
	}
	checks := []Check{bound("ours at 2x: goodput of the capacity", at2x(baseline.Stillwater), figShare, manyMin, true)}
	for _, c := range crowds {
		rows := only(t.Of(baseline.Stillwater), func(r *Row) bool { return r.Panel == c.name })
		for _, figure := range []string{figPackets, figEvents} {
			checks = append(checks, flat(c.name, rows, figure))
		}
	}
	checks = append(checks, bound("ours: 10 busy clients among 10,000 idle ones, of the capacity",
		only(t.Of(baseline.Stillwater), func(r *Row) bool { return r.Panel == busyAmong }), figShare, busyMin, true))
	if most := t.Row(fmt.Sprintf("sparse, %d clients", manyMost), baseline.Stillwater); most != nil {
		heap := most.Mean(figHeap) * manyMost
		checks = append(checks, Check{Met: heap <= heapMax, Text: fmt.Sprintf("1,000,000 clients in at most 4 GiB: %.2f GiB of heap at the end of the run", heap/(1<<30))})
		first := t.Row("sparse, 100 clients", baseline.Stillwater).Mean(figHost)
		for _, c := range []struct {
			clients int
			times   float64
		}{{10_000, hostMax}, {manyMost, hostMaxMost}} {
			times := t.Row(fmt.Sprintf("sparse, %d clients", c.clients), baseline.Stillwater).Mean(figHost) / first
			checks = append(checks, Check{Met: times <= c.times, Text: fmt.Sprintf("ours, sparse: a call costs the simulating CPU with %d clients at most %.1f times of what it does with 100: %.2f", c.clients, c.times, times)})
		}
	}
	return append(checks, collapse(at2x(baseline.None), figShare, collapsedMax))
}

// flat checks that a figure does not grow with the number of clients.
func flat(name string, rows []*Row, figure string) Check {
	k := kindOf(figure)
	first, most := math.NaN(), (*Row)(nil)
	for _, r := range rows {
		if most == nil {
			first, most = r.Mean(figure), r
		}
		if r.Mean(figure) > most.Mean(figure) {
			most = r
		}
	}
	times := most.Mean(figure) / first
	return Check{Met: times <= flatMax, Text: fmt.Sprintf("ours, %s: %s a request do not grow by more than %.0f %% with the number of clients: %.3f with %s, %.3f with %s",
		name, k.Title, 100*(flatMax-1), first, rows[0].At, most.Mean(figure), most.At)}
}
