package dispatcher

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// invitation is the client's half of credit.Inviter: which of the calls that have no credit may be sent all the same. The sessions of a connection know
// it together. Those whose calls it leaves out are held back, by rank, until it grows.
//
// Where calls say how much they matter, each level has its quarter of the ranks. The share grows and shrinks by the delay at the server, so it settles where the server is full,
// and the levels are served in their order over all sessions. Credits know no levels: they go by demand. So a session that has some spends none on calls that the share leaves out,
// or the critical calls of others would wait for credits while its sheddable ones go.
type invitation struct {
	levelled bool          // a call has said how much it matters
	share    uint8         // ranks up to it may go; 0 = the server invites nobody
	told     clock.Time    // when that was heard, or the last scout was sent
	silence  time.Duration // that the next scout waits for
	holding  [credit.InvitedAll + 1]heldList
	ranks    [(credit.InvitedAll + 63) / 64]uint64 // a bit for each list that is not empty: rank 1 is bit 0
}

// heldList is first in, first out.
type heldList struct{ head, tail *Session }

// held is a session's place among those that are held back.
type held struct{ prev, next *Session }

const (
	// releasedMax is how many held sessions an answer sets going: what they send at most doubles in a round trip.
	releasedMax = 2
	// lastChanceMargin is the part of its slack that a call which is held back gives up: at the very end of it there is time for the average request only, and
	// its caller should know by then.
	lastChanceMargin = 8
	// scoutMin is how long a server is not heard of before a call goes all the same, to find out. Each scout doubles that, up to a lease, until all are
	// invited again. Whoever calls seldom goes by an old word as a rule, and not by scouts, or the server would have all of them.
	scoutMin = time.Millisecond
	// favouredEach is how many ranks of all have one of a level below critical go as critical plus: 4 of 127. Who is left out by level would starve else.
	favouredEach = 31
	// levelRanks is how many ranks each level has; the last has one less.
	levelRanks = (credit.InvitedAll + 1) / client.QueueLevels
)

// grade finds the level that a call counts as at the client, and its rank.
func (i *invitation) grade(call uint64, said wire.Criticality) (level wire.Criticality, rank uint8) {
	level, rank = said.Level(), rankOf(call)
	i.levelled = i.levelled || said != wire.CriticalityUnset
	if !i.levelled {
		return level, rank
	}
	if level < wire.Critical && rank%favouredEach == 0 {
		level = wire.CriticalPlus
	}
	above := uint8(wire.CriticalPlus - level)
	return level, min(above*levelRanks+1+(rank-1)/client.QueueLevels, credit.InvitedAll)
}

// yields reports whether the next call must not be sent though there is a credit: the share leaves its rank out, and with that its level.
func (s *Session) yields() bool {
	if !s.conn.levelled || s.conn.share == 0 || s.remote == 0 {
		return false
	}
	w, _ := s.waiting.Peek()
	return w.Value.level < wire.CriticalPlus && w.Value.rank > s.conn.share && !s.waiting.Turn()
}

// rankOf spreads consecutive calls evenly over the ranks (Knuth, volume 3, section 6.4).
func rankOf(call uint64) uint8 {
	const golden = 0x9e3779b97f4a7c15
	high, _ := bits.Mul64(call*golden, credit.InvitedAll)
	return uint8(high) + 1
}

// listen takes note of the level that an answer carries.
func (d *Dispatcher) listen(c *session.Conn, in inbound, level uint8) {
	at := d.caller.dialedBy(c)
	if !in.newer || at == nil {
		return
	}
	at.share, at.told = 0, d.now
	if level > wire.LevelInvitation {
		at.share = at.late.Takes(level-wire.LevelInvitation, credit.InvitedAll, at.target)
	}
	if at.share == credit.InvitedAll {
		at.silence = scoutMin
	}
}

// goes reports whether a call of that rank may be sent without a credit.
func (i *invitation) goes(now clock.Time, rank uint8) bool {
	if rank <= i.share {
		return true
	}
	if i.silence = max(i.silence, scoutMin); now.Sub(i.told) < i.silence {
		return false
	}
	i.silence = min(2*i.silence, client.DefaultLease)
	i.told = now
	return true
}

