package session

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

type request struct{ id int }

// slowSlots is the obvious twin of Slots: a map of what was seen last.
type slowSlots struct {
	seen map[wire.Slot]slot[request]
}

func (s *slowSlots) lookup(n wire.Number, at wire.Slot) (State, *request) {
	e, ok := s.seen[at]
	switch {
	case !ok || n >= e.next:
		return Fresh, nil
	case n+1 == e.next:
		return e.state, e.req
	}
	return Stale, nil
}

func TestSlotsAgainstTwin(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 60 {
		table, twin := &Slots[request]{}, &slowSlots{map[wire.Slot]slot[request]{}}
		slots, reach := 1+rng.IntN(40), 1+rng.IntN(200)
		for step := range 2000 {
			n, s := wire.Number(rng.IntN(reach)), wire.Slot(rng.IntN(slots))
			before := twin.seen[s]
			state, req := table.Lookup(n, s)
			if ws, wr := twin.lookup(n, s); state != ws || req != wr {
				t.Fatalf("step %d: %d on %d is %d, want %d", step, n, s, state, ws)
			}
			if state == Answered && !bytes.Equal(table.Kept(s), before.reply) {
				t.Fatalf("step %d: kept %q, want %q", step, table.Kept(s), before.reply)
			}
			if state == Rejected && table.Refused(0, s) != (Refusal{before.reason, before.advice, 0}) {
				t.Fatalf("step %d: kept %+v, want %+v", step, table.Refused(0, s), before)
			}
			switch rng.IntN(20) {
			default:
				if state == Fresh {
					r := &request{step}
					twin.seen[s] = slot[request]{next: n + 1, state: Pending, req: r}
					if table.Begin(n, s, r) != before.req {
						t.Fatal("the wrong request was pushed off")
					}
				}
			case 0, 1:
				if state == Fresh {
					r := Refusal{Reason: wire.RejectReason(1 + rng.IntN(8)), Advice: wire.Advice(rng.IntN(2))}
					twin.seen[s] = slot[request]{next: n + 1, state: Rejected, reason: r.Reason, advice: r.Advice}
					if table.Reject(0, n, s, r) != before.req {
						t.Fatal("the wrong request was pushed off")
					}
				}
			case 2, 3, 4, 5, 6:
				kept := table.Answer(n, s)
				if (kept != nil) != (state == Pending) {
					t.Fatalf("answered %d on %d in state %d", n, s, state)
				}
				if state == Pending {
					answer := fmt.Appendf(nil, "answer %d", step)
					*kept = append((*kept)[:0], answer...)
					before.state, before.req, before.reply = Answered, nil, answer
					twin.seen[s] = before
				}
			case 7:
				checkNext(t, table, twin)
			case 8:
				if rng.IntN(10) == 0 {
					table.Clear()
					clear(twin.seen)
				}
			}
			checkLive(t, table, twin)
		}
	}
}

func checkNext(t *testing.T, table *Slots[request], twin *slowSlots) {
	next := wire.Number(0)
	for _, e := range twin.seen {
		next = max(next, e.next)
	}
	if got := table.Next(); got != next {
		t.Fatalf("next %d, want %d", got, next)
	}
}

func checkLive(t *testing.T, table *Slots[request], twin *slowSlots) {
	live, pending := 0, map[*request]bool{}
	for _, e := range twin.seen {
		if e.req != nil {
			live++
		}
		if e.state == Pending {
			pending[e.req] = true
		}
	}
	table.Each(func(r *request) {
		if !pending[r] {
			t.Fatal("not pending, or twice")
		}
		delete(pending, r)
	})
	if table.Live() != live || len(pending) != 0 {
		t.Fatalf("live %d, want %d; %d pending not visited", table.Live(), live, len(pending))
	}
}

