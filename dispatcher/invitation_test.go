package dispatcher

import (
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

// host is a law that invites as a test says, and gives no credit but for known demand; with the door shut, none at all.
type host struct {
	*credit.None
	share uint8
	shut  bool
}

func newHost(share uint8) (control *host)      { return &host{None: credit.NewNone(64), share: share} }
func (h *host) Window(x credit.Holding) uint64 { return x.Pending + x.Demand }
func (h *host) Invited(time.Duration) uint8    { return h.share }
func (h *host) Admit(credit.Arrival) bool      { return !h.shut }

func (h *host) Pool() uint64 {
	if h.shut {
		return 0
	}
	return h.None.Pool()
}

func (w *network) soon(d time.Duration) { w.run(w.now.Add(d)) }

// invited is a server with the law, and a client with a session that is registered and holds nothing.
func invited(t *testing.T, control *host) (w *network, server, c *node, s *Session) {
	w = newNetwork(t, 1)
	server = w.node(1, Config{TrustedNetwork: true})
	server.serve(10*time.Microsecond, 80*time.Microsecond, control)
	c = w.node(2, Config{})
	s, err := c.d.Open(w.now, server.addr)
	if err != nil {
		t.Fatal(err)
	}
	c.call(s, 0, 0)
	w.soon(time.Millisecond)
	return w, server, c, s
}

// A call without a credit that is invited takes a round trip and its service: nothing is asked, and nothing told.
func TestInvitedCallTakesOneRoundTrip(t *testing.T) {
	w, server, c, s := invited(t, newHost(credit.InvitedAll))
	for i := range uint64(5) {
		before := w.now
		k := c.call(s, 1+i, 0)
		w.soon(time.Millisecond)
		if took := k.at.Sub(before); k.Outcome != OutcomeOK || took != 20*time.Microsecond {
			t.Errorf("call %d: %v after %v", i, k.Outcome, took)
		}
	}
	if n := server.d.Snapshot(); n.Unasked != 5 || n.Offered != 6 || n.Probes != 0 || n.CreditUpdates != 0 || n.Refused != 0 {
		t.Errorf("%d without a credit of %d, %d probes, %d updates, %d refused", n.Unasked, n.Offered, n.Probes, n.CreditUpdates, n.Refused)
	}
	audit(t, c, server)
}

// What is invited and finds the door shut is refused, listed, and served in its turn: under the number that it had.
func TestInvitedInVain(t *testing.T) {
	control := newHost(credit.InvitedAll)
	w, server, c, s := invited(t, control)
	control.shut = true
	k := c.call(s, 1, 0)
	w.soon(15 * time.Microsecond)
	if n := server.d.Snapshot(); n.Refused != 1 || n.Offered != 1 || n.Drained != 1 || k.state != callRefused {
		t.Fatalf("%d refused, %d offered, %d drained, state %d", n.Refused, n.Offered, n.Drained, k.state)
	}
	control.shut = false
	w.soon(time.Millisecond)
	if number, _ := k.Number(); k.Outcome != OutcomeOK || number != 1 || server.ran[1] != 1 {
		t.Errorf("%v as %d, ran %d times", k.Outcome, number, server.ran[1])
	}
	audit(t, c, server)
}

// Calls that were refused and given up leave gaps in the numbers, and the next one goes all the same.
func TestInvitedBeyondGaps(t *testing.T) {
	control := newHost(credit.InvitedAll)
	w, server, c, s := invited(t, control)
	control.shut = true
	for i := range uint64(3) {
		k := c.call(s, 1+i, w.now.Add(300*time.Microsecond))
		w.soon(400 * time.Microsecond)
		if k.Outcome != OutcomeDeadline {
			t.Fatalf("call %d: %v", i, k.Outcome)
		}
	}
	control.shut = false
	w.soon(time.Millisecond) // the credit that it is given for one of them goes unused: the client is beyond that number
	k := c.call(s, 9, 0)
	w.soon(200 * time.Millisecond)
	if k.Outcome != OutcomeOK || server.ran[9] != 1 {
		t.Errorf("%v, ran %d times", k.Outcome, server.ran[9])
	}
	audit(t, c, server)
}

// A client that invites itself has one request at the server at a time, and numbers that it jumped over never run.
func TestInvitingOneself(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.workers = 4
	server.serve(10*time.Microsecond, 80*time.Microsecond, newHost(1))
	p := w.peer(9, server).connect()
	id, _ := p.register(0x55, 0)
	w.soon(time.Millisecond)
	unasked := func(n wire.Number) *wire.Request {
		r := p.request(id, n, wire.Slot(n%8), uint64(n))
		r.Unasked = true
		return r
	}
	p.say(unasked(5), unasked(6), unasked(7)) // one after the other without waiting
	w.soon(time.Millisecond)
	if server.ran[5] != 1 || server.ran[6]+server.ran[7] != 0 {
		t.Errorf("ran %v: want the first of three", server.ran)
	}
	for n := range wire.Number(5) {
		p.say(p.request(id, n, wire.Slot(n), uint64(n)+100), unasked(n))
	}
	w.soon(time.Millisecond)
	for n := range uint64(5) {
		if server.ran[n+100] != 0 || n > 0 && server.ran[n] != 0 {
			t.Errorf("number %d ran, below one without a credit", n)
		}
	}
	p.say(unasked(1 << 62))
	p.say(unasked(1<<62 - 1))
	w.soon(time.Millisecond)
	if server.ran[1<<62] != 0 || server.ran[1<<62-1] != 1 {
		t.Error("the end of the numbers is wrong")
	}
	server.audit()
}

// One that says that its calls are of the highest level has four at the server at a time; and of the numbers that it jumped over the last three may run, since they may
// have been under way: the door was shut when one came, and open when the next did.
func TestInvitingOneselfBeside(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.workers = 1
	control := newHost(1)
	server.serve(10*time.Microsecond, 80*time.Microsecond, control)
	p := w.peer(9, server).connect()
	id, _ := p.register(0x55, 0)
	w.soon(time.Millisecond)
	unasked := func(n wire.Number) *wire.Request {
		r := p.request(id, n, wire.Slot(n%16), uint64(n))
		r.Unasked, r.Criticality = true, wire.CriticalPlus
		return r
	}
	p.say(unasked(5), unasked(6), unasked(7), unasked(8), unasked(9), unasked(10))
	w.soon(time.Millisecond)
	for n := range uint64(11) {
		if ran := server.ran[n] == 1; n > 0 && ran != (n >= 5 && n <= 8) {
			t.Errorf("number %d ran %d times", n, server.ran[n])
		}
	}
	control.shut = true
	p.say(unasked(20))
	control.shut = false
	p.say(unasked(23))
	for n := wire.Number(18); n < 23; n++ {
		p.say(p.request(id, n, wire.Slot(n%16), uint64(n)))
	}
	w.soon(time.Millisecond)
	for n := uint64(18); n <= 23; n++ {
		if ran := server.ran[n] == 1; ran != (n >= 20) {
			t.Errorf("number %d ran %d times", n, server.ran[n])
		}
	}
	server.audit()
}

// Who is left out waits without a word, and goes when an answer to another session of the connection invites more, two at a time, the lowest ranks first.
func TestHeldBack(t *testing.T) {
	control := newHost(1)
	w, server, c, first := invited(t, control)
	var sessions []*Session
	for range 6 {
		s, err := c.d.Open(w.now, server.addr)
		if err != nil {
			t.Fatal(err)
		}
		c.call(s, 0, 0)
		w.soon(time.Millisecond / 2)
		sessions = append(sessions, s)
	}
	var calls []*call
	for i, s := range sessions {
		calls = append(calls, c.call(s, uint64(10+i), 0))
	}
	w.soon(30 * time.Microsecond)
	held, err := first.conn.invitation.audit()
	if err != nil || held < 5 { // each goes with a probability of 1/127
		t.Fatalf("%d held back, %v", held, err)
	}
	low := first.conn.lowest()
	control.share = credit.InvitedAll
	first.conn.share = credit.InvitedAll // as if told
	c.d.now = w.now
	c.d.release(first.conn.Conn)
	c.turn()
	if now, err := first.conn.invitation.audit(); err != nil || now != held-releasedMax || first.conn.lowest() < low {
		t.Errorf("%d of %d are still held back, %v", now, held, err)
	}
	w.soon(time.Millisecond)
	if got := outcomes(calls); slices.ContainsFunc(got, func(o Outcome) bool { return o != OutcomeOK }) {
		t.Errorf("outcomes %v", got)
	}
	if n := server.d.Snapshot(); n.Probes != 0 || n.CreditUpdates != 0 {
		t.Errorf("%d probes, %d updates", n.Probes, n.CreditUpdates)
	}
	audit(t, c, server)
}

// One that is left out, and hears nothing, asks in the end.
func TestHeldBackAsks(t *testing.T) {
	w, server, c, s := invited(t, newHost(1))
	k := c.call(s, 1, 0)
	for k.rank <= 1 || s.heldRank == 0 { // it went: the next one has another rank
		w.soon(500 * time.Microsecond)
		k = c.call(s, k.rankMark(), 0)
	}
	w.soon(50 * time.Millisecond)
	if n := server.d.Snapshot(); k.Outcome != OutcomeOK || n.Probes == 0 || n.CreditUpdates == 0 {
		t.Errorf("%v after %d probes and %d updates", k.Outcome, n.Probes, n.CreditUpdates)
	}
	audit(t, c, server)
}

func (c *call) rankMark() uint64 { return uint64(c.rank) + 1000 }

// A scout goes when nothing was heard for a while, then after twice the time, and so on up to a lease.
func TestScouts(t *testing.T) {
	i := invitation{share: 3, told: 1000}
	now := i.told
	if !i.goes(now, 3) || i.goes(now, 4) || i.goes(now.Add(scoutMin)-1, 4) {
		t.Fatal("the share is not what decides at first")
	}
	for wait := scoutMin; wait < client.DefaultLease; wait *= 2 {
		if i.goes(now.Add(wait)-1, 4) || !i.goes(now.Add(wait), 4) {
			t.Fatalf("no scout after %v", wait)
		}
		now = now.Add(wait)
	}
	for range 3 {
		if i.goes(now.Add(client.DefaultLease)-1, 4) || !i.goes(now.Add(client.DefaultLease), 4) {
			t.Fatal("no scout after a lease")
		}
		now = now.Add(client.DefaultLease)
	}
}

// Each rank is drawn by one call in 127, and so is each of any run of calls.
func TestRanksAreEven(t *testing.T) {
	first := seedtest.Rand(t).Uint64() >> 1
	const calls = 127 * 100
	var seen [credit.InvitedAll + 1]int
	for i := range uint64(calls) {
		seen[rankOf(first+i)]++
	}
	if seen[0] != 0 {
		t.Error("rank 0 means no rank")
	}
	for rank, n := range seen[1:] { // a golden sequence leaves each interval short or over by a few points
		if n < 95 || n > 105 {
			t.Errorf("rank %d: %d of %d calls", rank+1, n, calls)
		}
	}
}
