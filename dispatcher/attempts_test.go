package dispatcher

import (
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

// fixture is a client with a guard, and a server that does what a test says.
type fixture struct {
	*testing.T
	w      *network
	p      *peer
	client *node
	s      *Session
	guard  *client.Guard
	marks  uint64
}

// guarded has a session with credits for a hundred requests, over which one call was answered.
func guarded(t *testing.T, cfg client.GuardConfig) *fixture {
	w, p, c, s := pretend(t)
	f := &fixture{T: t, w: w, p: p, client: c, s: s, guard: client.NewGuard(cfg)}
	c.d.SetGuard(s, f.guard)
	first := f.call(true, time.Second)
	p.settle()
	p.accept(s, 41, 100)
	f.reply(f.last())
	f.want(first, OutcomeOK, 1)
	return f
}

func (f *fixture) call(repeatable bool, deadline time.Duration) *call {
	f.marks++
	c := &call{}
	c.Repeatable = repeatable
	f.client.submit(c, f.s, f.marks, f.w.now.Add(deadline))
	return c
}

func (f *fixture) pass(d time.Duration) { f.w.run(f.w.now.Add(d)) }

// requests are those that the server heard, without what was only sent again.
func (f *fixture) requests() (all []wire.Request) {
	for _, m := range f.p.heard {
		if m.Type == wire.TypeRequest || m.Type == wire.TypeRegister {
			if r, _ := wire.ParseRequest(m.Raw); !r.Retransmission {
				all = append(all, r)
			}
		}
	}
	return all
}

func (f *fixture) last() wire.Request {
	all := f.requests()
	return all[len(all)-1]
}

func (f *fixture) reply(r wire.Request) {
	f.p.say(&wire.Reply{Session: f.s.local, Number: r.Number, Slot: r.Slot, Limit: 100, Seq: 1, Payload: r.Payload})
}

func (f *fixture) reject(r wire.Request, advice wire.Advice, after time.Duration) {
	f.p.say(&wire.Reject{Session: f.s.local, Number: r.Number, Slot: r.Slot, Limit: 100, Seq: 1, Reason: wire.RejectOverloaded, Advice: advice, RetryAfter: after})
}

// want says how a call is to have ended, after so many attempts; OutcomeNone = it has not.
func (f *fixture) want(c *call, o Outcome, attempts int) {
	f.Helper()
	done := 1
	if o == OutcomeNone {
		done = 0
	}
	if c.done != done || c.Outcome != o || c.Attempts() != attempts {
		f.Errorf("%d outcomes, %v, %d attempts; want %v, %d attempts", c.done, c.Outcome, c.Attempts(), o, attempts)
	}
}

// end says what must hold when all calls are over.
func (f *fixture) end() {
	f.Helper()
	f.client.d.quiet(f)
	f.client.audit()
	stats, budget := f.client.d.stats, f.guard.Budget()
	if sent := int64(stats.AttemptCounts.Retries+stats.Hedges) * 1_000_000; budget.Taken-budget.Returned != sent {
		f.Errorf("%+v for %+v", budget, stats.AttemptCounts)
	}
	if stats.Calls != stats.Ended() {
		f.Errorf("%d calls, %d outcomes", stats.Calls, stats.Ended())
	}
}

// quiet checks that no attempt is left in any session.
func (d *Dispatcher) quiet(t testing.TB) {
	t.Helper()
	for _, s := range d.caller.sessions {
		if s != nil && (s.parked != nil || s.out.Len() > 0 || s.waiting.Len() > 0) {
			t.Errorf("a session has %d outstanding, %d waiting, parked %v", s.out.Len(), s.waiting.Len(), s.parked != nil)
		}
	}
	for h := d.caller.hedges; h != nil; h = h.ending {
		if h.parent != nil || h.state != callIdle || h.timer.Armed() {
			t.Error("a spare hedge is not spare")
		}
	}
}

// A call that the server refused is tried again when the server says, with its attempt's number, and its reply is that of the last attempt.
func TestRefusedCallIsTriedAgain(t *testing.T) {
	f := guarded(t, client.GuardConfig{})
	c := f.call(true, time.Second)
	f.pass(time.Millisecond)
	if r := f.last(); r.Attempt != 0 || r.AttemptsLeft != 1 {
		t.Errorf("%+v", r)
	}
	sent := len(f.requests())
	f.reject(f.last(), 0, 20*time.Millisecond)
	f.pass(19 * time.Millisecond)
	f.want(c, OutcomeNone, 2)
	if len(f.requests()) != sent || f.s.Outstanding() != 0 {
		t.Fatal("tried again too early, or not out of its slot")
	}
	f.pass(2 * time.Millisecond)
	r := f.last()
	if len(f.requests()) != sent+1 || r.Attempt != 1 || r.AttemptsLeft != 1 || mark(r.Payload) != f.marks {
		t.Fatalf("%d requests, %+v", len(f.requests())-sent, r)
	}
	f.reply(r)
	f.want(c, OutcomeOK, 2)
	if mark(c.Reply) != f.marks || len(c.Reply) != len(r.Payload) {
		t.Errorf("reply %x", c.Reply)
	}
	f.end()
}

// The server's word that nobody should try again is obeyed, and one that is not repeatable is not tried again.
func TestNotTriedAgain(t *testing.T) {
	f := guarded(t, client.GuardConfig{})
	c := f.call(true, time.Second)
	f.pass(time.Millisecond)
	f.reject(f.last(), wire.AdviceDoNotRetry, 0)
	f.want(c, OutcomeRejected, 1)
	c = f.call(false, time.Second)
	f.pass(time.Millisecond)
	if r := f.last(); r.AttemptsLeft != 0 {
		t.Errorf("%+v", r)
	}
	f.reject(f.last(), 0, 0)
	f.want(c, OutcomeRejected, 1)
	if n := f.client.d.stats.RetriesForbidden; n != 1 {
		t.Errorf("%d forbidden", n)
	}
	f.end()
}

// A server that cannot get what it needs says so in a text, which is the reply unless another attempt is answered.
func TestUnavailable(t *testing.T) {
	f := guarded(t, client.GuardConfig{Retry: RetryAtOnce})
	say := func() {
		r := f.last()
		f.p.say(&wire.Reply{Session: f.s.local, Number: r.Number, Slot: r.Slot, Limit: 100, Seq: 1, Status: wire.StatusUnavailable, Payload: []byte("no leaf")})
	}
	c := f.call(true, time.Second)
	f.pass(time.Millisecond)
	say()
	f.pass(time.Millisecond)
	f.reply(f.last())
	f.want(c, OutcomeOK, 2)
	if mark(c.Reply) != f.marks || len(c.Reply) != 64 {
		t.Errorf("reply %q", c.Reply)
	}
	c = f.call(true, time.Second) // its budget is used up
	f.pass(time.Millisecond)
	say()
	f.want(c, OutcomeUnavailable, 1)
	if string(c.Reply) != "no leaf" {
		t.Errorf("reply %q", c.Reply)
	}
	f.end()
}

// RetryAtOnce waits next to nothing, so that a test need not.
var RetryAtOnce = client.RetryConfig{Backoff: client.BackoffConfig{Base: 1, Max: 1}}

// What may have run must not end as if it had not, whatever becomes of its later attempts: here the next one finds no credit, and one whose server is gone.
func TestLostThenUnsent(t *testing.T) {
	f := guarded(t, client.GuardConfig{Retry: client.RetryConfig{Timeout: time.Millisecond, Budget: client.BudgetConfig{Ratio: 5}}})
	c := f.call(true, 20*time.Millisecond)
	f.pass(100 * time.Microsecond)
	f.p.say(&wire.CreditUpdate{Session: f.s.local, Limit: wire.Number(f.s.Credit().Next), Seq: 2}) // nothing is left
	f.pass(30 * time.Millisecond)
	f.want(c, OutcomeDeadline, 2)
	if n := len(f.p.all(wire.TypeCancel)); n != 1 {
		t.Errorf("the server was told %d times that nobody waits for the first", n)
	}
	f.end()
}

// A late attempt is given up for another one. Its answer comes too late, and belongs to nobody.
func TestLateAttempt(t *testing.T) {
	f := guarded(t, client.GuardConfig{Retry: client.RetryConfig{Timeout: time.Millisecond}})
	c := f.call(true, time.Second)
	f.pass(900 * time.Microsecond)
	f.want(c, OutcomeNone, 1)
	first := f.last()
	f.pass(200 * time.Microsecond)
	second := f.last()
	if second.Number == first.Number || second.Attempt != 1 {
		t.Fatalf("%+v", second)
	}
	f.reply(first)
	f.want(c, OutcomeNone, 2)
	f.reply(second)
	f.want(c, OutcomeOK, 2)
	// Nothing is left in the budget: the next one stays, however late, and its answer counts.
	c = f.call(true, time.Second)
	f.pass(50 * time.Millisecond)
	f.want(c, OutcomeNone, 1)
	f.reply(f.last())
	f.want(c, OutcomeOK, 1)
	if f.client.d.stats.BudgetRefused != 1 {
		t.Errorf("%+v", f.client.d.stats.AttemptCounts)
	}
	f.end()
}

// A call that waits for its next attempt can be cancelled, and ends with its session. What was paid comes back.
func TestParkedCallEnds(t *testing.T) {
	for _, o := range []Outcome{OutcomeCancelled, OutcomeClosed} {
		f := guarded(t, client.GuardConfig{})
		c := f.call(true, time.Second)
		f.pass(time.Millisecond)
		f.reject(f.last(), 0, 10*time.Millisecond)
		f.want(c, OutcomeNone, 2)
		if o == OutcomeCancelled {
			f.client.d.Cancel(f.w.now, &c.Call)
		} else {
			f.client.d.CloseSession(f.w.now, f.s)
		}
		f.want(c, o, 2)
		f.pass(time.Second)
		f.want(c, o, 2)
		f.end()
	}
}

// Breaker and throttle refuse calls unsent, and a retry that they refuse leaves the call with what it has.
func TestRefusedLocally(t *testing.T) {
	f := guarded(t, client.GuardConfig{Breaker: client.BreakerConfig{Failures: 0.1, Calls: 2}, Retry: RetryAtOnce})
	c := f.call(true, time.Second)
	f.pass(time.Millisecond)
	f.reject(f.last(), 0, 0)
	f.pass(time.Millisecond)
	f.want(c, OutcomeRejected, 2) // the breaker opened: its next attempt was not made
	if f.guard.Breaker() != client.BreakerOpen {
		t.Error(f.guard.Breaker())
	}
	f.want(f.call(true, time.Second), OutcomeBreakerOpen, 1)
	f.end()

	f = guarded(t, client.GuardConfig{Throttle: client.ThrottleConfig{K: 2, Calls: 1}})
	throttled := 0
	for range 200 {
		c := f.call(false, time.Second)
		f.pass(10 * time.Microsecond)
		if c.Outcome == OutcomeThrottled {
			throttled++
			continue
		}
		f.reject(f.last(), 0, 0)
	}
	if throttled < 100 || uint64(throttled) != f.client.d.stats.Throttled {
		t.Errorf("%d of 200 throttled, %+v", throttled, f.client.d.stats.AttemptCounts)
	}
	f.end()
}

// NoWait: who does not want to wait for a credit is told at once, and the server is asked for one all the same.
func TestNoWait(t *testing.T) {
	w, p, n, s := pretend(t)
	first := n.call(s, 1, 0)
	p.settle()
	p.accept(s, 41, 1)
	p.say(&wire.Reply{Session: s.local, Number: 0, Limit: 1, Seq: 1})
	w.run(w.now.Add(time.Second))
	if first.Outcome != OutcomeOK {
		t.Fatal(first.Outcome)
	}
	c := &call{}
	c.NoWait = true
	n.submit(c, s, 2, w.now.Add(time.Second))
	if c.done != 1 || c.Outcome != OutcomeExpired || s.Waiting() != 0 {
		t.Errorf("%d outcomes, %v", c.done, c.Outcome)
	}
	w.run(w.now.Add(time.Millisecond))
	probe, err := wire.ParseProbe(p.last(wire.TypeProbe).Raw)
	if err != nil || probe.Demand != 1 {
		t.Errorf("%+v", probe)
	}
	p.say(&wire.CreditUpdate{Session: s.local, Limit: 2, Seq: 2})
	c = &call{}
	c.NoWait = true
	n.submit(c, s, 3, w.now.Add(time.Second))
	if c.done != 0 || s.Outstanding() != 1 {
		t.Errorf("with a credit: %v", c.Outcome)
	}
}

// Calls wait by criticality, then by deadline; what says nothing is critical.
func TestCriticalCallsGoFirst(t *testing.T) {
	w, p, n, s := pretend(t)
	n.call(s, 100, 0)
	p.settle()
	p.accept(s, 41, 1)
	for i, x := range []struct {
		level    wire.Criticality
		deadline time.Duration
	}{{wire.Sheddable, 1}, {0, 3}, {wire.CriticalPlus, 9}, {wire.Critical, 2}, {wire.SheddablePlus, 1}, {wire.CriticalPlus, 8}} {
		c := &call{}
		c.Criticality = x.level
		n.submit(c, s, uint64(i), w.now.Add(x.deadline*time.Second))
	}
	p.say(&wire.Reply{Session: s.local, Number: 0, Limit: 7, Seq: 2})
	p.settle()
	var order []uint64
	var levels []wire.Criticality
	for _, m := range p.all(wire.TypeRequest) {
		r, _ := wire.ParseRequest(m.Raw)
		order, levels = append(order, mark(r.Payload)), append(levels, r.Criticality)
	}
	if want := []uint64{5, 2, 3, 1, 4, 0}; !slices.Equal(order, want) || levels[0] != wire.CriticalPlus || levels[3] != 0 {
		t.Errorf("sent in the order %v, levels %v", order, levels)
	}
}

// TestGuardedWeather plays bad networks, restarts and partitions with guards of every kind: one outcome for each call; no more runs than attempts, and one for what is not
// repeatable; nothing that ran ends as if it had not; the budget's books balance, and nothing is left anywhere.
func TestGuardedWeather(t *testing.T) {
	runs := 40
	if small() {
		runs = 6
	}
	first := seedtest.Seed(t)
	var all client.AttemptCounts
	for i := range uint64(runs) {
		w := newNetwork(t, first+i)
		x := weather{
			loss: w.rng.Float64() * 0.2, duplicate: w.rng.Float64() * 0.2, reorder: w.rng.Float64() * 0.5,
			load: 0.2 + 3*w.rng.Float64(), length: 5 * time.Millisecond, deadline: time.Duration(200+w.rng.IntN(3000)) * time.Microsecond,
			restart: w.rng.IntN(3) == 0, partition: w.rng.IntN(3) == 0,
		}
		x.guard = &client.GuardConfig{
			Retry: client.RetryConfig{
				Refused: w.rng.IntN(2) == 0, Attempts: 1 + w.rng.IntN(4), Budget: client.BudgetConfig{Ratio: w.rng.Float64()},
				Timeout: time.Duration(w.rng.IntN(2)*(50+w.rng.IntN(500))) * time.Microsecond, Backoff: client.BackoffConfig{Base: 100 * time.Microsecond},
			},
			Hedge:    client.HedgeConfig{Percentile: float64(w.rng.IntN(2)) * 0.5},
			Throttle: client.ThrottleConfig{K: float64(w.rng.IntN(2)) * 1.5, Window: 2 * time.Millisecond, Probe: 100 * time.Microsecond},
			Breaker:  client.BreakerConfig{Failures: float64(w.rng.IntN(2)) * 0.7, Window: 2 * time.Millisecond, Wait: time.Millisecond, WaitMax: 2 * time.Millisecond},
		}
		k := newSoak(t, first+i, x)
		k.run()
		k.check(t)
		sent := client.AttemptCounts{}
		for _, n := range k.clients {
			n.d.quiet(t)
			sent.Add(&n.d.stats.AttemptCounts)
		}
		paid := int64(0)
		for _, g := range k.guards {
			b := g.Budget()
			paid += b.Taken - b.Returned
			if b.Balance != b.Made-b.Taken+b.Returned-b.Lost {
				t.Errorf("%+v does not balance", b)
			}
		}
		if paid != int64(sent.Retries+sent.Hedges)*1_000_000 {
			t.Errorf("%d paid for %+v", paid, sent)
		}
		all.Add(&sent)
		if t.Failed() {
			t.Fatalf("TEST_SEED=%d, %+v, %+v", first+i, x, *x.guard)
		}
	}
	if t.Logf("%+v", all); all.Retries == 0 {
		t.Errorf("something never happened: %+v", all)
	}
}

// The clock jumps by an hour, or back, between attempts: every call has its outcome.
func TestGuardedCallsWhenTheClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -500 * time.Millisecond} {
		f := guarded(t, client.GuardConfig{})
		c := f.call(true, 2*time.Second)
		f.pass(time.Millisecond)
		f.reject(f.last(), 0, 10*time.Millisecond)
		f.w.now = f.w.now.Add(jump)
		f.client.wakeAt = 0
		f.client.turn()
		for range 300 {
			f.pass(10 * time.Millisecond)
			f.client.turn()
		}
		if c.done != 1 {
			t.Errorf("a jump by %v: %d outcomes", jump, c.done)
		}
		if jump > 0 && c.Outcome != OutcomeRejected { // too late for the next attempt
			t.Errorf("a jump by %v: %v", jump, c.Outcome)
		}
	}
}
