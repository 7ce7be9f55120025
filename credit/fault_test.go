package credit

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// The faults that known implementations of this law have or had. The pool's are in breakwater_test.go.

func TestFaultUnsignedUnderflow(t *testing.T) {
	f := newFixture(t, Config{Slots: 64}, BreakwaterConfig{Workers: 64, NoFloor: true})
	s := f.register(60)
	f.Answer(f.now, s, Success)
	f.want(s, 64, 0) // 60 and an overcommitment of 63, but not more than the slots
	f.request(s, 1, 0)
	f.request(s, 2, 0)
	f.water.set(64)
	f.water.workers = 1
	f.water.set(1) // far less than what is pending
	for range 2 {
		f.Answer(f.now, s, Rejection)
		if u := f.Unused(s); u > 64 {
			t.Fatalf("unused %d", u)
		}
	}
	f.want(s, 1, 0)        // no demand, and the overcommitment of one
	other := f.register(0) // one more than the pool has
	f.request(s, 3, 0)
	f.Answer(f.now, s, Rejection)
	f.want(s, 0, 0)
	f.Answer(f.now, other, Rejection)
	if got := f.Totals(); got.Issued != 1 || got.Pending != 0 {
		t.Fatalf("%+v", got)
	}
}

func TestFaultSessionTwiceOnDrainedList(t *testing.T) {
	f := newFixture(t, Config{}, BreakwaterConfig{Workers: 1, NoFloor: true})
	a, b := f.register(5), f.register(5)
	f.register(5) // keeps the only credit of the pool
	f.Answer(f.now, a, Rejection)
	limit, seq := f.Limit(a)
	for range 5 {
		if _, _, answered := f.Probe(f.now, a, limit, seq, 5, true); answered {
			t.Fatal("there is nothing to answer")
		}
	}
	if got := f.Totals().Drained; got != 1 {
		t.Fatalf("%d on the list", got)
	}
	f.Answer(f.now, b, Rejection)
	f.Probe(f.now, a, limit, seq, 0, true)
	f.Probe(f.now, a, limit, seq, 7, true)
	f.update(0)
	got, _, _, ok := f.PopDrained(f.now)
	if !ok || got != b {
		t.Fatalf("popped %d: a's demand went away and came back behind b's", got)
	}
}

func TestFaultSessionDiesOnDrainedList(t *testing.T) {
	f := newFixture(t, Config{}, BreakwaterConfig{Workers: 8, NoFloor: true})
	var all [5]Session
	for i := range all {
		all[i] = f.register(5)
	}
	f.water.workers = 1
	f.water.set(1)
	for _, s := range all {
		f.Answer(f.now, s, Rejection)
	}
	f.Deregister(f.now, all[0])
	f.Deregister(f.now, all[2])
	f.Deregister(f.now, all[4])
	if got, _, _, ok := f.PopDrained(f.now); !ok || got != all[1] {
		t.Fatalf("popped %d", got)
	}
	f.Deregister(f.now, all[1])
	f.Deregister(f.now, all[3])
	if _, _, _, ok := f.PopDrained(f.now); ok || f.Totals().Drained != 0 {
		t.Fatal("somebody is left")
	}
	if f.register(1) != all[3] {
		t.Fatal("the entry is not used again")
	}
}

// However a request ends, the sums are as if it had never been.
func TestFaultLeakedCredit(t *testing.T) {
	f := newFixture(t, Config{}, BreakwaterConfig{Workers: 4})
	s := f.register(0)
	for number := uint64(1); number < 1000; number++ {
		kind := Kind(number % uint64(Rejection+1))
		f.Answer(f.now, s, kind)
		if f.Unused(s) == 0 {
			_, seq := f.Limit(s)
			f.Probe(f.now, s, number, seq, 1, true)
			f.update(0)
			if _, _, _, ok := f.PopDrained(f.now); !ok {
				t.Fatalf("request %d: no credit after kind %d", number, kind)
			}
		}
		f.request(s, number, 0)
		if got := f.Totals(); got.Pending != 1 || got.Issued > got.Pool {
			t.Fatalf("%+v", got)
		}
	}
}

// 1 % of the requests are lost; the limit minus what was completed would leak a credit for each.
func TestFaultLostRequestsLeak(t *testing.T) {
	f := newFixture(t, Config{}, BreakwaterConfig{Workers: 4})
	s := f.register(3)
	f.Answer(f.now, s, Success)
	for number := uint64(1); number < 10_000; number++ {
		if number%100 == 0 && f.Unused(s) > 1 {
			continue // lost; the next packet says so
		}
		f.request(s, number, 3)
		f.Answer(f.now, s, Success)
		if f.Unused(s) == 0 {
			t.Fatalf("stalled at request %d: %+v", number, f.Totals())
		}
	}
	if got := f.Totals(); got.Pending != 0 || got.Issued != 4 {
		t.Fatalf("%+v", got)
	}
}

