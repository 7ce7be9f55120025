package credit

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// pooled makes a Breakwater with a given pool, and load that lets it grow.
func pooled(config BreakwaterConfig, sessions uint64, pool float64) (*Breakwater, Load) {
	b := NewBreakwater(config)
	b.Resize(sessions)
	b.set(pool)
	return b, Load{Issued: uint64(pool), Pending: uint64(pool), Active: true}
}

func TestPoolLaw(t *testing.T) {
	const target = DefaultTargetDelay
	for _, c := range []struct {
		name     string
		sessions uint64
		pool     float64
		delay    time.Duration
		want     float64
	}{
		{"few clients: the increase is one credit", 10, 100, 0, 101},
		{"many clients: alpha n_c", 10_000, 100, target - 1, 110},
		{"a fraction is carried", 1500, 100, 0, 101.5},
		{"delay at the target: nothing, and no increase", 1000, 100, target, 100},
		{"twice the target: beta", 1000, 100, 2 * target, 98},
		{"51 targets: the factor would be zero, and is bounded", 1000, 100, 51 * target, 50},
		{"a delay without end", 1000, 100, math.MaxInt64, 50},
		{"a decrease that rounds to nothing is kept", 1000, 10, target + target/10, 10 * 0.998},
		{"a negative delay is none", 1000, 100, math.MinInt64, 101},
		{"never below the workers", 1000, 4, 10 * target, 4},
		{"never above all slots", 2, 512, 0, 512},
		{"no session: the workers", 0, 4, 0, 4},
	} {
		b, load := pooled(BreakwaterConfig{Workers: 4, IdleCounts: true}, c.sessions, c.pool)
		b.Update(1, Signal{Delay: c.delay}, load)
		if math.Abs(b.pool-c.want) > 1e-9 || b.Pool() != uint64(b.pool) {
			t.Errorf("%s: %v, want %v", c.name, b.pool, c.want)
		}
	}
}

// TestShare has four controllers of one server increase as one would: by a credit together while there are few clients, by alpha n_c when there are many.
func TestShare(t *testing.T) {
	for _, sessions := range []uint64{40, 40_000} {
		whole, load := pooled(BreakwaterConfig{}, sessions, 100)
		whole.Update(1, Signal{}, load)
		parts := 0.0
		for range 4 {
			part, load := pooled(BreakwaterConfig{Share: 1.0 / 4}, sessions/4, 25)
			part.Update(1, Signal{}, load)
			parts += part.pool
		}
		if math.Abs(parts-whole.pool) > 1e-9 || whole.pool == 100 {
			t.Errorf("%d sessions: four parts come to %v, the whole to %v", sessions, parts, whole.pool)
		}
	}
}

func TestDefaults(t *testing.T) {
	b := NewBreakwater(BreakwaterConfig{})
	if b.Target() != 80*us || b.DropThreshold() != 160*us || b.Pool() != 1 {
		t.Fatalf("%v %v %d", b.Target(), b.DropThreshold(), b.Pool())
	}
	if !b.Admit(Arrival{Delay: 160 * us}) || b.Admit(Arrival{Delay: 160*us + 1}) || !b.Admit(Arrival{Delay: -1}) {
		t.Fatal("the door")
	}
	if b = NewBreakwater(BreakwaterConfig{TargetDelay: 45 * us}); b.DropThreshold() != 90*us {
		t.Fatal("the drop threshold is twice the target")
	}
}

// Ten decreases of a tenth of a credit each must take one.
func TestFaultDecreaseThatRoundsToNothing(t *testing.T) {
	b, load := pooled(BreakwaterConfig{Workers: 1}, 100, 10)
	now := clock.Time(1)
	for range 10 {
		b.Update(now, Signal{Delay: DefaultTargetDelay * 3 / 2}, load) // factor 0.99
		now = now.Add(periodMin)
	}
	if b.Pool() != 9 {
		t.Fatalf("pool %d (%v)", b.Pool(), b.pool)
	}
}

