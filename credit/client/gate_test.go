package client

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

const us = time.Microsecond

func TestGateFirstRequestOnly(t *testing.T) {
	g := NewGate(0)
	if !g.CanSend() || g.Unused() != 1 || g.Next() != 0 || g.Seq() != 0 || g.NextProbe() != 0 {
		t.Fatalf("%+v", g)
	}
	if n := g.Take(); n != 0 {
		t.Fatalf("first number is %d", n)
	}
	if g.CanSend() || g.Next() != 1 {
		t.Fatal("a second request before any answer")
	}
	defer func() {
		if recover() == nil {
			t.Fatal("Take without a credit")
		}
	}()
	g.Take()
}

// The fault: a late packet restores an old limit.
func TestGateIgnoresOlderUpdates(t *testing.T) {
	g := NewGate(0)
	g.Take()
	for _, step := range []struct {
		limit  uint64
		seq    uint32
		taken  bool
		unused uint64
	}{
		{9, 2, true, 8},
		{5, 1, false, 8}, // overtaken
		{9, 2, true, 8},  // a duplicate
		{7, 2, false, 8}, // the same seq, another limit: not from our server
		{3, 3, true, 2},  // a revocation
		{9, 2, false, 2}, // the late packet
		{0, 4, true, 0},  // revoked below what was sent: ignored as far as it goes
	} {
		if taken := g.Apply(1, step.limit, step.seq); taken != step.taken || g.Unused() != step.unused {
			t.Fatalf("%+v: taken %v, unused %d", step, taken, g.Unused())
		}
	}
}

func TestGateSeqWraps(t *testing.T) {
	g := NewGate(0)
	if !g.Apply(1, 2, math.MaxInt32) || !g.Apply(1, 3, math.MaxUint32-1) || !g.Apply(1, 4, 2) {
		t.Fatal("a newer seq was ignored")
	}
	if g.Apply(1, 9, math.MaxUint32) || g.Limit() != 4 {
		t.Fatal("a seq from before the wrap was applied")
	}
}

func TestGateLease(t *testing.T) {
	g := NewGate(time.Millisecond)
	if g.LeaseEnds() != 0 || g.Expire(1<<60) {
		t.Fatal("the registration's credit is nobody's to expire")
	}
	g.Take()
	g.Apply(1000, 4, 1)
	ends := clock.Time(1000).Add(time.Millisecond)
	if g.LeaseEnds() != ends || g.Expire(ends-1) || !g.CanSend() {
		t.Fatal("expired early")
	}
	if !g.Expire(ends) || g.CanSend() || g.Unused() != 0 || g.Expire(ends) {
		t.Fatal("did not expire, or twice")
	}
	if !g.ProbeDue(ends, 1, 0) {
		t.Fatal("may not ask for what it forgot")
	}
	// The server still stands by it: the same limit, the same seq.
	if !g.Apply(ends+10, 4, 1) || g.Unused() != 3 {
		t.Fatal("the credits did not come back")
	}
	g.Expire(ends + 10 + clock.Time(time.Millisecond))
	if g.Apply(ends+clock.Time(time.Second), 9, 0) || g.CanSend() {
		t.Fatal("an old limit came back after the lease")
	}
}

// Silent is the server of whom no limit was heard for a lease, from the first one on.
func TestGateSilent(t *testing.T) {
	g := NewGate(0)
	now := clock.Time(time.Second)
	if g.Silent(now.Add(time.Hour)) {
		t.Fatal("silent before it ever spoke")
	}
	g.Apply(now, 1, 1)
	if g.Silent(now.Add(DefaultLease-1)) || !g.Silent(now.Add(DefaultLease)) {
		t.Fatal("not silent from a lease on")
	}
	g.Apply(now.Add(DefaultLease), 1, 1)
	if g.Silent(now.Add(DefaultLease)) {
		t.Fatal("silent while it says the same again")
	}
}

// The fault: a lost registration or credit update stalls a client for ever. Every wait ends, and waits double.
func TestGateProbes(t *testing.T) {
	g := NewGate(0)
	g.Take()
	now := clock.Time(time.Second)
	g.Apply(now, 1, 1)
	if g.ProbeDue(now.Add(time.Hour), 0, 0) || g.ProbeDue(now.Add(time.Hour), 3, 1) {
		t.Fatal("a probe without demand, or while an answer is due")
	}
	wait := 50 * us
	for range 30 {
		if got := g.NextProbe(); got != now.Add(wait) {
			t.Fatalf("next probe after %v, want %v", got.Sub(now), wait)
		}
		now = now.Add(wait)
		if g.ProbeDue(now-1, 1, 0) || !g.ProbeDue(now, 1, 0) || g.ProbeDue(now, 1, 0) {
			t.Fatal("a probe early, none, or two")
		}
		wait = min(2*wait, ProbeTimeMax)
	}
	// An answer without a credit restarts the wait but not the doubling; one with a credit ends both.
	g.Apply(now, 1, 2)
	if g.NextProbe() != now.Add(ProbeTimeMax) {
		t.Fatal("the doubling was forgotten")
	}
	g.Apply(now, 2, 3)
	if g.NextProbe() != 0 {
		t.Fatal("probes with a credit in hand")
	}
	g.Take()
	g.SetRTT(200 * us)
	if g.NextProbe() != now.Add(200*us) {
		t.Fatal("the wait is below the RTT")
	}
	g.SetRTT(time.Hour)
	if g.NextProbe() != now.Add(ProbeTimeMax) {
		t.Fatal("a wrong RTT silences the client")
	}
}