// 10,000 idle clients that hold credits and 10 busy ones: once the leases have run out, the busy ones have all.
func TestFaultIdleClientsKeepCredits(t *testing.T) {
	f := newFixture(t, Config{MaxSessions: 20_000}, BreakwaterConfig{Workers: 10})
	f.config.Checked = false // ten thousand sessions at every event
	for range 10_000 {
		f.Answer(f.now, f.register(0), Success)
	}
	var busy [10]Session
	for i := range busy {
		busy[i] = f.register(100)
	}
	idle := f.Totals().Issued - 10
	if idle == 0 {
		t.Fatal("the control arm holds nothing")
	}
	f.now = f.now.Add(f.config.Lease + 1)
	for _, s := range busy {
		f.Heard(f.now, s, 1, 0, 100, true)
	}
	for range 11 {
		f.Sweep(f.now, 1000)
	}
	got := f.Totals()
	if got.Active != 10 || got.Issued != 10 || got.Counters.Lapses != 10_000 {
		t.Fatalf("%+v", got)
	}
	for range 300 {
		f.update(0)
		for _, s := range busy {
			f.Answer(f.now, s, Success)
			next := f.at(s).sent
			f.request(s, next, 100)
		}
	}
	var held uint64
	for _, s := range busy {
		held += f.Unused(s) + f.Pending(s)
	}
	if got = f.Totals(); held != got.Pool || got.Pool < 300 {
		t.Fatalf("the busy clients hold %d: %+v", held, got)
	}
	if err := f.Audit(); err != nil {
		t.Fatal(err)
	}
}

func TestFaultLyingClients(t *testing.T) {
	f := newFixture(t, Config{Slots: 8}, BreakwaterConfig{Workers: 16})
	honest, liar := f.register(3), f.register(math.MaxUint16)
	if d, _ := f.Demand(liar); d != 8 {
		t.Fatalf("demand %d was not clamped to the slots", d)
	}
	f.Answer(f.now, liar, Success)
	if f.Unused(liar) > 8 {
		t.Fatal("a lie about demand got more than the slots")
	}
	sent := f.at(liar).sent
	for _, next := range []uint64{1 << 63, 1<<64 - 1, 1<<63 - 1, sent + f.Unused(liar) + 1} {
		f.Heard(f.now, liar, next, 1, math.MaxUint16, true)
		if f.Arrive(f.now, liar, next-1) {
			t.Fatalf("request %d was let in", next-1)
		}
		if f.Arrive(f.now, liar, math.MaxUint64) {
			t.Fatal("the last number was let in")
		}
		if f.at(liar).sent != sent {
			t.Fatal("a lie moved sent")
		}
	}
	f.Heard(f.now, liar, 1, 1<<31, 0, true) // a seq that was never sent
	if got := f.Totals().Counters; got.Ahead != 4 || got.Refused != 8 || got.Future != 1 {
		t.Fatalf("%+v", got)
	}
	f.Answer(f.now, honest, Success)
	if f.Unused(honest) < 3 {
		t.Fatal("the honest one does not get its share")
	}
	// A probe from beyond the limit costs the liar what it holds, and goes on.
	f.Probe(f.now, liar, 1<<64-1, 1, 1, true)
	if f.Unused(liar) != 0 || f.Totals().Drained != 1 {
		t.Fatal("the liar kept its credits")
	}
}

// A client may send numbers late that it had called lost; never more at once than its slots.
func TestFaultBankedNumbers(t *testing.T) {
	f := newFixture(t, Config{Slots: 4}, BreakwaterConfig{Workers: 100})
	s := f.register(4)
	f.Answer(f.now, s, Success)
	for range 10 {
		limit, seq := f.Limit(s)
		f.Probe(f.now, s, limit, seq, 4, true) // all lost, it says
		f.update(0)
		f.PopDrained(f.now)
	}
	let := 0
	for number := range f.at(s).limit {
		if number > 0 && f.Arrive(f.now, s, number) {
			let++
		}
	}
	if let != 4 || f.Totals().Counters.Full == 0 {
		t.Fatalf("%d let in: %+v", let, f.Totals())
	}
}

func TestFaultHoarders(t *testing.T) {
	f := newFixture(t, Config{Slots: 100}, BreakwaterConfig{Workers: 10})
	hoarder, honest := f.register(math.MaxUint16), f.register(1)
	f.Answer(f.now, hoarder, Success)
	f.Answer(f.now, honest, Success)
	held := f.Unused(hoarder)
	for f.now < clock.Time(2*f.config.Lease) {
		f.now = f.now.Add(f.config.Lease / 4)
		_, seq := f.Limit(honest)
		f.Heard(f.now, honest, f.at(honest).sent, seq, 1, true)
		f.Sweep(f.now, 10)
	}
	if held == 0 || f.Unused(hoarder) != 0 || !f.Lapsed(hoarder) || f.Lapsed(honest) {
		t.Fatal("the hoarder kept its credits, or the other lost them")
	}
}