func TestSlotsGrowth(t *testing.T) {
	table := &Slots[request]{}
	table.Begin(0, 0, &request{})
	if len(table.entries) != 1 {
		t.Errorf("%d places for one request", len(table.entries))
	}
	table.Begin(0, 1, &request{})
	if len(table.entries) != slotsMin || table.Live() != 2 || table.own[0].req != nil {
		t.Errorf("%d places for two requests, of which %d live", len(table.entries), table.Live())
	}
	table.Begin(1, SlotsMax-1, &request{})
	if len(table.entries) != SlotsMax {
		t.Errorf("%d places", len(table.entries))
	}
	table.Clear()
	if table.Begin(0, 5, &request{}) != nil || table.Live() != 1 || cap(table.entries) != SlotsMax {
		t.Error("a cleared table is not empty, or its memory is gone")
	}
	if s, _ := table.Lookup(0, SlotsMax-1); s != Fresh {
		t.Error("something is left of the session before")
	}
}

// Who asks again is told what is left of the wait, to 8 us, and nothing when it is over; also where the kept instant wraps.
func TestRefusedAgain(t *testing.T) {
	for _, start := range []clock.Time{1, 1<<(32+untilShift) - 1<<20, 1<<62 - 1<<40} {
		table := &Slots[request]{}
		said := Refusal{wire.RejectRateLimited, wire.AdviceNone, 500 * time.Millisecond}
		table.Reject(start, 7, 3, said)
		for _, after := range []time.Duration{0, time.Microsecond, 100 * time.Millisecond, 499 * time.Millisecond, 501 * time.Millisecond, time.Hour} {
			got, want := table.Refused(start.Add(after), 3), max(said.RetryAfter-after, 0)
			if d := (got.RetryAfter - want).Abs(); got.Reason != said.Reason || got.Advice != said.Advice || d > 1<<untilShift || want == 0 && got.RetryAfter != 0 {
				t.Errorf("from %d, after %v: %+v, want %v", start, after, got, want)
			}
		}
	}
}

// slowOutstanding is the obvious twin of Outstanding.
type slowOutstanding struct {
	calls map[wire.Slot]*request
	at    map[*request]wire.Number
}

func TestOutstandingAgainstTwin(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 40 {
		var o Outstanding[request]
		limit := 1 + rng.IntN(100)
		o.SetLimit(limit)
		twin := slowOutstanding{map[wire.Slot]*request{}, map[*request]wire.Number{}}
		number := wire.Number(rng.Uint64())
		for range 3000 {
			switch rng.IntN(4) {
			case 0, 1:
				if o.Full() {
					break
				}
				number++
				r := &request{}
				lowest := wire.Slot(0)
				for twin.calls[lowest] != nil {
					lowest++
				}
				if s := o.Begin(number, r); s != lowest {
					t.Fatalf("slot %d, the lowest free one is %d", s, lowest)
				}
				twin.calls[lowest], twin.at[r] = r, number
			case 2:
				s := wire.Slot(rng.IntN(limit + 3))
				if r := twin.calls[s]; r != nil {
					if o.Find(twin.at[r], s) != r || o.Find(twin.at[r]+1, s) != nil || o.Find(twin.at[r]-1, s) != nil {
						t.Fatal("the wrong call")
					}
					delete(twin.at, r)
				}
				o.End(s)
				o.End(s) // twice is once
				delete(twin.calls, s)
			case 3:
				limit = 1 + rng.IntN(100)
				o.SetLimit(limit)
			}
			if o.Len() != len(twin.calls) || o.Full() != (len(twin.calls) >= limit) {
				t.Fatalf("%d outstanding, want %d; full %v at limit %d", o.Len(), len(twin.calls), o.Full(), limit)
			}
		}
		o.Each(func(r *request) {
			if _, ok := twin.at[r]; !ok {
				t.Fatal("visited twice, or not outstanding")
			}
			delete(twin.at, r)
		})
		if len(twin.at) != 0 {
			t.Fatal("not visited")
		}
	}
}

func TestOutstandingBound(t *testing.T) {
	var o Outstanding[request]
	o.SetLimit(1 << 20)
	for n := range SlotsMax {
		if o.Full() {
			t.Fatalf("full with %d", n)
		}
		o.Begin(wire.Number(n), &request{})
	}
	if !o.Full() {
		t.Fatal("more slots than there are")
	}
	if o.Find(0, SlotsMax) != nil || o.Find(5, 4) != nil {
		t.Error("found what is not there")
	}
	o.End(SlotsMax)
	defer func() {
		if recover() == nil {
			t.Error("a slot out of nothing")
		}
	}()
	o.Begin(1, &request{})
}