// followInvitation sends a call without a credit, if the session could get one only by asking and the call is invited. If it is not, the session is held back; and so is one
// that has a credit, and a call that yields.
func (d *Dispatcher) followInvitation(s *Session) {
	was := s.heldRank != 0
	s.conn.letGo(s)
	if s.closed || s.remote == 0 || s.conn.share == 0 || s.waiting.Len() == 0 || !d.paced(s) {
		return
	}
	w, _ := s.waiting.Peek()
	c, has := w.Value, s.gate.CanSend()
	if has && (s.out.Full() || !s.yields()) || !has && s.out.Len() > 0 && !s.beside(c) {
		return
	}
	rank := max(c.rank, 1)
	if s.guard != nil && s.guard.Breaker() != client.BreakerClosed {
		rank = 1 // the breaker lets it through to find out whether the server is back, and an old word of that server must not hold it
	}
	if s.conn.levelled && s.waiting.Turn() {
		rank = 1 // or it would hold those of higher levels back with it
	}
	if c.submitted != d.now && s.tooLate(c, d.now) { // enter has looked at a new one
		rank = credit.InvitedAll
	}
	if s.conn.goes(d.now, rank) {
		number := s.gate.TakeInvited() // spends a credit if there is one
		d.send(s, s.waiting.Pop().Value, number, !has)
		return
	}
	s.conn.hold(s, rank)
	if has { // nothing is asked that an answer could come to: it looks again by itself
		s.again = max(d.now.Add(client.ProbeTimeMax), s.conn.told.Add(s.conn.silence))
	}
	if !was {
		if !has {
			s.gate.Overloaded(d.now) // a probe now would be the question that the invitation spares the server
		}
		d.caller.timers.Arm(&c.timer, d.wake(c, s.lastChance(c)))
	}
}

// beside reports whether a call may go without a credit though the session waits for answers: one of the highest level, if it is invited. Not if it would have one void that
// was sent before: of the numbers below its own the server runs the last few only, and of those none that it has refused for want of a credit.
func (s *Session) beside(c *Call) bool {
	if c.Criticality != wire.CriticalPlus || c.rank > s.conn.share || s.refused > 0 || s.out.Len() > credit.InvitedBeside || s.out.Full() {
		return false
	}
	oldest, _ := s.out.Oldest()
	return uint64(oldest)+credit.InvitedBeside >= s.gate.Next()
}

// lastChance is when a call that is held back expires. Calls expire earlier than their deadlines say while requests stay long at the server (see
// client.ExpiresAt); one that goes only when the server is nearly idle, as held ones do in the end, need not.
func (s *Session) lastChance(c *Call) clock.Time {
	if s.limits().Expiry > 0 {
		return s.expires(c)
	}
	e := s.conn.estimates()
	at := client.ExpiresAt(c.submitted, c.Deadline, &e)
	return at.Add(-max(at.Sub(c.submitted), 0) / lastChanceMargin)
}

// release sets held sessions going that are invited now. Replies do it: who is answered has left the server, and how many are is how fast it works.
func (d *Dispatcher) release(c *session.Conn) {
	at := d.caller.dialedBy(c)
	if at == nil {
		return
	}
	for range releasedMax {
		rank := at.lowest()
		if rank == 0 || rank > at.share {
			return
		}
		d.pump(at.holding[rank].head)
	}
}

// lowest is the lowest rank of which a session is held; 0 = none.
func (i *invitation) lowest() uint8 {
	for w, b := range i.ranks {
		if b != 0 {
			return uint8(64*w + bits.TrailingZeros64(b) + 1)
		}
	}
	return 0
}

func (i *invitation) hold(s *Session, rank uint8) {
	l := &i.holding[rank]
	s.heldRank, s.held = rank, held{prev: l.tail}
	if l.tail != nil {
		l.tail.held.next = s
	} else {
		l.head = s
		i.ranks[(rank-1)/64] |= 1 << ((rank - 1) % 64)
	}
	l.tail = s
}

// letGo takes a session out of those that are held, if it is one of them.
func (i *invitation) letGo(s *Session) {
	rank := s.heldRank
	if rank == 0 {
		return
	}
	l := &i.holding[rank]
	if s.held.prev != nil {
		s.held.prev.held.next = s.held.next
	} else {
		l.head = s.held.next
	}
	if s.held.next != nil {
		s.held.next.held.prev = s.held.prev
	} else {
		l.tail = s.held.prev
	}
	if l.head == nil {
		i.ranks[(rank-1)/64] &^= 1 << ((rank - 1) % 64)
	}
	s.heldRank, s.held = 0, held{}
}

// audit checks that the lists hold live sessions with waiting calls, each by its rank and linked both ways, and returns how many.
func (i *invitation) audit() (count int, err error) {
	for rank := range i.holding {
		l, prev := &i.holding[rank], (*Session)(nil)
		if rank > 0 && (l.head != nil) != (i.ranks[(rank-1)/64]>>((rank-1)%64)&1 != 0) {
			return 0, fmt.Errorf("dispatcher: whether sessions of rank %d are held is wrong", rank)
		}
		for s := l.head; s != nil; s = s.held.next {
			if int(s.heldRank) != rank || s.held.prev != prev || s.closed {
				return 0, fmt.Errorf("dispatcher: session %x is wrong among those of rank %d", uint32(s.local), rank)
			}
			prev = s
			count++
		}
		if l.tail != prev {
			return 0, fmt.Errorf("dispatcher: the list of rank %d has another end", rank)
		}
	}
	return count, nil
}
