package experiments

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// e16 is what signals see.
func e16() *Experiment {
	return &Experiment{
		ID: "E16", Title: "what signals see",
		About: "Our law at 1.5x, told one of three things: the age of the oldest that waits; how busy the CPUs are (80 % is the target); or how much waits, each worth 10us of a worker.\n" +
			"The disk is 4 deep and takes 40us, after 2us of a CPU, and 12 requests may be in service; the mixes are of 1us and 100us. 1,000 clients, SLO 600us.\n" +
			"Last a lock that one call in ten of 10us holds for 50us, so that it is full at 200k/s; who waits for it does so in his handler, where no signal sees him, and with all that come in\n" +
			"service is late. Ours finds by itself how many are too many, and does not with fixed workers. Beside it there Protego, whose subject such locks are. Once more with 8 in service at the most;\n" +
			"once with the disk, with all let in; and with a gate in front of the lock, which refuses who would be too late, so that the other nine in ten need not wait for the lock's: for Protego it is\n" +
			"the other half. The CPUs are then enough for 4.25 times what the lock can do if nobody is refused.",
		Figures: []string{figGoodput, figShare, figP50, figP99, figSLO, figDrops, figUnsent, figBusy},
		Jobs:    e16Jobs, Judge: e16Judge,
	}
}

// machines are what the server is bound by.
func machines() []machine {
	short, long := service(workload.Constant, time.Microsecond), service(workload.Constant, 100*time.Microsecond)
	mix := func(share float64) []simulate.Part {
		return []simulate.Part{{Share: 1 - share, Service: short}, {Share: share, Service: long, Method: 1}}
	}
	return []machine{
		{"a disk", simulate.Scenario{
			Service: service(workload.Exponential, 2*time.Microsecond),
			Server:  simulate.Server{InService: 12, Wait: &simulate.Wait{For: simulate.Duration(40 * time.Microsecond), Share: 1, Depth: 4}},
		}},
		{"1 % take 100us", simulate.Scenario{Mix: mix(0.01)}},
		{"50 % take 100us", simulate.Scenario{Mix: mix(0.5)}},
	}
}

type machine struct {
	name     string
	scenario simulate.Scenario
}

// waiting is a server whose handlers wait, with so many of them at the most; 0 = as many as come. It has the time that ours needs to see that.
func waiting(computes time.Duration, wait simulate.Wait, inService int) simulate.Scenario {
	return simulate.Scenario{
		SLO: simulate.Duration(600 * time.Microsecond), Service: service(workload.Exponential, computes), Warmup: simulate.Duration(400 * time.Millisecond),
		Server: simulate.Server{InService: inService, Wait: &wait},
	}
}

// unseen are servers that wait in their handlers. Eight at once wait for the lock for 400us at most, which leaves time of the SLO.
func unseen() []unseenAt {
	lock := simulate.Wait{For: simulate.Duration(50 * time.Microsecond), Share: 0.1, Lock: true}
	disk := simulate.Wait{For: simulate.Duration(40 * time.Microsecond), Share: 1, Depth: 4}
	gated := lock
	gated.Gate = true
	all := []string{baseline.Stillwater, fixedWorkers, baseline.Protego, baseline.None}
	controlled := []string{baseline.Stillwater, baseline.Protego} // the gate by itself is control enough for none to stand at 1.5x
	return []unseenAt{
		{machine{"a lock", waiting(10*time.Microsecond, lock, 0)}, 1.5, all, 0.95},
		{machine{"a lock, 8 at once", waiting(10*time.Microsecond, lock, 8)}, 1.5, all, 0.95},
		{machine{"a disk, all let in", waiting(2*time.Microsecond, disk, 0)}, 1.5, all, 0.95},
		{machine{"a lock with a gate", waiting(10*time.Microsecond, gated, 0)}, 1.5, controlled, 1.4},
		{machine{"the same at 4x", waiting(10*time.Microsecond, gated, 0)}, 4, controlled, 3.4},
	}
}

