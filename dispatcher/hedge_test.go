package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/wire"
)

// hedging is a guard that has seen enough answers to hedge after 1 ms.
func hedging(t *testing.T) *fixture {
	f := guarded(t, client.GuardConfig{Hedge: client.HedgeConfig{Percentile: 0.95, Min: time.Millisecond, Max: time.Millisecond}})
	for range 50 {
		c := f.call(true, time.Second)
		f.pass(10 * time.Microsecond)
		f.reply(f.last())
		f.want(c, OutcomeOK, 1)
	}
	return f
}

// The hedge is answered first: the call has its answer, the server is told that nobody waits for the other, whose answer belongs to nobody.
func TestHedgeWins(t *testing.T) {
	f := hedging(t)
	c := f.call(true, time.Second)
	f.pass(990 * time.Microsecond)
	first := f.last()
	f.pass(100 * time.Microsecond)
	second := f.last()
	if second.Number == first.Number || second.Slot == first.Slot || second.Attempt != 1 || mark(second.Payload) != f.marks {
		t.Fatalf("%+v after %+v", second, first)
	}
	f.reply(second)
	f.want(c, OutcomeOK, 2)
	f.pass(time.Millisecond)
	x, err := wire.ParseCancel(f.p.last(wire.TypeCancel).Raw)
	if err != nil || x.Number != first.Number || mark(c.Reply) != f.marks {
		t.Errorf("%+v, reply to %d", x, mark(c.Reply))
	}
	f.reply(first)
	f.want(c, OutcomeOK, 2)
	if s := f.client.d.stats; s.Hedges != 1 || s.HedgesWon != 1 {
		t.Errorf("%+v", s.AttemptCounts)
	}
	f.end()
}

// The first one is answered first, or cancelled, or its session closed: the hedge is broken off.
func TestHedgeLoses(t *testing.T) {
	for name, end := range map[string]func(*fixture, *call, wire.Request) Outcome{
		"answer": func(f *fixture, _ *call, first wire.Request) Outcome {
			f.reply(first)
			return OutcomeOK
		},
		"cancel": func(f *fixture, c *call, _ wire.Request) Outcome {
			f.client.d.Cancel(f.w.now, &c.Call)
			return OutcomeCancelled
		},
		"close": func(f *fixture, _ *call, _ wire.Request) Outcome {
			f.client.d.CloseSession(f.w.now, f.s)
			return OutcomeClosed
		},
		"deadline": func(f *fixture, _ *call, _ wire.Request) Outcome {
			f.pass(time.Second)
			return OutcomeDeadline
		},
		"server gone": func(f *fixture, _ *call, _ wire.Request) Outcome {
			f.p.say(&wire.Gone{Connection: f.p.local, Session: 41})
			f.client.d.CloseSession(f.w.now, f.s) // or it is tried again
			return OutcomePeerLost
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := hedging(t)
			f.T = t
			c := f.call(true, 100*time.Millisecond)
			f.pass(900 * time.Microsecond)
			first := f.last()
			f.pass(200 * time.Microsecond)
			if f.last().Number == first.Number {
				t.Fatal("no hedge")
			}
			o := end(f, c, first)
			if name == "server gone" {
				o = c.Outcome // closed, or lost: both attempts were under way
				if o != OutcomeClosed && o != OutcomePeerLost {
					t.Errorf("%v", o)
				}
				f.want(c, o, 3) // the third one was to come
				return
			}
			f.want(c, o, 2)
			f.end()
		})
	}
}

// Both fail: the call waits for the second failure, and is tried again then.
func TestBothAttemptsFail(t *testing.T) {
	f := hedging(t)
	c := f.call(true, time.Second)
	f.pass(900 * time.Microsecond)
	first := f.last()
	f.pass(200 * time.Microsecond)
	second := f.last()
	f.reject(first, 0, 0)
	f.want(c, OutcomeNone, 2)
	f.reject(second, 0, 0)
	f.pass(10 * time.Millisecond)
	third := f.last()
	if third.Number == second.Number || third.Attempt != 2 {
		t.Fatalf("%+v", third)
	}
	f.reply(third)
	f.want(c, OutcomeOK, 3)
	f.end()
}

// The first one fails and the call waits for its hedge alone. It can be cancelled and closed there.
func TestWaitingForTheHedgeAlone(t *testing.T) {
	for _, o := range []Outcome{OutcomeOK, OutcomeCancelled, OutcomeClosed, OutcomeRejected} {
		f := hedging(t)
		c := f.call(true, time.Second)
		f.pass(900 * time.Microsecond)
		first := f.last()
		f.pass(200 * time.Microsecond)
		second := f.last()
		f.reject(first, wire.AdviceDoNotRetry, 0)
		f.want(c, OutcomeNone, 2)
		switch o {
		case OutcomeOK:
			f.reply(second)
		case OutcomeCancelled:
			f.client.d.Cancel(f.w.now, &c.Call)
		case OutcomeClosed:
			f.client.d.CloseSession(f.w.now, f.s)
			if c.Outcome == OutcomeRejected { // the hedge was closed first: then the first one's outcome is the last
				o = OutcomeRejected
			}
		case OutcomeRejected:
			f.reject(second, 0, 0)
		}
		f.want(c, o, 2)
		f.end()
	}
}

// A hedge takes a credit that nobody waits for, or none: where there is none the server is busy.
func TestNoHedgeWithoutCredit(t *testing.T) {
	f := hedging(t)
	c := f.call(true, time.Second)
	f.pass(100 * time.Microsecond)
	f.p.say(&wire.CreditUpdate{Session: f.s.local, Limit: wire.Number(f.s.Credit().Next), Seq: 2})
	sent := len(f.requests())
	f.pass(10 * time.Millisecond)
	if len(f.requests()) != sent || f.client.d.stats.Hedges != 0 {
		t.Error("a hedge without a credit")
	}
	f.reply(f.last())
	f.want(c, OutcomeOK, 1)
	f.end()
}

// A hedge may go to another session, here of another server. The loser is told there, too; and it is of no use when it is closed.
func TestHedgeAtTheAlternate(t *testing.T) {
	for _, closes := range []bool{false, true} {
		f := hedging(t)
		other := f.w.node(7, Config{TrustedNetwork: true})
		other.serve(10*time.Microsecond, 80*time.Microsecond, nil)
		alternate, err := f.client.d.Open(f.w.now, other.addr)
		if err != nil {
			t.Fatal(err)
		}
		f.s.SetAlternate(alternate)
		c := f.call(true, time.Second)
		if closes {
			f.pass(1010 * time.Microsecond)
			f.client.d.CloseSession(f.w.now, alternate)
			f.want(c, OutcomeNone, 2)
			f.reply(f.last())
		} else {
			f.pass(2 * time.Millisecond)
			f.p.last(wire.TypeCancel)
			if other.ran[f.marks] != 1 {
				t.Error("the other server did not run it")
			}
		}
		f.want(c, OutcomeOK, 2)
		f.end()
	}
}
