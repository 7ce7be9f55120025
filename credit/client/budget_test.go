package client

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

func TestBackoff(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		cfg   BackoffConfig
		n     int
		after time.Duration
		draw  float64
		want  time.Duration
	}{
		{BackoffConfig{}, 1, 0, 0, 0},
		{BackoffConfig{}, 1, 0, 0.5, 250 * time.Microsecond},
		{BackoffConfig{}, 0, 0, 0.5, 250 * time.Microsecond}, // as the first
		{BackoffConfig{}, 3, 0, 0.5, ms},
		{BackoffConfig{}, 7, 0, 0.5, 16 * ms},
		{BackoffConfig{}, 8, 0, 0.5, 25 * ms}, // the maximum
		{BackoffConfig{}, math.MaxInt, 0, 0.5, 25 * ms},
		{BackoffConfig{Base: ms, Max: 3 * ms}, 2, 0, 0.5, ms},
		{BackoffConfig{Base: ms, Max: 3 * ms}, 3, 0, 0.5, 1500 * time.Microsecond},
		{BackoffConfig{Base: 10 * ms, Max: ms}, 1, 0, 0.5, 500 * time.Microsecond},
		{BackoffConfig{}, 1, 100 * ms, 0.5, 100*ms + 250*time.Microsecond}, // the server's word is above the maximum
		{BackoffConfig{}, 1, -ms, 0.5, 250 * time.Microsecond},
	} {
		if got := c.cfg.Wait(c.n, c.after, c.draw); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestBudgetBounds(t *testing.T) {
	for _, c := range []struct {
		name        string
		cfg         BudgetConfig
		calls, want int // attempts that can be taken after so many calls
	}{
		{"new", BudgetConfig{}, 0, 1},
		{"nine calls", BudgetConfig{}, 9, 1},
		{"ten calls", BudgetConfig{}, 10, 2},
		{"as many as it holds", BudgetConfig{}, 1000, 10},
		{"a small one", BudgetConfig{Burst: 1}, 1000, 1},
		{"none", BudgetConfig{Ratio: -1, Floor: -1}, 1000, 0},
		{"floor alone", BudgetConfig{Ratio: -1}, 1000, 1},
		{"three for each call", BudgetConfig{Ratio: 3}, 2, 7},
		{"absurd", BudgetConfig{Ratio: math.Inf(1), Floor: math.Inf(1), Burst: math.MaxInt}, 10, budgetBurstMax},
	} {
		b := NewBudget(c.cfg)
		for range c.calls {
			b.Deposit()
		}
		if b.Left() != c.want {
			t.Errorf("%s: %d left", c.name, b.Left())
		}
		taken := 0
		for taken <= c.want && b.Take(1) {
			taken++
		}
		if c.name != "absurd" && taken != c.want {
			t.Errorf("%s: %d taken", c.name, taken)
		}
	}
}

// TestBudgetClock: whatever the clock does, the floor pays at its rate, and one attempt at most.
func TestBudgetClock(t *testing.T) {
	b := NewBudget(BudgetConfig{Ratio: -1, Floor: 1})
	now := clock.Time(time.Hour)
	b.Take(now)
	for _, step := range []struct {
		pass  time.Duration
		taken int
	}{
		{999 * time.Millisecond, 0}, {time.Millisecond, 1}, {time.Hour, 1}, {-time.Hour, 0}, {999 * time.Millisecond, 0},
		{time.Millisecond, 1}, {-time.Hour, 0}, {100 * 365 * 24 * time.Hour, 1},
	} {
		now = now.Add(step.pass)
		taken := 0
		for b.Take(now) {
			taken++
		}
		if taken != step.taken {
			t.Errorf("after %v: %d taken, want %d", step.pass, taken, step.taken)
		}
	}
	// Asked a million times a second, it pays no more and no less.
	taken := 0
	for range 3_000_000 {
		now = now.Add(time.Microsecond)
		if b.Take(now) {
			taken++
		}
	}
	if taken != 3 {
		t.Errorf("%d in three seconds at one a second", taken)
	}
}

// storm is many calls that share a guard, and what was sent.
type storm struct {
	*testing.T
	*rand.Rand
	g    *Guard
	now  clock.Time
	sent int64
	all  [20]struct {
		Attempts
		over bool
	}
}

// TestBudgetIsNeverMadeOrLost has many calls share a guard under random interleavings of everything that can happen to them, in any order and more than once: sent,
// answered, refused, lost, late, hedged, cancelled, and ended by a disconnect. At each step the books balance; and when all calls are over, what was taken is what was sent.
func TestBudgetIsNeverMadeOrLost(t *testing.T) {
	random := seedtest.Rand(t)
	for range 50 {
		s := &storm{T: t, Rand: random, now: clock.Time(time.Second)}
		s.g = NewGuard(GuardConfig{
			Retry: RetryConfig{
				Attempts: 1 + random.IntN(5), Refused: random.IntN(2) == 0, Timeout: time.Millisecond,
				Budget: BudgetConfig{Ratio: random.Float64(), Burst: 1 + random.IntN(5), Floor: 100 * random.Float64()},
			},
			Hedge: HedgeConfig{Percentile: 0.5}, Breaker: BreakerConfig{Failures: 0.9, Wait: time.Millisecond}, Throttle: ThrottleConfig{K: 2},
		})
		for i := range s.all {
			s.all[i].over = true
		}
		for range 5000 {
			s.now = s.now.Add(time.Duration(random.IntN(200)) * time.Microsecond)
			s.step(random.IntN(len(s.all)))
			s.check()
		}
		for i := range s.all { // a disconnect
			s.end(i)
			s.end(i)
		}
		s.check()
		if b := s.g.Budget(); b.Taken-b.Returned != s.sent*attemptUnits {
			t.Fatalf("%+v, %d sent", b, s.sent)
		}
	}
}

// step has one thing happen to one call. Some of it is told to calls that are over: double releases.
func (s *storm) step(i int) {
	c, which := &s.all[i], Try(s.IntN(2))
	if c.over && s.IntN(4) > 0 {
		c.Begin(s.g, CallClass{Repeatable: s.IntN(3) > 0, Left: uint8(s.IntN(4)), Deadline: s.now.Add(time.Duration(s.IntN(5)) * time.Millisecond)})
		c.over = false
		if c.Admit(s.g, s.now, s.Float64()) != RefusalNone {
			c.Ended(s.g, s.now, Primary, Ended{End: EndUnsent}, 0)
			s.end(i)
		}
		return
	}
	switch s.IntN(7) {
	case 0:
		if c.tries[which].held {
			s.sent++
		}
		c.Sent(s.g, which)
	case 1:
		if !c.over {
			c.Hedge(s.g, s.now)
		}
	case 2:
		if c.Live(Primary) && !c.tries[Primary].held {
			c.TimedOut(s.g, s.now, s.Float64())
		}
	case 3:
		s.end(i)
	default:
		e := Ended{End: End(s.IntN(len(endNames))), DoNotRetry: s.IntN(9) == 0, RetryAfter: time.Duration(s.IntN(3)) * time.Millisecond}
		live := c.Live(which)
		decision, _ := c.Ended(s.g, s.now, which, e, s.Float64())
		if !live && decision != Await {
			s.Fatalf("what had ended was decided about: %v", decision)
		}
		if decision == Finish {
			s.end(i)
		}
	}
}

// end has a call be over: what is under way is broken off.
func (s *storm) end(i int) {
	c := &s.all[i]
	c.over = true
	c.Drop(s.g, s.now, Hedged, 0)
	c.Drop(s.g, s.now, Primary, time.Duration(s.IntN(3))*time.Millisecond)
}

// check has the books balance: what was taken and not returned is held by an attempt, or was sent.
func (s *storm) check() {
	held := int64(0)
	for i := range s.all {
		for _, try := range s.all[i].tries {
			if try.held {
				held += attemptUnits
			}
		}
	}
	b := s.g.Budget()
	if b.Balance < 0 || b.Balance > s.g.budget.max || b.Balance != b.Made-b.Taken+b.Returned-b.Lost {
		s.Fatalf("%+v does not balance", b)
	}
	if b.Taken-b.Returned != held+s.sent*attemptUnits {
		s.Fatalf("%+v, but %d held and %d sent", b, held/attemptUnits, s.sent)
	}
}

// TestAttemptsBound: a call has no more attempts than are allowed, a client no more than its budget beyond the first ones, and nothing that may have run is made
// again unless it is repeatable. Each end is as likely as the others.
func TestAttemptsBound(t *testing.T) {
	random := seedtest.Rand(t)
	g := NewGuard(GuardConfig{Retry: RetryConfig{Budget: BudgetConfig{Floor: -1}}})
	const calls = 20_000
	sent := 0
	for range calls {
		var a Attempts
		repeatable := random.IntN(2) == 0
		a.Begin(g, CallClass{Repeatable: repeatable})
		a.Admit(g, 1, 0)
		for attempts := 1; ; attempts++ {
			a.Sent(g, Primary)
			sent++
			end := EndRefused + End(random.IntN(2))
			what, _ := a.Ended(g, 1, Primary, Ended{End: end}, 0)
			if what == Finish {
				break
			}
			if attempts >= attemptsDefault || !repeatable {
				t.Fatalf("attempt %d after %v, repeatable %v", attempts+1, end, repeatable)
			}
		}
	}
	if most := calls + calls/10 + 1; sent > most || sent < most-10 {
		t.Errorf("%d requests for %d calls", sent, calls)
	}
	if c := g.Counts(); int(c.Retries) != sent-calls || c.BudgetRefused == 0 {
		t.Errorf("%+v", c)
	}
}
