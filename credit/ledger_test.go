package credit

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

const us = time.Microsecond

// fixture is a checked ledger over a Breakwater, with a clock that tests move by hand.
type fixture struct {
	*testing.T
	*Ledger
	water *Breakwater
	now   clock.Time
}

func newFixture(t *testing.T, config Config, law BreakwaterConfig) *fixture {
	config.Checked = true
	law.Slots = config.Slots
	water := NewBreakwater(law)
	return &fixture{T: t, Ledger: NewLedger(config, water), water: water, now: 1}
}

// register opens a session and delivers the request inside the registration.
func (f *fixture) register(demand uint16) Session {
	f.Helper()
	s, err := f.Register(f.now)
	if err != nil {
		f.Fatal(err)
	}
	f.request(s, 0, demand)
	return s
}

// request delivers a request of an honest client that has applied every update.
func (f *fixture) request(s Session, number uint64, demand uint16) {
	f.Helper()
	_, seq := f.Limit(s)
	f.Heard(f.now, s, number+1, seq, demand, true)
	if !f.Arrive(f.now, s, number) {
		f.Fatalf("request %d of session %d refused", number, s)
	}
}

// update lets one period pass and updates the pool with this delay.
func (f *fixture) update(delay time.Duration) {
	f.Helper()
	f.now = f.now.Add(10 * us)
	if !f.Update(f.now, Signal{Delay: delay}) {
		f.Fatal("update was not due")
	}
}

func (f *fixture) want(s Session, unused, pending uint64) {
	f.Helper()
	if u, p := f.Unused(s), f.Pending(s); u != unused || p != pending {
		f.Fatalf("session %d: unused %d, pending %d; want %d, %d", s, u, p, unused, pending)
	}
}

func TestEntryIsOneCacheLine(t *testing.T) {
	if size := unsafe.Sizeof(entry{}); size != 64 {
		t.Fatalf("an entry takes %d bytes", size)
	}
}

func TestRegistrationHoldsOneCredit(t *testing.T) {
	f := newFixture(t, Config{}, BreakwaterConfig{Workers: 8})
	s, err := f.Register(f.now)
	if err != nil {
		t.Fatal(err)
	}
	if limit, seq := f.Limit(s); limit != 1 || seq != 0 {
		t.Fatalf("limit %d seq %d", limit, seq)
	}
	f.want(s, 1, 0)
	f.Heard(f.now, s, 1, 0, 3, true)
	f.want(s, 0, 0)
	if !f.Arrive(f.now, s, 0) {
		t.Fatal("the request inside the registration was refused")
	}
	f.want(s, 0, 1)
	limit, seq := f.Answer(f.now, s, Success)
	// C = 8, I = 1, n = 1: C_oc = 7; W' = min(0 + 3 + 7, 1 + 7) = 8.
	if limit != 1+8 || seq != 1 {
		t.Fatalf("limit %d seq %d", limit, seq)
	}
	if got := f.Totals(); got.Issued != 8 || got.Pending != 0 || got.Active != 1 {
		t.Fatalf("%+v", got)
	}
}

func TestTooManySessions(t *testing.T) {
	f := newFixture(t, Config{MaxSessions: 2}, BreakwaterConfig{})
	a := f.register(0)
	f.register(0)
	if _, err := f.Register(f.now); !errors.Is(err, ErrTooManySessions) {
		t.Fatal(err)
	}
	f.Deregister(f.now, a)
	if b := f.register(0); b != a {
		t.Fatalf("entry %d was not used again", a)
	}
}

// A million registrations are bounded, and grow the slab without copying.
func TestManySessions(t *testing.T) {
	l := NewLedger(Config{MaxSessions: 3 * chunkSize}, NewBreakwater(BreakwaterConfig{}))
	var last Session
	for {
		s, err := l.Register(1)
		if err != nil {
			break
		}
		last = s
	}
	if last != 3*chunkSize || len(l.chunks) != 4 {
		t.Fatalf("last session %d, %d chunks", last, len(l.chunks))
	}
	if err := l.Audit(); err != nil {
		t.Fatal(err)
	}
}

// No event for a session that is not there does anything: any message may come in any state.
func TestNoSession(t *testing.T) {
	f := newFixture(t, Config{}, BreakwaterConfig{})
	gone := f.register(5)
	f.Deregister(f.now, gone)
	for _, s := range []Session{0, gone, gone + 1, chunkSize, math.MaxUint32} {
		f.Deregister(f.now, s)
		f.Heard(f.now, s, 5, 1, 1, true)
		if f.Arrive(f.now, s, 0) {
			t.Fatalf("session %d: arrived", s)
		}
		if limit, seq := f.Answer(f.now, s, Success); limit != 0 || seq != 0 {
			t.Fatalf("session %d: answered", s)
		}
		if _, _, answered := f.Probe(f.now, s, 1, 0, 1, true); answered {
			t.Fatalf("session %d: probed", s)
		}
	}
	if got := f.Totals(); got.Issued != 0 || got.Registered != 0 || got.Counters.Misused == 0 {
		t.Fatalf("%+v", got)
	}
}

