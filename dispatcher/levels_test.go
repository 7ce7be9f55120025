package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// While no call says how much it matters, ranks are drawn from all; then each level has its quarter, and a few of the lower ones go as the highest.
func TestGrade(t *testing.T) {
	const calls = 127 * 100
	var i invitation
	for call := range uint64(calls) {
		if level, rank := i.grade(call, wire.CriticalityUnset); level != wire.Critical || rank != rankOf(call) {
			t.Fatalf("call %d: level %d, rank %d", call, level, rank)
		}
	}
	for _, c := range []struct {
		said, level wire.Criticality
		from, to    uint8
		favoured    bool
	}{
		{wire.CriticalPlus, wire.CriticalPlus, 1, 32, false},
		{wire.Critical, wire.Critical, 33, 64, false},
		{wire.CriticalityUnset, wire.Critical, 33, 64, false},
		{wire.SheddablePlus, wire.SheddablePlus, 65, 96, true},
		{wire.Sheddable, wire.Sheddable, 97, credit.InvitedAll, true},
	} {
		favoured, low, high := 0, uint8(255), uint8(0)
		for call := range uint64(calls) {
			level, rank := i.grade(call, c.said)
			switch {
			case c.favoured && level == wire.CriticalPlus && rank >= 1 && rank <= levelRanks:
				favoured++
			case level == c.level:
				low, high = min(low, rank), max(high, rank)
			default:
				t.Fatalf("level %d: level %d, rank %d", c.said, level, rank)
			}
		}
		if low != c.from || high != c.to {
			t.Errorf("level %d: ranks from %d to %d, want %d to %d", c.said, low, high, c.from, c.to)
		}
		if c.favoured != (favoured > 0) || c.favoured && (favoured < 4*95 || favoured > 4*105) { // four ranks of 127, as even as in TestRanksAreEven
			t.Errorf("level %d: %d of %d are favoured", c.said, favoured, calls)
		}
	}
}

// A critical call keeps its whole slack where a queue stands at the server; one that says less, or nothing, does not.
func TestCriticalCallsWaitLonger(t *testing.T) {
	const target = 80 * time.Microsecond
	s := &Session{conn: &dialed{Conn: &session.Conn{}, target: target}}
	for range 2000 {
		s.conn.standing.Sample(target, target)
	}
	made := clock.Time(1000)
	deadline := made.Add(target + 100*time.Microsecond)
	for said, want := range map[wire.Criticality]time.Duration{
		wire.CriticalityUnset: 20 * time.Microsecond, wire.Sheddable: 20 * time.Microsecond, wire.SheddablePlus: 20 * time.Microsecond,
		wire.Critical: 100 * time.Microsecond, wire.CriticalPlus: 100 * time.Microsecond,
	} {
		if got := s.expiry(&Call{submitted: made, Deadline: deadline, Criticality: said}).Sub(made); got != want {
			t.Errorf("level %d waits for %v, want %v", said, got, want)
		}
	}
}

// withCredits is a session with credits for five calls, at a server that has told to leave the lower half of the levels out.
func withCredits(t *testing.T) (w *network, c *node, s *Session) {
	t.Helper()
	w, _, c, s = invited(t, newHost(levelRanks*2))
	s.gate.Apply(w.now, s.gate.Next()+5, s.gate.Seq())
	if s.gate.Apply(w.now, s.gate.Next()+5, s.gate.Seq()+1); s.gate.Unused() != 5 {
		t.Fatalf("%d credits", s.gate.Unused())
	}
	s.conn.share, s.conn.told, s.conn.levelled = levelRanks*2, w.now, true
	return w, c, s
}

// submitAs makes a call of a level that is not one of the favoured.
func submitAs(n *node, s *Session, said wire.Criticality) *call {
	for rankOf(n.d.stats.Calls)%favouredEach == 0 {
		n.d.stats.Calls++
	}
	k := &call{}
	k.Criticality = said
	n.submit(k, s, n.d.stats.Calls, 0)
	return k
}

// A session that has credits spends none on levels that the share leaves out, until it grows; higher ones pass.
func TestLowerLevelsYield(t *testing.T) {
	_, c, s := withCredits(t)
	low := submitAs(c, s, wire.Sheddable)
	if low.state != callQueued || s.heldRank != low.rank || s.gate.Unused() != 5 {
		t.Fatalf("state %d, held at %d, rank %d, %d credits", low.state, s.heldRank, low.rank, s.gate.Unused())
	}
	critical := submitAs(c, s, wire.Critical)
	if critical.state != callSent || critical.unasked || low.state != callQueued || s.gate.Unused() != 4 {
		t.Fatalf("states %d and %d, %d credits", critical.state, low.state, s.gate.Unused())
	}
	s.conn.share = credit.InvitedAll
	c.d.release(s.conn.Conn)
	if low.state != callSent || low.unasked || s.heldRank != 0 || s.gate.Unused() != 3 {
		t.Fatalf("state %d, held at %d, %d credits", low.state, s.heldRank, s.gate.Unused())
	}
}