func TestFaultWrongActionAtTarget(t *testing.T) {
	b, load := pooled(BreakwaterConfig{}, 100, 50)
	for now := clock.Time(1); now < 1e6; now = now.Add(periodMin) {
		b.Update(now, Signal{Delay: b.Target()}, load)
	}
	if b.pool != 50 {
		t.Fatalf("the pool moved to %v", b.pool)
	}
}

func TestFaultMoreThanOneUpdatePerRTT(t *testing.T) {
	for _, c := range []struct {
		rtt, service time.Duration
		workers      int
		period       time.Duration
	}{
		{rtt: 0, period: 10 * us}, {rtt: -1, period: 10 * us}, {rtt: 3 * us, period: 10 * us}, {rtt: 250 * us, period: 250 * us}, {rtt: time.Hour, period: time.Second},
		// A service that is longer than the round trip, up to the target; with many workers a part of it.
		{rtt: 10 * us, service: -us, period: 10 * us}, {rtt: 10 * us, service: 9 * us, period: 10 * us}, {rtt: 10 * us, service: 50 * us, period: 50 * us},
		{rtt: 10 * us, service: 50 * us, workers: 8, period: 50 * us}, {rtt: 10 * us, service: 50 * us, workers: 16, period: 25 * us},
		{rtt: 10 * us, service: time.Hour, period: DefaultTargetDelay}, {rtt: 250 * us, service: time.Hour, period: 250 * us},
	} {
		b, load := pooled(BreakwaterConfig{Workers: c.workers}, 100, 50)
		now := clock.Time(time.Hour)
		signal := Signal{RTT: c.rtt, Service: c.service}
		if !b.UpdateDue(now) || !b.Update(now, signal, load) {
			t.Fatal("the first update was not due")
		}
		early := now.Add(c.period) - 1
		if b.UpdateDue(early) || b.Update(early, signal, load) || b.pool != 51 {
			t.Fatalf("%+v: updated after %v", c, early.Sub(now))
		}
		// A loop that was away for ten periods updates once, and the next period begins then.
		late := now.Add(10 * c.period)
		if !b.Update(late, signal, load) || b.UpdateDue(late.Add(c.period)-1) || b.pool != 52 {
			t.Fatalf("%+v: caught up", c)
		}
	}
}

// The floor is off while the delay is at the target or above, and comes back.
func TestFloorEndsAtTheTarget(t *testing.T) {
	b, _ := pooled(BreakwaterConfig{TargetDelay: 80 * us, Beta: 1e-9}, 100, 10)
	for i, c := range []struct {
		delay time.Duration
		want  uint64
	}{{0, 1}, {79 * us, 1}, {80 * us, 0}, {500 * us, 0}, {79 * us, 1}} {
		b.Update(clock.Time(1+i)*clock.Time(time.Second), Signal{Delay: c.delay}, Load{Issued: 101, Active: true})
		b.pool, b.whole = 10, 10
		if got := b.Window(Holding{Issued: 101, Window: 1}); got != c.want {
			t.Errorf("after a delay of %v: %d, want %d", c.delay, got, c.want)
		}
	}
}

// A pool that was cut far below what is issued starts to grow near that, once the delay is below the target; as published, it
// pays the debt off one credit a round trip.
func TestGrowthStartsNearWhatIsIssued(t *testing.T) {
	for _, c := range []struct {
		catchUp float64
		load    Load
		want    float64
	}{
		{0, Load{Issued: 500, Active: true}, 501},
		{-1, Load{Issued: 500, Active: true}, 101},
		{0.5, Load{Issued: 500, Active: true}, 251},
		{0, Load{Issued: 50, Active: true}, 101},
		{0, Load{Issued: 500}, 100},
	} {
		b, _ := pooled(BreakwaterConfig{CatchUp: c.catchUp}, 1000, 100)
		b.Update(1, Signal{}, c.load)
		if b.pool != c.want {
			t.Errorf("catch-up %v, %+v: pool %v, want %v", c.catchUp, c.load, b.pool, c.want)
		}
	}
}

