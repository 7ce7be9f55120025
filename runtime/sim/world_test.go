package sim

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

// story runs a world with everything in it, and returns a hash of all that happened in it.
func story(t *testing.T, seed uint64) uint64 {
	w := NewWorld(seed, Network{OneWay: 5 * us, Jitter: 2 * us, Loss: 0.01, Duplicate: 0.01, Reorder: 0.01, Corrupt: 0.01})
	m, err := w.AddMachine(dispatcher.Config{}, MachineConfig{CPUs: 2, Ledger: uncontrolled})
	if err != nil {
		t.Fatal(err)
	}
	hash := fnv.New64a()
	s := w.NewSource(m, SourceConfig{Service: exponential(10 * us), Deadline: time.Millisecond, Observe: func(o *Observation) {
		fmt.Fprintln(hash, o.Client, o.Work, o.Made, o.Ended, o.Call.Outcome, o.Call.Timing, o.Call.Retransmissions)
	}})
	for range 3 {
		if err := s.AddClients(w.AddHost(dispatcher.Config{}), 5); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetRate(250_000); err != nil {
		t.Fatal(err)
	}
	w.At(4*time.Millisecond, m.Kill)
	w.At(5*time.Millisecond, m.Restart)
	w.Run(20 * time.Millisecond)
	if err := w.Audit(); err != nil {
		t.Error(err)
	}
	return hash.Sum64()
}

func TestSameSeedSameStory(t *testing.T) {
	seed := seedtest.Seed(t)
	one, again, other := story(t, seed), story(t, seed), story(t, seed+1)
	if one != again {
		t.Error("the same seed told another story")
	}
	if one == other {
		t.Error("another seed told the same story")
	}
}

// Every fault at once, and then peace: each call has its outcome, and the books are whole.
func TestFaultsEnd(t *testing.T) {
	n := Network{OneWay: 5 * us, Jitter: 5 * us, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.05}
	b := newBench(t, n, MachineConfig{CPUs: 2}, SourceConfig{Service: exponential(10 * us), Deadline: 5 * time.Millisecond}, 20)
	h := b.w.hosts[1]
	b.rate(t, 100_000)
	b.w.At(3*time.Millisecond, func() { b.w.Cut(h, b.m.Host) })
	b.w.At(6*time.Millisecond, func() { b.w.Mend(h, b.m.Host) })
	b.w.At(10*time.Millisecond, b.m.Kill)
	b.w.At(11*time.Millisecond, b.m.Restart)
	b.w.At(20*time.Millisecond, h.Kill)
	b.w.At(22*time.Millisecond, h.Restart)
	b.w.At(40*time.Millisecond, func() {
		b.w.SetNetwork(Network{OneWay: 5 * us})
		b.rate(t, 0)
	})
	b.w.Run(100 * time.Millisecond)
	checks := b.w.Checks()
	if checks.Pending() != 0 {
		t.Errorf("%d calls have no outcome", checks.Pending())
	}
	if checks.Killed == 0 || b.by[dispatcher.OutcomePeerLost] == 0 || b.by[dispatcher.OutcomeOK] < 2000 {
		t.Errorf("killed %d, outcomes %v: the faults did not reach the calls, or nothing else did", checks.Killed, b.by)
	}
	if b.w.net.lost == 0 || b.w.net.doubled == 0 || b.w.net.damaged == 0 {
		t.Errorf("network %+v: some fault did not happen", b.w.net)
	}
	if err := b.w.Audit(); err != nil {
		t.Error(err)
	}
}

// A packet with a flipped bit is lost, unless the bit is one that no checksum covers; then it is what it was.
func TestDamageIsFoundOut(t *testing.T) {
	w := NewWorld(seedtest.Seed(t), Network{})
	a, b := w.AddHost(dispatcher.Config{}), w.AddHost(dispatcher.Config{})
	lost := 0
	for range 10_000 {
		payload := []byte("what is sent")
		if w.net.damage(a.addr, b.addr, payload) {
			lost++
		} else if string(payload) != "what is sent" {
			t.Fatalf("%q arrived", payload)
		}
	}
	// The 96 bits of the Ethernet addresses are in no checksum.
	whole := 8 * (wire.FrameHeaderBytes + len("what is sent"))
	want := 10_000 * (whole - 96) / whole
	if lost < want-300 || lost > want+300 {
		t.Errorf("%d of 10000 were lost, want about %d", lost, want)
	}
}

// The checks must be able to fail.
func TestChecksFail(t *testing.T) {
	const none = dispatcher.OutcomeNone
	for name, f := range map[string]func(c *Checks){
		"ran twice":       func(c *Checks) { id := c.call(false); c.ran(id); c.ran(id) },
		"two outcomes":    func(c *Checks) { id := c.call(false); c.ended(id, none); c.ended(id, none) },
		"never ran":       func(c *Checks) { c.ended(c.call(false), dispatcher.OutcomeOK) },
		"denied, and ran": func(c *Checks) { id := c.call(false); c.ran(id); c.ended(id, dispatcher.OutcomeRejected) },
		"runs, denied":    func(c *Checks) { id := c.call(false); c.ended(id, dispatcher.OutcomeExpired); c.ran(id) },
		"other's answer":  func(c *Checks) { c.answer(c.call(false), []byte{0, 0, 0, 0, 0, 0, 0, 9}) },
		"nobody made":     func(c *Checks) { c.ran(7) },
		"more than calls": func(c *Checks) { c.Killed = 1 },
	} {
		w := NewWorld(1, Network{})
		f(w.Checks())
		if w.Audit() == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
	var c Checks
	id := c.call(false)
	c.ran(id)
	c.forgive()
	if c.ran(id); len(c.Violations()) != 0 {
		t.Errorf("%v, of another boot on a trusted network", c.Violations())
	}
	w := NewWorld(1, Network{})
	w.packet()
	if w.Audit() == nil {
		t.Error("a packet that nobody has: not noticed")
	}
}

func TestDemandNeedsClients(t *testing.T) {
	w := NewWorld(1, Network{})
	m, err := w.AddMachine(dispatcher.Config{}, MachineConfig{Ledger: uncontrolled})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.NewSource(m, SourceConfig{}).SetRate(1); err == nil {
		t.Error("demand without clients was taken")
	}
	if _, err := w.AddMachine(dispatcher.Config{}, MachineConfig{}); err == nil {
		t.Error("a machine without a ledger was taken")
	}
}

func BenchmarkTwiceOverload(b *testing.B) {
	const clients = 1000
	bench := newBench(b, Network{OneWay: 5 * us}, MachineConfig{
		CPUs: 10, Costs: Costs{Receive: 800, Send: 960, Reject: 400, Credit: 400},
		Serve: dispatcher.ServeConfig{TargetDelay: 80 * us, DropThreshold: 160 * us}, Ledger: stillwater,
	}, SourceConfig{Service: exponential(10 * us), Deadline: 200 * us}, clients)
	bench.rate(b, 1.6e6)
	bench.w.Run(50 * time.Millisecond)
	b.ReportAllocs()
	before := bench.w.Checks().Calls
	for b.Loop() {
		for target := bench.w.Checks().Calls + 1; bench.w.Checks().Calls < target; {
			bench.w.Run(bench.w.Elapsed() + us)
		}
	}
	b.ReportMetric(float64(bench.w.Checks().Calls-before)/b.Elapsed().Seconds(), "calls/s")
}

// Clients that wake up together do so at the same instant, and each makes all its calls; the demand is what SetRate says.
func TestWakeUpsTogether(t *testing.T) {
	const together, burst, rate = 4, 3, 200_000
	b := newBench(t, Network{OneWay: 5 * us}, MachineConfig{CPUs: 8}, SourceConfig{Together: together, Burst: burst}, 50)
	at := make(map[clock.Time]int)
	observe := b.s.cfg.Observe
	b.s.cfg.Observe = func(o *Observation) {
		at[o.Made]++
		observe(o)
	}
	b.rate(t, rate)
	b.w.Run(500 * time.Millisecond)
	b.rate(t, 0)
	b.w.Run(600 * time.Millisecond)
	for when, calls := range at {
		if calls%(together*burst) != 0 {
			t.Fatalf("%d calls at %v", calls, when)
		}
	}
	if calls := int(b.w.Checks().Calls); calls < rate/2*9/10 || calls > rate/2*11/10 || calls != len(at)*together*burst {
		t.Errorf("%d calls at %d instants in half a second at %d/s", calls, len(at), rate)
	}
	if b.w.Events() < 4*b.w.Checks().Calls {
		t.Errorf("%d events for %d calls", b.w.Events(), b.w.Checks().Calls)
	}
}

// What handlers have computed, and what waits, adds up.
func TestComputedAndWaiting(t *testing.T) {
	b := newBench(t, Network{OneWay: 5 * us}, MachineConfig{CPUs: 1}, SourceConfig{Service: constant(100 * us)}, 10)
	for client := range 10 {
		b.s.Call(client)
	}
	b.w.Run(250 * us)
	if waiting := b.m.Waiting(); waiting != 7 { // two are done, one runs
		t.Errorf("%d wait", waiting)
	}
	b.w.Run(10 * time.Millisecond)
	if got := b.m.Computed(); got != time.Millisecond || b.m.Waiting() != 0 {
		t.Errorf("10 calls of 100 us took %v, and %d wait", got, b.m.Waiting())
	}
}