// overbearing is a controller with no sense of measure.
type overbearing struct {
	None
	window uint64
}

func (o *overbearing) Window(Holding) uint64 { return o.window }

// Whatever a controller says, what is pending stays counted and no session gets more than its slots.
func TestWindowIsClamped(t *testing.T) {
	for _, c := range []struct{ window, unused uint64 }{{0, 0}, {1, 0}, {math.MaxUint64, 7}, {9, 7}, {3, 2}} {
		law := &overbearing{window: 4}
		l := NewLedger(Config{Slots: 8, Checked: true}, law)
		s, err := l.Register(1)
		if err != nil {
			t.Fatal(err)
		}
		l.Heard(1, s, 1, 0, 0, true)
		l.Arrive(1, s, 0)
		l.Answer(1, s, Success)
		l.Heard(1, s, 3, 1, 0, true)
		l.Arrive(1, s, 1)
		l.Arrive(1, s, 2)
		law.window = c.window
		l.Answer(1, s, Success)
		if u, p := l.Unused(s), l.Pending(s); u != c.unused || p != 1 {
			t.Errorf("a window of %d: unused %d, pending %d", c.window, u, p)
		}
	}
}

func TestDemandIsReplacedOnlyByNewer(t *testing.T) {
	f := newFixture(t, Config{}, BreakwaterConfig{})
	s := f.register(7)
	f.now = 100
	f.Heard(f.now, s, 1, 0, 2, false)
	if d, at := f.Demand(s); d != 7 || at != 1 {
		t.Fatalf("demand %d at %d", d, at)
	}
	f.Heard(f.now, s, 1, 0, 2, true)
	if d, at := f.Demand(s); d != 2 || at != 100 {
		t.Fatalf("demand %d at %d", d, at)
	}
}

func TestSweepIsBounded(t *testing.T) {
	f := newFixture(t, Config{Lease: time.Millisecond}, BreakwaterConfig{Workers: 100})
	for range 10 {
		f.Answer(f.now, f.register(0), Success)
	}
	f.now = clock.Time(time.Second)
	for _, c := range []struct{ most, want int }{{0, 0}, {3, 3}, {3, 3}, {3, 3}, {3, 1}, {1000, 0}} {
		if got := f.Sweep(f.now, c.most); got != c.want {
			t.Fatalf("sweep of %d: %d lapsed, want %d", c.most, got, c.want)
		}
	}
	if got := f.Totals(); got.Issued != 0 || got.Active != 0 || got.Registered != 10 {
		t.Fatalf("%+v", got)
	}
}

func TestSeqWraps(t *testing.T) {
	f := newFixture(t, Config{Slots: 16}, BreakwaterConfig{Workers: 16})
	s := f.register(9)
	e := f.at(s)
	e.seq = math.MaxUint32
	f.Answer(f.now, s, Success) // seq 0, ten credits
	high := e.limit
	f.request(s, 1, 0)
	f.Answer(f.now, s, Success) // revoked
	if e.seq != 1 || e.limit >= high || e.limit+uint64(e.oldOver) != high {
		t.Fatalf("%+v", *e)
	}
	f.Heard(f.now, s, 2, math.MaxUint32, 0, true) // knows neither
	if !f.Arrive(f.now, s, high-1) {
		t.Fatal("overtook the revocation, and was refused")
	}
	_, seq := f.Limit(s)
	f.Heard(f.now, s, high, seq, 0, true)
	if f.Arrive(f.now, s, high) || e.oldOver != 0 {
		t.Fatal("an old limit is still honoured")
	}
}

func TestAuditSeesFaults(t *testing.T) {
	breaks := []func(l *Ledger, e *entry){
		func(l *Ledger, _ *entry) { l.issued++ },
		func(l *Ledger, _ *entry) { l.pending-- },
		func(l *Ledger, _ *entry) { l.active++ },
		func(l *Ledger, _ *entry) { l.registered++ },
		func(_ *Ledger, e *entry) { e.sent = e.limit + 1 },
		func(_ *Ledger, e *entry) { e.demand = math.MaxUint16 },
		func(_ *Ledger, e *entry) { e.curOver = 1 },
		func(_ *Ledger, e *entry) { e.flags |= flagGraced },
		func(_ *Ledger, e *entry) { e.flags |= flagWanting },
		func(_ *Ledger, e *entry) { e.next = 1 },
		func(l *Ledger, _ *entry) { l.wanting.count++ },
		func(l *Ledger, _ *entry) { l.free = 1 },
	}
	for i, fault := range breaks {
		l := NewLedger(Config{}, NewBreakwater(BreakwaterConfig{}))
		s, err := l.Register(1)
		if err != nil || l.Audit() != nil {
			t.Fatal(err, l.Audit())
		}
		fault(l, l.at(s))
		if l.Audit() == nil {
			t.Errorf("fault %d was not seen", i)
		}
	}
}