func TestFaultPoolGrowsWhileClientsAreIdle(t *testing.T) {
	grown := func(load Load, headroom float64) uint64 {
		b, _ := pooled(BreakwaterConfig{Workers: 10, Headroom: headroom}, 1000, 10)
		for now := clock.Time(1); now < 1e8; now = now.Add(periodMin) {
			b.Update(now, Signal{}, load)
		}
		return b.Pool()
	}
	if got := grown(Load{Issued: 500}, 0); got != 10 {
		t.Errorf("nobody is active: %d", got)
	}
	// One increase and four credits per client, of no more clients than a session has slots: 1 + 4 * 256.
	if got := grown(Load{Issued: 500, Active: true}, 0); got != 500+1025+1 {
		t.Errorf("few credits are used: %d", got)
	}
	if got := grown(Load{Issued: 500, Active: true}, -1); got < 10_000 {
		t.Errorf("as published: %d", got)
	}
}

func TestFaultPoolStuckAfterLastClientLeft(t *testing.T) {
	f := newFixture(t, Config{Slots: 4}, BreakwaterConfig{Workers: 2})
	for range 3 {
		a, b := f.register(9), f.register(9)
		for range 20 {
			f.update(0)
		}
		f.Deregister(f.now, a)
		if pool := f.Totals().Pool; pool > 4 {
			t.Fatalf("one client with 4 slots, pool %d", pool)
		}
		f.Deregister(f.now, b)
		f.update(time.Second)
		f.update(0)
		if got := f.Totals(); got.Pool != 2 || got.Issued != 0 {
			t.Fatalf("%+v", got)
		}
	}
	s := f.register(9)
	if f.Answer(f.now, s, Success); f.Unused(s) == 0 {
		t.Fatal("the first client to come back gets nothing")
	}
}

