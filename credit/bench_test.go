package credit

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// benched is a ledger with this many sessions, each of which has had one answer.
func benched(sessions int) (*Ledger, []Session) {
	l := NewLedger(Config{MaxSessions: sessions}, NewBreakwater(BreakwaterConfig{Workers: 10}))
	all := make([]Session, sessions)
	for i := range all {
		s, err := l.Register(1)
		if err != nil {
			panic(err)
		}
		l.Heard(1, s, 1, 0, 1, true)
		l.Arrive(1, s, 0)
		l.Answer(1, s, Success)
		all[i] = s
	}
	return l, all
}

// turn is everything that one request costs: heard, arrived, answered, and the update that is due now and then.
func turn(l *Ledger, s Session, now clock.Time) {
	limit, seq := l.Limit(s)
	next := l.slot(s).sent + 1
	if next > limit {
		l.Probe(now, s, next-1, seq, 1, true)
		l.PopDrained(now)
		return
	}
	l.Heard(now, s, next, seq, 1, true)
	l.Arrive(now, s, next-1)
	l.Answer(now, s, Success)
	l.Update(now, Signal{})
	l.Sweep(now, 2)
}

func TestAllocatesNothing(t *testing.T) {
	l, all := benched(100)
	now := clock.Time(1)
	allocs := testing.AllocsPerRun(2000, func() {
		now = now.Add(3 * us)
		s := all[int(now)%len(all)]
		turn(l, s, now)
		l.Probe(now, s, 1, 1, 1, true)
		l.PopDrained(now)
		l.Deregister(now, s)
		if s2, err := l.Register(now); err != nil || s2 != s {
			t.Fatal(s2, err)
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations", allocs)
	}
}

func benchmarkTurn(b *testing.B, sessions int) {
	l, all := benched(sessions)
	b.ReportAllocs()
	now, at := clock.Time(1), 0
	for b.Loop() {
		now += 1000
		if at += 7919; at >= len(all) {
			at %= len(all)
		}
		turn(l, all[at], now)
	}
}

// A turn is five events: divide by five for the cost of one.
func BenchmarkTurn100(b *testing.B)  { benchmarkTurn(b, 100) }
func BenchmarkTurn10k(b *testing.B)  { benchmarkTurn(b, 10_000) }
func BenchmarkTurn500k(b *testing.B) { benchmarkTurn(b, 500_000) }

func BenchmarkHeard(b *testing.B) {
	l, all := benched(100)
	b.ReportAllocs()
	now := clock.Time(1)
	for b.Loop() {
		now++
		l.Heard(now, all[int(now)%100], 1, 1, uint16(now)&3, true)
	}
}

// An arrival and an answer are a pair: neither can be had without the other.
func BenchmarkArriveAnswer(b *testing.B) {
	l, all := benched(100)
	b.ReportAllocs()
	now := clock.Time(1)
	for b.Loop() {
		now++
		s := all[int(now)%100]
		l.Arrive(now, s, 0)
		l.Answer(now, s, Success)
	}
}

func BenchmarkProbePop(b *testing.B) {
	l, all := benched(100)
	l.wakes = 1 << 60
	s := all[0]
	b.ReportAllocs()
	for b.Loop() {
		limit, seq := l.Limit(s)
		l.Probe(1, s, limit, seq, 1, true)
		l.PopDrained(1)
	}
}

func BenchmarkUpdate(b *testing.B) {
	l, _ := benched(100)
	b.ReportAllocs()
	now := clock.Time(1)
	for b.Loop() {
		now = now.Add(periodMin)
		l.Update(now, Signal{Delay: DefaultTargetDelay * 11 / 10})
	}
}

func BenchmarkSweep(b *testing.B) {
	l, _ := benched(10_000)
	b.ReportAllocs()
	for b.Loop() {
		l.Sweep(1, 1)
	}
}