type unseenAt struct {
	machine
	load float64 // of what the lock or the disk can do
	arms []string
	min  float64 // goodput with ours, of that
}

var told = []struct{ name, signal string }{{"age", simulate.SignalAge}, {"CPU load", simulate.SignalLoad}, {"length", simulate.SignalLength}}

const (
	toldMin     = 0.9  // of the capacity, with the right signal
	misledMax   = 0.85 // with a wrong one, somewhere;
	misledDrops = 0.1  // or so much of what was sent is refused: credits were given out for it
	blindMax    = 0.92 // where all are let in: the tenth that needs the lock is late

	fixedWorkers = "fixed workers" // ours without the bound that it finds by itself
)

func e16Jobs(size Size) (all []job) {
	for i, m := range machines() {
		for _, w := range told {
			s := m.scenario
			s.SLO, s.Server.Signal, s.Server.FixedWorkers = simulate.Duration(600*time.Microsecond), w.signal, true
			all = append(all, job{At: m.name, X: float64(i), Arm: w.name, Seeds: min(size.Seeds, 3), Play: playing(atLoad(size, s, 1.5))})
		}
		s := m.scenario
		s.SLO, s.Scheme = simulate.Duration(600*time.Microsecond), baseline.None
		all = append(all, job{At: m.name, X: float64(i), Arm: baseline.None, Seeds: 1, Play: playing(atLoad(size, s, 1.5))})
	}
	return append(all, unseenJobs(size)...)
}

func unseenJobs(size Size) (all []job) {
	for i, m := range unseen() {
		for _, arm := range m.arms {
			s := m.scenario
			if s.Scheme = arm; arm == fixedWorkers {
				s.Scheme, s.Server.FixedWorkers = baseline.Stillwater, true
			}
			all = append(all, job{At: m.name, X: float64(len(machines()) + i), Arm: arm, Seeds: min(size.Seeds, 3), Play: playing(atLoad(size, s, m.load))})
		}
	}
	return all
}

func e16Judge(t *Table) []Check {
	checks := []Check{
		bound("told the age: goodput of the capacity", t.Of("age"), figShare, toldMin, true),
		bound("told the age: p99 within the SLO,", t.Of("age"), figTail, 1, false),
	}
	for _, w := range told[1:] {
		worst := slices.MinFunc(t.Of(w.name), func(a, b *Row) int { return cmp.Compare(a.Mean(figShare), b.Mean(figShare)) })
		refuses := slices.MaxFunc(t.Of(w.name), func(a, b *Row) int { return cmp.Compare(a.Mean(figDrops), b.Mean(figDrops)) })
		checks = append(checks, Check{
			Met: worst.Mean(figShare) <= misledMax || refuses.Mean(figDrops) >= misledDrops,
			Text: fmt.Sprintf("told the %s it is misled: goodput down to %s of the capacity where the server is bound by: %s; refused up to %s, by: %s", w.name,
				kindOf(figShare).Text(worst.Mean(figShare)), worst.At, kindOf(figDrops).Text(refuses.Mean(figDrops)), refuses.At),
		})
	}
	for i, m := range unseen() {
		ours, protego := t.Of(baseline.Stillwater)[i], t.Of(baseline.Protego)[i]
		checks = append(checks, bound("ours at "+m.name+": goodput of the capacity", []*Row{ours}, figShare, m.min, true), Check{
			Met: ours.Mean(figShare) >= protego.Mean(figShare),
			Text: fmt.Sprintf("at %s ours is not below Protego: %s and %s of the capacity", m.name,
				kindOf(figShare).Text(ours.Mean(figShare)), kindOf(figShare).Text(protego.Mean(figShare))),
		})
	}
	blind := t.Of(fixedWorkers)
	checks = append(checks, bound("with fixed workers it sees neither lock nor disk: of the capacity", []*Row{blind[0], blind[2]}, figShare, blindMax, false))
	return append(checks, collapse(t.Of(baseline.None), figShare, collapsedMax))
}