func TestWindowLaw(t *testing.T) {
	for _, c := range []struct {
		name    string
		pool    float64
		clients uint64
		noFloor bool
		holding Holding
		want    uint64
	}{
		{"below: demand and overcommitment", 100, 10, false, Holding{Issued: 50, Window: 3, Pending: 2, Demand: 4}, 2 + 4 + 5},
		{"below: what the pool has", 100, 10, false, Holding{Issued: 98, Window: 3, Pending: 2, Demand: 40}, 3 + 2},
		{"below: an idle client gives back", 100, 10, false, Holding{Issued: 98, Window: 30, Pending: 0, Demand: 0}, 1},
		{"above: one less", 100, 10, false, Holding{Issued: 101, Window: 30, Pending: 2, Demand: 40}, 29},
		{"above: by far too many for its demand", 100, 10, false, Holding{Issued: 101, Window: 30, Pending: 2, Demand: 4}, 7},
		{"equal: no more", 100, 10, false, Holding{Issued: 100, Window: 3, Pending: 2, Demand: 40}, 3},
		{"floor", 100, 10, false, Holding{Issued: 101, Window: 1}, 1},
		{"floor: not after a rejection", 100, 10, false, Holding{Issued: 101, Window: 1, Rejected: true}, 0},
		{"floor: off", 100, 10, true, Holding{Issued: 101, Window: 1}, 0},
		{"nothing to take", 100, 10, true, Holding{Issued: 101}, 0},
	} {
		b, _ := pooled(BreakwaterConfig{NoFloor: c.noFloor}, c.clients, c.pool)
		if got := b.Window(c.holding); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestNone(t *testing.T) {
	l := NewLedger(Config{Slots: 16, Checked: true}, NewNone(16))
	s, err := l.Register(1)
	if err != nil {
		t.Fatal(err)
	}
	l.Heard(1, s, 1, 0, 0, true)
	l.Arrive(1, s, 0)
	if limit, _ := l.Answer(1, s, Rejection); limit != 17 {
		t.Fatalf("limit %d", limit)
	}
	if !l.Admit(Arrival{Delay: time.Hour}) || l.control.Target() != 0 || l.Totals().Pool != 16 {
		t.Fatal("None controls something")
	}
	if !l.Update(1, Signal{}) || l.Update(2, Signal{}) {
		t.Fatal("period")
	}
	// What a lease took comes back by a probe.
	l.Sweep(clock.Time(time.Hour), 1)
	l.Probe(clock.Time(time.Hour), s, 1, 1, 5, true)
	if _, limit, _, ok := l.PopDrained(clock.Time(time.Hour)); !ok || limit != 2 {
		t.Fatal("not woken up")
	}
}

// A pool that was cut goes back to its peak while clients wait: the faster, the shorter the queue is.
func TestPoolRecovers(t *testing.T) {
	const target = DefaultTargetDelay
	for _, c := range []struct {
		name     string
		recovery float64
		drained  uint64
		delay    time.Duration
		want     float64
	}{
		{"without any queue: a tenth of the way", 0, 1, 0, 640},
		{"half way to the target: half as fast", 0, 1, target / 2, 620},
		{"just below the target: the step", 0, 1, target - 1, 601},
		{"at the target: not at all", 0, 1, target, 600},
		{"nobody waits: the step", 0, 0, 0, 601},
		{"as published: the step", -1, 1, 0, 601},
		{"all at once", 1, 1, 0, 1000},
	} {
		b, load := pooled(BreakwaterConfig{Recovery: c.recovery}, 1000, 600)
		b.peak, load.Drained = 1000, c.drained
		b.Update(1, Signal{Delay: c.delay}, load)
		if math.Abs(b.pool-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, b.pool, c.want)
		}
	}
}

// The peak is what the pool grew to; a decrease takes a quarter of its share off the peak as well, and with the sessions it goes too.
func TestPeak(t *testing.T) {
	const target = DefaultTargetDelay
	b, load := pooled(BreakwaterConfig{Workers: 4, Slots: 2}, 1000, 1000)
	b.Update(1, Signal{}, load)
	if b.peak != 1001 || b.pool != 1001 {
		t.Errorf("grown: pool %v, peak %v", b.pool, b.peak)
	}
	b.Update(clock.Time(time.Second), Signal{Delay: 2 * target}, load)
	if math.Abs(b.pool-1001*0.98) > 1e-9 || math.Abs(b.peak-1001*0.995) > 1e-9 {
		t.Errorf("cut: pool %v, peak %v", b.pool, b.peak)
	}
	if b.Resize(100); b.peak != 200 {
		t.Errorf("all slots of those who are left: peak %v", b.peak)
	}
	if b.Resize(0); b.peak != 4 || b.pool != 4 {
		t.Errorf("nobody: pool %v, peak %v", b.pool, b.peak)
	}
}

// Who has no more than its share keeps it, and who has more gets no more while others wait.
func TestShares(t *testing.T) {
	const pool = 12
	for _, c := range []struct {
		name string
		h    Holding
		want uint64
	}{
		{"too much is issued, more than its share: one less", Holding{Issued: 20, Window: 5, Pending: 2, Demand: 9, Weight: 1, Weights: 3}, 4},
		{"its share exactly", Holding{Issued: 20, Window: 4, Pending: 2, Demand: 9, Weight: 1, Weights: 3}, 4},
		{"with twice the weight it is twice as much", Holding{Issued: 20, Window: 8, Pending: 2, Demand: 9, Weight: 2, Weights: 3}, 8},
		{"but no more than it wants", Holding{Issued: 20, Window: 4, Pending: 2, Weight: 1, Weights: 3}, 3},
		{"something is left, others wait, more than its share", Holding{Issued: 10, Window: 5, Pending: 4, Demand: 9, Weight: 1, Weights: 3, Scarce: true}, 5},
		{"others wait, and it has less: its share", Holding{Issued: 10, Window: 3, Pending: 2, Demand: 9, Weight: 1, Weights: 3, Scarce: true}, 4},
		{"nobody waits: one more", Holding{Issued: 10, Window: 5, Pending: 4, Demand: 9, Weight: 1, Weights: 3}, 6},
	} {
		if got := fairWindow(c.h, pool, 3, false); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
