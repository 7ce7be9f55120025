package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

const us = time.Microsecond

// slots bounds what one client has outstanding, so that what queues does not stay for longer than the first retransmission takes.
const slots = 32

// uncontrolled is the ledger of a server that admits everything.
func uncontrolled() *credit.Ledger {
	return credit.NewLedger(credit.Config{Slots: slots}, credit.NewNone(slots))
}

type constant time.Duration

func (c constant) Sample(*rand.Rand) time.Duration { return time.Duration(c) }

type exponential time.Duration

func (e exponential) Sample(rng *rand.Rand) time.Duration {
	return time.Duration(rng.ExpFloat64() * float64(e))
}

// bench is a machine, one client host with so many clients, and what came of their calls.
type bench struct {
	w       *World
	m       *Machine
	s       *Source
	calls   int                                    // that were answered
	latency time.Duration                          // the sum of theirs
	stay    time.Duration                          // and of what they were at the server until their handlers had returned
	by      [dispatcher.OutcomeUnavailable + 1]int // calls, by outcome
}

func newBench(t testing.TB, n Network, m MachineConfig, s SourceConfig, clients int) *bench {
	t.Helper()
	b := &bench{w: NewWorld(seedtest.Seed(t), n)}
	if m.Ledger == nil {
		m.Ledger = uncontrolled
	}
	var err error
	if b.m, err = b.w.AddMachine(dispatcher.Config{TrustedNetwork: true, SlotsMax: slots}, m); err != nil {
		t.Fatal(err)
	}
	also := s.Observe
	s.Observe = func(o *Observation) {
		if also != nil {
			also(o)
		}
		b.by[o.Call.Outcome]++
		if o.Call.Outcome == dispatcher.OutcomeOK {
			b.calls++
			b.latency += o.Latency
			b.stay += o.Call.Timing.PacketQueue + o.Call.Timing.RequestQueue + o.Call.Timing.Service
		}
	}
	b.s = b.w.NewSource(b.m, s)
	if err := b.s.AddClients(b.w.AddHost(dispatcher.Config{SlotsMax: slots}), clients); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) rate(t testing.TB, perSecond float64) {
	t.Helper()
	if err := b.s.SetRate(perSecond); err != nil {
		t.Fatal(err)
	}
}

// erlangC is the probability that a call has to wait for one of c servers at this load (Erlang, 1917).
func erlangC(c int, load float64) float64 {
	sum, term := 0.0, 1.0
	for k := range c {
		sum += term
		term *= load / float64(k+1)
	}
	term *= float64(c) / (float64(c) - load)
	return term / (sum + term)
}

// inTheory compares a mean with that of an M/M/c queue, without costs and without a network, over runs of their own seeds. How far it may be off follows
// from how much the runs differ: by six standard errors one test in some 40,000 would fail by chance.
func inTheory(t *testing.T, m MachineConfig, load float64, sum func(*bench) time.Duration) {
	t.Helper()
	if raceEnabled {
		t.Skip("one goroutine and millions of events: run without the race detector, by scripts/test too")
	}
	const service, runs, calls = 10 * us, 16, 25_000
	erlangs := load * float64(m.CPUs) // load is of all CPUs
	want := float64(service) * (1 + erlangC(m.CPUs, erlangs)/(float64(m.CPUs)-erlangs))
	var mean, squares float64
	for i := range runs {
		b := newBench(t, Network{}, m, SourceConfig{Service: exponential(service)}, 50)
		b.rate(t, erlangs/service.Seconds())
		b.w.Run(time.Duration(calls / erlangs * float64(service)))
		got := float64(sum(b)) / float64(b.calls) / want
		step := got - mean // Welford, 1962
		mean += step / float64(i+1)
		squares += step * (got - mean)
		if err := b.w.Audit(); err != nil {
			t.Error(err)
		}
	}
	sixErrors := 6 * math.Sqrt(squares/(runs-1)/runs)
	if off := math.Abs(mean - 1); off > sixErrors+0.005 || sixErrors > 0.12 {
		t.Errorf("%d CPUs at %.0f %%: mean time %.2f us, six standard errors %.2f, theory says %.2f",
			m.CPUs, 100*load, mean*want/1e3, sixErrors*want/1e3, want/1e3)
	}
}

// Where queueing theory knows the answer, the machine must give it.
func TestMachineAgainstQueueingTheory(t *testing.T) {
	for cpus, load := range map[int]float64{1: 0.7, 4: 0.8, 10: 0.8} {
		inTheory(t, MachineConfig{CPUs: cpus}, load, func(b *bench) time.Duration { return b.latency })
	}
	inTheory(t, MachineConfig{CPUs: 1}, 0.3, func(b *bench) time.Duration { return b.latency })
}

// Costs take the CPUs' time: without idle time, what is served is CPUs / (service + receive + send).
func TestCostsTakeCapacity(t *testing.T) {
	costs := Costs{Receive: 800 * time.Nanosecond, Send: 1200 * time.Nanosecond}
	for _, poller := range []bool{false, true} {
		b := newBench(t, Network{OneWay: 5 * us}, MachineConfig{CPUs: 2, Poller: poller, Costs: costs},
			SourceConfig{Service: constant(8 * us)}, 3)
		b.rate(t, 1e6)
		b.w.Run(20 * time.Millisecond)
		before := b.calls
		b.w.Run(120 * time.Millisecond)
		got := float64(b.calls-before) / 0.1
		want := 2 / (10 * us).Seconds()
		if poller { // which pays the costs
			want = 2 / (8 * us).Seconds()
		}
		if math.Abs(got/want-1) > 0.01 {
			t.Errorf("poller %v: %.0f requests/s, want %.0f", poller, got, want)
		}
	}
}