func TestAnswerToNothing(t *testing.T) {
	f := newFixture(t, Config{}, BreakwaterConfig{Workers: 4})
	s := f.register(0)
	limit, seq := f.Answer(f.now, s, Success)
	if again, seq2 := f.Answer(f.now, s, Success); again != limit || seq2 != seq {
		t.Fatal("a second answer changed the limit")
	}
	if f.Totals().Counters.Misused != 1 {
		t.Fatal("not counted")
	}
}

// TestLoadCounts finds each request in the counts of the period in which it arrived, and of that in which it ended.
func TestLoadCounts(t *testing.T) {
	seen := &watched{None: NewNone(8)}
	l := NewLedger(Config{Checked: true}, seen)
	s, err := l.Register(1)
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Time(1)
	for i, c := range []struct {
		arrive int
		answer []Kind
		want   Load
	}{
		{1, []Kind{Success}, Load{Arrivals: 1, Answers: 1}},
		{3, []Kind{Rejection}, Load{Arrivals: 3, Rejections: 1}},
		{0, []Kind{Expired, Cancelled}, Load{Answers: 2}},
		{0, nil, Load{}},
	} {
		for range c.arrive {
			_, seq := l.Limit(s)
			next := l.slot(s).sent + 1
			l.Heard(now, s, next, seq, 0, true)
			if !l.Arrive(now, s, next-1) {
				t.Fatal("no credit")
			}
		}
		for _, kind := range c.answer {
			l.Answer(now, s, kind)
		}
		now = now.Add(time.Second)
		l.Update(now, Signal{})
		if got := seen.load; got.Arrivals != c.want.Arrivals || got.Answers != c.want.Answers || got.Rejections != c.want.Rejections {
			t.Errorf("period %d: %+v, want %+v", i, got, c.want)
		}
	}
}

// watched keeps what it was told.
type watched struct {
	*None
	load Load
}

func (w *watched) Update(now clock.Time, signal Signal, load Load) bool {
	w.load = load
	return w.None.Update(now, signal, load)
}

// Who asks for each credit is woken up for what it asked for, and for nothing else.
func TestAsking(t *testing.T) {
	f := newFixture(t, Config{Asking: true}, BreakwaterConfig{Workers: 8, NoFloor: true})
	if !f.Asking() {
		t.Error("it does not ask")
	}
	quiet, asks := f.register(0), f.register(0)
	for _, s := range []Session{quiet, asks} {
		f.Answer(f.now, s, Success)
		f.lose(s)
	}
	if got := f.Totals().Drained; got != 0 {
		t.Fatalf("%d sessions are on a list, and none has asked", got)
	}
	_, seq := f.Limit(asks)
	if _, _, answered := f.Probe(f.now, asks, f.sent(asks), seq, 1, true); answered {
		t.Fatal("a session without a credit was answered as if it had one")
	}
	if s, _, _, ok := f.PopDrained(f.now); !ok || s != asks {
		t.Fatalf("woke up %d, %v; want %d", s, ok, asks)
	}
	if _, _, _, ok := f.PopDrained(f.now); ok {
		t.Error("somebody was woken up who did not ask")
	}
	// It no longer wants what it asked for: an answer that finds it on the list takes it off.
	f.Probe(f.now, quiet, f.sent(quiet), f.slot(quiet).seq, 1, true)
	f.Heard(f.now, quiet, f.sent(quiet), f.slot(quiet).seq, 0, true)
	if got := f.Totals().Drained; got != 0 {
		t.Errorf("%d sessions wait, want none", got)
	}
}

// lose has the client spend what it holds on requests that are lost on their way.
func (f *fixture) lose(s Session) {
	limit, seq := f.Limit(s)
	f.Heard(f.now, s, limit, seq, 0, true)
}

// sent is the number of the session's next request.
func (f *fixture) sent(s Session) uint64 { return f.slot(s).sent }

// Sessions that wait all the time have their turns by their weights, in any order of registering and to the turn.
func TestTurnsGoByWeight(t *testing.T) {
	l := NewLedger(Config{Checked: true, DrainedPerUpdate: 1000}, NewBreakwater(BreakwaterConfig{Workers: 100, NoFloor: true}))
	weights := []uint8{4, 1, 2, 1, 0, 255}
	due := []int{4, 1, 2, 1, 1, 128}
	drain := func(s Session) { // it spends what it has, and what comes of it is lost
		limit, _ := l.Limit(s)
		l.Heard(1, s, limit, 0, 1, true)
		l.list(s, l.at(s))
	}
	for i, weight := range weights {
		s, err := l.Register(1)
		if err != nil || s != Session(i+1) {
			t.Fatal(s, err)
		}
		l.SetWeight(s, weight)
		drain(s)
	}
	l.Update(1, Signal{})
	got := make([]int, len(weights))
	for range 137 {
		s, _, _, ok := l.PopDrained(1)
		if !ok {
			t.Fatal("nobody waits")
		}
		got[s-1]++
		drain(s)
	}
	if !slices.Equal(got, due) {
		t.Errorf("turns %v, want %v", got, due)
	}
}