// Demand that rises from nothing, long after the last answer, is told at once.
func TestGateWakesUpAtOnce(t *testing.T) {
	g := NewGate(0)
	g.Take()
	g.Apply(1, 1, 1)
	if !g.ProbeDue(clock.Time(time.Second), 1, 0) {
		t.Fatal("waited in vain")
	}
}

func TestExpiresAt(t *testing.T) {
	const made, deadline = 800_000, 1_000_000 // 100 us of slack with the estimates below
	for _, c := range []struct {
		made, deadline                       clock.Time
		rtt, target, service, standing, late time.Duration
		want                                 clock.Time
	}{
		{deadline: 0, rtt: us, target: us, service: us, standing: us, want: 0},
		{made: made, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, want: 900_000},
		{made: made, deadline: deadline, rtt: -us, target: 80 * us, service: -us, want: 920_000},
		{deadline: 100, rtt: us, want: 1},
		{deadline: 100, service: math.MaxInt64, want: 1},
		{deadline: math.MaxInt64, rtt: math.MaxInt64, target: math.MaxInt64, service: math.MaxInt64, standing: math.MaxInt64, want: 1},
		{deadline: 5, want: 5},
		// The queue that stands at the server takes of the slack in proportion, up to three quarters of the target; a fifth is always left.
		{made: made, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, standing: -us, want: 900_000},
		{made: made, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, standing: 30 * us, want: 850_000},
		{made: made, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, standing: 48 * us, want: 820_000},
		{made: made, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, standing: math.MaxInt64, want: 820_000},
		{made: 950_000, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, standing: 48 * us, want: 900_000}, // too late anyway
		{made: made, deadline: deadline, rtt: 10 * us, service: 10 * us, standing: 48 * us, want: 980_000},                     // a server without a target
		// What the others leave out is taken off as it is, and a fifth is left all the same. Whichever is less holds.
		{made: made, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, late: -us, want: 900_000},
		{made: made, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, late: 30 * us, want: 870_000},
		{made: made, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, late: math.MaxInt64, want: 820_000},
		{made: made, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, standing: 30 * us, late: 30 * us, want: 850_000},
		{made: made, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, standing: 30 * us, late: 60 * us, want: 840_000},
		{made: 950_000, deadline: deadline, rtt: 10 * us, target: 80 * us, service: 10 * us, late: 48 * us, want: 900_000}, // too late anyway
	} {
		got := ExpiresAt(c.made, c.deadline, &Estimates{RTT: c.rtt, Target: c.target, Service: c.service, Standing: c.standing, Late: c.late})
		if math.Abs(float64(got)-float64(c.want)) > 1 { // of rounding
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

func TestGateAllocatesNothing(t *testing.T) {
	g := NewGate(0)
	now, limit, seq := clock.Time(1), uint64(1), uint32(0)
	allocs := testing.AllocsPerRun(1000, func() {
		now, limit, seq = now+1000, limit+1, seq+1
		g.Take()
		g.ProbeDue(now, 1, 0)
		g.Apply(now, limit, seq)
		g.Expire(now)
	})
	if allocs != 0 {
		t.Fatalf("%v allocations", allocs)
	}
}

func BenchmarkGate(b *testing.B) {
	g := NewGate(0)
	for i := range b.N {
		g.Take()
		g.Apply(clock.Time(i+1), uint64(i+2), uint32(i+1))
	}
}

// A refusal for overload makes the next probe wait long; a credit ends that, too.
func TestOverloadPutsTheProbeOff(t *testing.T) {
	gate := NewGate(0)
	gate.Take()
	now := clock.Time(1e9)
	gate.Apply(now, 1, 1)
	gate.Overloaded(now)
	if wait := gate.NextProbe().Sub(now); wait != ProbeTimeMin<<probeOverload {
		t.Errorf("waits %v", wait)
	}
	if gate.ProbeDue(gate.NextProbe()-1, 1, 0) || !gate.ProbeDue(gate.NextProbe(), 1, 0) {
		t.Error("not due when it says")
	}
	gate.Apply(now, 2, 2)
	gate.Take()
	gate.Apply(now, 2, 3)
	if wait := gate.NextProbe().Sub(now); wait != ProbeTimeMin {
		t.Errorf("after a credit it waits %v", wait)
	}
}