// A device that serves four at a time and takes 40 us has 100,000/s; a lock held for 5 us has 200,000/s. The CPUs are free meanwhile.
func TestHandlersWait(t *testing.T) {
	for name, x := range map[string]struct {
		plan Plan
		want float64
	}{
		"device": {func(_ Work, steps []Step) []Step {
			return append(steps, Step{For: us}, Step{Kind: StepDevice, For: 40 * us}, Step{For: us})
		}, 1e5},
		"lock": {func(_ Work, steps []Step) []Step {
			return append(steps, Step{For: us}, Step{Kind: StepLock}, Step{For: 5 * us}, Step{Kind: StepUnlock}, Step{For: us})
		}, 2e5},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Network{OneWay: 5 * us}, MachineConfig{CPUs: 4, Devices: []int{4}, Locks: 1, Plan: x.plan}, SourceConfig{}, 3)
			b.rate(t, 4e5)
			b.w.Run(20 * time.Millisecond)
			before := b.calls
			b.w.Run(120 * time.Millisecond)
			if got := float64(b.calls-before) / 0.1; math.Abs(got/x.want-1) > 0.01 {
				t.Errorf("%.0f requests/s, want %.0f", got, x.want)
			}
			if err := b.w.Audit(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A gate in front of a lock refuses who would have to wait there for too long: the lock is as busy as without it, all that have it are in time, and the others know early.
// It begins anew with the machine, whoever waited at it.
func TestLockWithAGate(t *testing.T) {
	early, refused := time.Duration(0), 0
	observe := func(o *Observation) {
		if o.Call.Outcome == dispatcher.OutcomeUnavailable {
			early += o.Latency
			refused++
		}
	}
	b := newBench(t, Network{OneWay: 5 * us}, MachineConfig{
		CPUs: 4, Locks: 1, Gate: &admit.GateConfig{Door: admit.DoorConfig{Target: 50 * us}},
		Plan: func(_ Work, steps []Step) []Step {
			return append(steps, Step{Kind: StepLock}, Step{For: 10 * us}, Step{Kind: StepUnlock})
		},
	}, SourceConfig{Deadline: 400 * us, Observe: observe}, 100)
	b.rate(t, 2e5) // twice what the lock can do
	for range 2 {
		b.w.Run(b.w.Elapsed() + 20*time.Millisecond)
		before := b.calls
		b.w.Run(b.w.Elapsed() + 100*time.Millisecond)
		if got := float64(b.calls-before) / 0.1; math.Abs(got/1e5-1) > 0.02 {
			t.Errorf("%.0f requests/s have the lock in time, want 100000", got)
		}
		b.m.Kill()
		b.m.Restart()
	}
	b.rate(t, 0)
	b.w.Run(b.w.Elapsed() + time.Second)
	if late := b.by[dispatcher.OutcomeDeadline]; refused < 10_000 || early/time.Duration(refused) > 50*us || late > refused/100 {
		t.Errorf("%d refused, after %v in the mean, %d late: outcomes %v", refused, early/time.Duration(max(refused, 1)), late, b.by)
	}
	if err := b.w.Audit(); err != nil {
		t.Error(err)
	}
}

// What finds the ring full is lost, counted, and asked for again.
func TestRingIsBounded(t *testing.T) {
	b := newBench(t, Network{OneWay: 5 * us}, MachineConfig{CPUs: 1, Ring: 8, Costs: Costs{Receive: us}}, SourceConfig{}, 100)
	for i := range 100 {
		b.s.Call(i)
		b.s.Call(i)
	}
	b.w.Run(time.Second)
	if b.m.dropped == 0 {
		t.Error("nothing was dropped")
	}
	if b.by[dispatcher.OutcomeOK] != 200 {
		t.Errorf("outcomes %v, want 200 answers", b.by)
	}
	if err := b.w.Audit(); err != nil {
		t.Error(err)
	}
}

// stillwater is the ledger of a server of ours with ten CPUs and an SLO of 200 us.
func stillwater() *credit.Ledger {
	return credit.NewLedger(credit.Config{}, credit.NewBreakwater(credit.BreakwaterConfig{Workers: 10}))
}

// A CPU that is busy lets its own ring wait and no other; with a shared ring any CPU takes the next packet.
func TestSteeredRings(t *testing.T) {
	for _, steered := range []bool{false, true} {
		b := newBench(t, Network{OneWay: 5 * us}, MachineConfig{CPUs: 2, Steered: steered, Costs: Costs{Receive: us}}, SourceConfig{
			Mix: func(*rand.Rand) (int, time.Duration) { return 0, 0 },
		}, 1)
		if err := b.s.AddClients(b.w.AddHost(dispatcher.Config{SlotsMax: slots}), 1); err != nil {
			t.Fatal(err)
		}
		b.s.Call(0)
		b.s.Call(1)
		b.w.Run(time.Millisecond) // both are registered
		b.s.cfg.Mix = func(*rand.Rand) (int, time.Duration) { return 0, time.Millisecond }
		b.s.Call(0)
		b.w.Run(1100 * us) // it is on the CPU that took it
		b.s.cfg.Mix = func(*rand.Rand) (int, time.Duration) { return 0, 0 }
		b.s.Call(0)
		b.s.Call(1)
		b.w.Run(1200 * us)
		want := map[bool]int{false: 4, true: 3}[steered] // the long one is not over
		if b.calls != want {
			t.Errorf("steered %v: %d calls are answered, want %d", steered, b.calls, want)
		}
		b.w.Run(3 * time.Millisecond)
		if b.calls != 5 {
			t.Errorf("steered %v: %d calls of 5 are answered in the end", steered, b.calls)
		}
	}
}