// Calls of the highest level go without a credit beside three others of their session, if they are invited; other calls wait for the answers.
func TestHighestGoBeside(t *testing.T) {
	w, server, c, s := invited(t, newHost(levelRanks))
	s.conn.share, s.conn.told = levelRanks, w.now
	var all []*call
	for range credit.InvitedBeside + 2 {
		all = append(all, submitAs(c, s, wire.CriticalPlus))
	}
	low := submitAs(c, s, wire.Critical)
	for i, k := range all {
		if sent := k.state == callSent && k.unasked; sent != (i <= credit.InvitedBeside) {
			t.Errorf("call %d: state %d", i, k.state)
		}
	}
	w.soon(12 * time.Microsecond) // they are at the server, and so is the first answer
	if n := server.d.Snapshot(); n.Unasked != credit.InvitedBeside+1 || n.Refused != 0 || low.state != callQueued {
		t.Errorf("%d without a credit, %d refused, state %d", n.Unasked, n.Refused, low.state)
	}
	w.soon(time.Second)
	for i, k := range append(all, low) {
		if k.Outcome != OutcomeOK {
			t.Errorf("call %d: %v", i, k.Outcome)
		}
	}
	s.conn.share = levelRanks / 2 // of the highest level some are left out
	first := submitAs(c, s, wire.CriticalPlus)
	for range 10 {
		if k := submitAs(c, s, wire.CriticalPlus); first.state == callSent && k.state == callSent && k.rank > s.conn.share {
			t.Errorf("rank %d went beside another, of %d", k.rank, s.conn.share)
		}
	}
	w.soon(time.Second)
	audit(t, c, server)
}

// The server lets no number run that is further back than those that may be beside. So while the first of them is lost, no more go than it may still be beside: it would never be answered.
func TestBesideVoidsNothing(t *testing.T) {
	w, server, c, s := invited(t, newHost(levelRanks))
	s.conn.share, s.conn.told = levelRanks, w.now
	w.loss = 1
	first := submitAs(c, s, wire.CriticalPlus)
	w.soon(us)
	w.loss = 0
	for range credit.InvitedBeside {
		k := submitAs(c, s, wire.CriticalPlus)
		if w.soon(40 * us); k.Outcome != OutcomeOK || first.state != callSent || first.Retransmissions > 0 {
			t.Fatalf("beside: %v; the first: state %d, repeated %d times", k.Outcome, first.state, first.Retransmissions)
		}
	}
	if s.gate.CanSend() {
		t.Fatal("there is a credit")
	}
	last := submitAs(c, s, wire.CriticalPlus)
	if last.state != callQueued {
		t.Errorf("one more went, and its state is %d", last.state)
	}
	w.soon(time.Second)
	if first.Outcome != OutcomeOK || last.Outcome != OutcomeOK {
		t.Errorf("the first: %v, the last: %v", first.Outcome, last.Outcome)
	}
	audit(t, c, server)
}

// Where no call says how much it matters, or the server invites nobody, credits are spent on whatever comes.
func TestNothingYieldsWithoutLevels(t *testing.T) {
	for name, set := range map[string]func(*Session){
		"no levels":  func(s *Session) { s.conn.levelled, s.conn.share = false, 1 },
		"no inviter": func(s *Session) { s.conn.share = 0 },
	} {
		_, c, s := withCredits(t)
		set(s)
		said := wire.Sheddable
		if !s.conn.levelled {
			said = wire.CriticalityUnset
		}
		if k := submitAs(c, s, said); k.state != callSent || s.gate.Unused() != 4 {
			t.Errorf("%s: state %d, %d credits", name, k.state, s.gate.Unused())
		}
	}
}

// Who yields and hears nothing any more looks again by itself.
func TestYieldingEnds(t *testing.T) {
	w, c, s := withCredits(t)
	k := submitAs(c, s, wire.Sheddable)
	if k.state != callQueued {
		t.Fatalf("state %d", k.state)
	}
	w.soon(client.ProbeTimeMax - 10*time.Microsecond)
	if k.state != callQueued {
		t.Errorf("state %d, early", k.state)
	}
	w.soon(time.Millisecond)
	if k.state == callQueued {
		t.Error("it waits for ever")
	}
}

// One in so many calls of a lower level goes at once, as critical plus.
func TestFavouredCalls(t *testing.T) {
	_, c, s := withCredits(t)
	for rankOf(c.d.stats.Calls)%favouredEach != 0 {
		c.d.stats.Calls++
	}
	k := &call{}
	k.Criticality = wire.Sheddable
	if c.submit(k, s, 1, 0); k.state != callSent || k.level != wire.CriticalPlus {
		t.Errorf("state %d, level %d", k.state, k.level)
	}
}

// A lower level whose turn it is among those of its session does not hold the higher ones up.
func TestTurnIsNotHeld(t *testing.T) {
	_, c, s := withCredits(t)
	low := submitAs(c, s, wire.Sheddable)
	for i := range 49 {
		s.gate.Apply(c.w.now, s.gate.Next()+1, s.gate.Seq()+1)
		if k := submitAs(c, s, wire.CriticalPlus); k.state != callSent || low.state != callQueued {
			t.Fatalf("call %d: states %d and %d", i, k.state, low.state)
		}
	}
	s.gate.Apply(c.w.now, s.gate.Next()+2, s.gate.Seq()+1)
	if k := submitAs(c, s, wire.CriticalPlus); k.state != callSent || low.state != callSent {
		t.Fatalf("states %d and %d", k.state, low.state)
	}
}
