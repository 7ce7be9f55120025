package sim

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/dispatcher"
)

// Threads change the order, which does not know how long a request will take, and leave no CPU idle beside a ready thread: so the mean time until handlers have
// returned is still that of an M/M/c queue. Their answers then wait for the threads that became ready before them.
func TestThreadsAgainstQueueingTheory(t *testing.T) {
	for cpus, load := range map[int]float64{1: 0.7, 4: 0.8, 10: 0.8} {
		inTheory(t, MachineConfig{CPUs: cpus, Threads: true}, load, func(b *bench) time.Duration { return b.stay })
	}
}

// saturated is what a machine serves per second while its clients always have more to ask.
func saturated(t *testing.T, m MachineConfig) float64 {
	t.Helper()
	b := newBench(t, Network{OneWay: 5 * us}, m, SourceConfig{Service: constant(8 * us)}, 1)
	b.rate(t, 1e6)
	b.w.Run(20 * time.Millisecond)
	before := b.calls
	b.w.Run(320 * time.Millisecond)
	if err := b.w.Audit(); err != nil {
		t.Error(err)
	}
	return float64(b.calls-before) / 0.3
}

func TestThreadsCostTheSame(t *testing.T) {
	got := saturated(t, MachineConfig{CPUs: 2, Threads: true, Costs: Costs{Receive: 800, Send: 1200}})
	if want := 2 / (10 * us).Seconds(); math.Abs(got/want-1) > 0.01 {
		t.Errorf("%.0f requests/s, want %.0f", got, want)
	}
}

// A pause takes the same share of the capacity, whoever handles the packets.
func TestPauseTakesItsShare(t *testing.T) {
	pause := Pause{Every: 900 * us, For: 100 * us}
	for name, m := range map[string]MachineConfig{
		"no threads": {CPUs: 2, Pause: pause}, "threads": {CPUs: 2, Threads: true, Pause: pause},
	} {
		got, want := saturated(t, m), 0.9*2/(8*us).Seconds()
		if math.Abs(got/want-1) > 0.03 {
			t.Errorf("%s: %.0f requests/s, want %.0f", name, got, want)
		}
	}
	// A poller that is away keeps the packets waiting, and the handlers busy only as long as there is something to do.
	if got, most := saturated(t, MachineConfig{CPUs: 2, Poller: true, Pause: pause}), 0.9*2/(8*us).Seconds(); got > 1.03*most || got < 0.7*most {
		t.Errorf("poller: %.0f requests/s, want at most %.0f and not far below", got, most)
	}
}

// Packets of one client are read by one CPU, in their order, and what another has taken is still handled once.
func TestThreadsOfClients(t *testing.T) {
	b := newBench(t, Network{OneWay: 5 * us}, MachineConfig{CPUs: 4, Threads: true, Costs: Costs{Receive: us}}, SourceConfig{Service: constant(3 * us)}, 1)
	for range slots {
		b.s.Call(0)
	}
	b.w.Run(10 * time.Millisecond)
	if b.by[dispatcher.OutcomeOK] != slots || b.m.Dispatcher().Snapshot().Duplicates > 0 {
		t.Errorf("outcomes %v, %d duplicates", b.by, b.m.Dispatcher().Snapshot().Duplicates)
	}
}

// The process dies with packets, threads and pauses under way, and its successor serves.
func TestThreadsRestart(t *testing.T) {
	m := MachineConfig{CPUs: 2, Threads: true, Costs: Costs{Receive: us, Send: us}, Pause: Pause{Every: 200 * us, For: 50 * us}}
	b := newBench(t, Network{OneWay: 5 * us}, m, SourceConfig{Service: exponential(10 * us), Deadline: time.Millisecond}, 20)
	b.rate(t, 4e5)
	for i := 1; i <= 5; i++ {
		at := time.Duration(i) * 2 * time.Millisecond
		b.w.At(at, func() { b.m.Kill(); b.m.Restart() })
		b.w.Run(at + time.Millisecond)
		if err := b.w.Audit(); err != nil {
			t.Fatal(err)
		}
	}
	before := b.by[dispatcher.OutcomeOK]
	b.rate(t, 1e4)
	b.w.Run(100 * time.Millisecond)
	if b.by[dispatcher.OutcomeOK] < before+500 {
		t.Errorf("outcomes %v: the last process does not serve", b.by)
	}
}

// Each request has its thread, whatever the handlers wait for: no bound on those in service may strand one, and none is lost in a stall.
func TestThreadsStrandNobody(t *testing.T) {
	disk := func(Work, []Step) []Step { return []Step{{Kind: StepDevice, For: 40 * us}} }
	m := MachineConfig{CPUs: 2, Threads: true, Devices: []int{2}, Plan: disk, Pause: Pause{Every: 200 * us, For: 50 * us}}
	m.Serve.AdaptWorkers = true
	b := newBench(t, Network{OneWay: 5 * us}, m, SourceConfig{}, 20)
	b.rate(t, 2e5) // four times what the device can do
	for i := 1; i <= 4; i++ {
		b.w.At(time.Duration(i)*50*time.Millisecond, func() { b.m.Stall(time.Millisecond) })
	}
	b.w.Run(300 * time.Millisecond)
	b.rate(t, 0)
	b.w.Run(5 * time.Second)
	if n := b.w.Checks().Pending(); n > 0 || b.calls == 0 {
		t.Errorf("%d calls have no outcome; outcomes %v", n, b.by)
	}
	if err := b.w.Audit(); err != nil {
		t.Error(err)
	}
}

// While a host stalls, the end of a pause wakes nobody up.
func TestPauseEndsInStall(t *testing.T) {
	for _, threads := range []bool{false, true} {
		m := MachineConfig{CPUs: 10, Threads: threads, Pause: Pause{Every: 20 * us, For: 20 * us}, Ledger: func() *credit.Ledger {
			return credit.NewLedger(credit.Config{}, credit.NewBreakwater(credit.BreakwaterConfig{Workers: 10}))
		}}
		b := newBench(t, Network{OneWay: 5 * us}, m, SourceConfig{Service: constant(8 * us)}, 10)
		b.rate(t, 1e5)
		b.w.Run(10 * time.Millisecond)
		b.m.Stall(10 * time.Millisecond)
		before := b.m.Dispatcher().Snapshot()
		b.w.Run(20*time.Millisecond - 1)
		if now := b.m.Dispatcher().Snapshot(); now.PacketsSent > before.PacketsSent || now.Updates > before.Updates {
			t.Errorf("threads %v: %d packets sent and %d updates of the pool in a stall", threads, now.PacketsSent-before.PacketsSent, now.Updates-before.Updates)
		}
		b.w.Run(40 * time.Millisecond)
		if err := b.w.Audit(); err != nil || b.calls == 0 {
			t.Errorf("threads %v: %d calls answered; %v", threads, b.calls, err)
		}
	}
}
