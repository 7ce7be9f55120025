package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// A call that was sent and had no answer by its deadline says that the server takes longer than it tells: calls that wait give up the sooner, until
// fifty were answered in time. One that nobody sent says nothing.
func TestLateCallsShortenTheWait(t *testing.T) {
	const deadline = 150 * time.Microsecond
	w, _, c, s := invited(t, newHost(credit.InvitedAll))
	patience := func() time.Duration {
		made := clock.Time(1_000_000)
		return s.expiry(&Call{submitted: made, Deadline: made.Add(deadline)}).Sub(made)
	}
	call := func(m uint64, slow time.Duration, want Outcome) {
		t.Helper()
		w.delay += slow
		k := c.call(s, m, w.now.Add(deadline))
		w.soon(10 * time.Millisecond)
		if w.delay -= slow; k.Outcome != want {
			t.Fatalf("call %d: %v, want %v", m, k.Outcome, want)
		}
	}
	call(1, 0, OutcomeOK)
	before := patience()
	call(2, 100*time.Microsecond, OutcomeDeadline)
	step := s.conn.target / 32
	if after := patience(); s.conn.late.By() != step || before-after < step {
		t.Errorf("a late call changes the wait from %v to %v, and %v is taken off", before, after, s.conn.late.By())
	}
	for i := range uint64(55) {
		call(3+i, 0, OutcomeOK)
	}
	if after := patience(); s.conn.late.By() != 0 || before-after > time.Microsecond {
		t.Errorf("55 answers later calls wait for %v, and at first %v", after, before)
	}
	s.conn.share = 0
	s.gate.Apply(w.now, s.gate.Next()+1, s.gate.Seq()+1)
	w.cut[s.conn.Peer] = true
	sent, unsent := c.call(s, 200, w.now.Add(deadline)), c.call(s, 201, w.now.Add(deadline))
	w.soon(10 * time.Millisecond)
	if sent.Outcome != OutcomeDeadline || unsent.Outcome != OutcomeExpired || s.conn.late.By() != step {
		t.Errorf("sent: %v, unsent: %v, %v is taken off instead of %v", sent.Outcome, unsent.Outcome, s.conn.late.By(), step)
	}
}

// A call that was refused for want of a credit has had its answer: that none came after it says nothing of how long the server takes.
func TestRefusedCallsAreNotLate(t *testing.T) {
	control := newHost(credit.InvitedAll)
	w, _, c, s := invited(t, control)
	control.shut = true
	k := c.call(s, 1, w.now.Add(150*time.Microsecond))
	w.soon(30 * time.Microsecond)
	if k.state != callRefused {
		t.Fatalf("state %d, and not refused", k.state)
	}
	w.soon(10 * time.Millisecond)
	if k.Outcome != OutcomeDeadline || s.conn.late.By() != 0 {
		t.Errorf("%v, %v is taken off the wait of calls to come", k.Outcome, s.conn.late.By())
	}
}

// Who knows of late calls takes less of what is invited, and all where all are.
func TestLateCallsTakeLessOfTheShare(t *testing.T) {
	control := newHost(60)
	w, _, c, s := invited(t, control)
	hear := func(m uint64) uint8 {
		t.Helper()
		k := c.call(s, m, 0)
		if w.soon(200 * time.Millisecond); k.Outcome != OutcomeOK {
			t.Fatalf("call %d: %v", m, k.Outcome)
		}
		return s.conn.share
	}
	if got := hear(1); got != 60 {
		t.Fatalf("invited are %d", got)
	}
	for range 32 {
		s.conn.late.Missed(s.conn.target)
	}
	if got := hear(2); got != 30 {
		t.Errorf("it takes %d of 60 when many are late", got)
	}
	if control.share = credit.InvitedAll; hear(3) != credit.InvitedAll {
		t.Errorf("it takes %d where all are invited", s.conn.share)
	}
}
