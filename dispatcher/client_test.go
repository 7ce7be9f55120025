package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/wire"
)

// The call that registers a session may end before it is answered, and nobody would ask again: the session must not be
// stuck for ever.
func TestLostRegistrationDoesNotStall(t *testing.T) {
	w, server, client, s := pair(t, true)
	w.loss = 1
	first := client.call(s, 1, w.now.Add(time.Millisecond))
	w.run(w.now.Add(10 * time.Millisecond))
	if first.Outcome != OutcomeDeadline {
		t.Fatalf("first: %v", first.Outcome)
	}
	second := client.call(s, 2, w.now.Add(30*time.Millisecond))
	w.run(w.now.Add(5 * time.Millisecond))
	w.loss = 0
	w.run(w.now.Add(50 * time.Millisecond))
	if second.Outcome != OutcomeOK {
		t.Errorf("second: %v", second.Outcome)
	}
	if server.ran[1] != 0 || server.ran[2] != 1 {
		t.Errorf("ran %v", server.ran)
	}
	server.audit()
}

// The same where the server has the session, and only its answers are lost.
func TestLostAnswerToRegistrationDoesNotStall(t *testing.T) {
	w, server, client, s := pair(t, true)
	delete(w.nodes, client.addr)
	client.call(s, 1, w.now.Add(time.Millisecond))
	w.run(w.now.Add(10 * time.Millisecond))
	w.nodes[client.addr] = client
	c := client.call(s, 2, w.now.Add(10*time.Millisecond))
	w.run(w.now.Add(20 * time.Millisecond))
	if c.Outcome != OutcomeOK || server.ran[1] != 1 || server.ran[2] != 1 {
		t.Errorf("%v, ran %v", c.Outcome, server.ran)
	}
	if server.d.Snapshot().Sessions != 1 {
		t.Error("registered twice")
	}
}

// Done may cancel other calls, submit new ones and close the session, also while a lost peer ends many at once.
func TestDoneMayDoAnything(t *testing.T) {
	for _, what := range []string{"cancel", "submit", "close"} {
		w, server, client, s := pair(t, true)
		warm(w, client, s)
		delete(w.nodes, server.addr)
		var calls []*call
		for i := range 4 {
			calls = append(calls, client.call(s, uint64(100+i), 0))
		}
		if s.Outstanding() < 3 {
			t.Fatalf("%d outstanding: the test means nothing", s.Outstanding())
		}
		var more *call
		old := calls[0].Done
		calls[0].Done = func(c *Call) {
			old(c)
			switch what {
			case "close":
				client.d.CloseSession(w.now, s)
				return
			case "submit":
				more = client.call(s, 200, 0)
			case "cancel":
				more = client.call(s, 200, 0)
				client.d.Cancel(w.now, &calls[1].Call)
			}
		}
		again := w.node(1, Config{TrustedNetwork: true, Epoch: 99})
		again.serve(10*time.Microsecond, 80*time.Microsecond, nil)
		w.run(w.now.Add(300 * time.Millisecond))
		for i, c := range calls {
			if c.done != 1 {
				t.Errorf("%s: call %d has %d outcomes, the last %v", what, i, c.done, c.Outcome)
			}
		}
		if more != nil && (more.done != 1 || more.Outcome != OutcomeOK || more.Retransmissions > 0) {
			t.Errorf("%s: the call submitted in Done: %v, %d times, %d retransmissions", what, more.Outcome, more.done, more.Retransmissions)
		}
		client.audit()
		again.audit()
	}
}

// warm gives the session a few credits.
func warm(w *network, client *node, s *Session) {
	for i := range 20 {
		for j := range 6 {
			client.call(s, uint64(1000+10*i+j), 0)
		}
		w.run(w.now.Add(time.Millisecond))
	}
}

// pretend makes a crafted server: it accepts the connection and the registration of the client's session.
func pretend(t testing.TB) (w *network, p *peer, client *node, s *Session) {
	w = newNetwork(t, 1)
	client = w.node(2, Config{})
	p = w.peer(9, client)
	p.local = 0x99<<24 | 9
	s, err := client.d.Open(w.now, p.addr)
	if err != nil {
		t.Fatal(err)
	}
	return w, p, client, s
}

// accept answers the client's open and registration, and grants credits.
func (p *peer) accept(s *Session, remote wire.SessionID, limit wire.Number) {
	open, err := wire.ParseOpen(p.last(wire.TypeOpen).Raw)
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.remote = open.Connection
	p.say(&wire.Accept{Connection: p.local}, &wire.Registered{Session: s.local, ServerSession: remote, Slots: 16})
	p.say(&wire.CreditUpdate{Session: s.local, Limit: limit, Seq: 1})
}

// The answers to a session that its server has forgotten must not be taken for answers of the one registered in its place.
func TestLateAnswerIsNotForTheNextRegistration(t *testing.T) {
	w, p, client, s := pretend(t)
	first := client.call(s, 1, 0)
	p.settle()
	p.accept(s, 41, 1)
	old := s.local
	p.say(&wire.Gone{Connection: p.local, Session: 41})
	if first.Outcome != OutcomePeerLost {
		t.Fatalf("outcome %v", first.Outcome)
	}
	second := client.call(s, 2, 0)
	p.say(&wire.Reply{Session: old, Number: 0, Slot: 0, Limit: 9, Seq: 9, Payload: marked(1)})
	if second.done != 0 {
		t.Errorf("the second call got the first one's answer: %x", second.Reply)
	}
	p.settle()
	p.say(&wire.Registered{Session: s.local, ServerSession: 42, Slots: 16},
		&wire.Reply{Session: s.local, Number: 0, Slot: 0, Limit: 2, Seq: 1, Payload: marked(2)})
	w.run(w.now.Add(time.Millisecond))
	if second.Outcome != OutcomeOK || second.done != 1 {
		t.Errorf("outcome %v, %d times", second.Outcome, second.done)
	}
}

// A session closed before its registration was answered must not stay at the server.
func TestCloseBeforeRegistered(t *testing.T) {
	w, server, client, s := pair(t, true)
	other, _ := client.d.Open(w.now, server.addr) // keeps the connection
	client.call(other, 1, 0)
	w.run(w.now.Add(time.Millisecond))
	client.call(s, 2, 0)
	client.d.CloseSession(w.now, s)
	w.run(w.now.Add(50 * time.Millisecond))
	if got := server.d.Snapshot(); got.Sessions != 1 {
		t.Errorf("%d sessions at the server, one is open", got.Sessions)
	}
	server.audit()
}

// Nor may one whose farewell was lost.
func TestLostFarewell(t *testing.T) {
	w, server, client, s := pair(t, true)
	other, _ := client.d.Open(w.now, server.addr)
	client.call(other, 1, 0)
	client.call(s, 2, 0)
	w.run(w.now.Add(time.Millisecond))
	w.loss = 1
	client.d.CloseSession(w.now, s)
	client.turn()
	w.run(w.now.Add(15 * time.Millisecond))
	w.loss = 0
	w.run(w.now.Add(time.Second))
	if got := server.d.Snapshot(); got.Sessions != 1 {
		t.Errorf("%d sessions at the server, one is open", got.Sessions)
	}
	if at := client.d.Deadline(); at != 0 {
		t.Errorf("the client still has a timer at %v", at.Sub(w.now))
	}
}

// A call refused for its number, of a session to which nothing is granted any more, must ask for credit like one that waits.
func TestRefusedCallAsksForCredit(t *testing.T) {
	w, p, client, s := pretend(t)
	first := client.call(s, 1, 0)
	p.settle()
	p.accept(s, 41, 1)
	p.say(&wire.Reply{Session: s.local, Number: 0, Limit: 2, Seq: 2})
	second := client.call(s, 2, w.now.Add(500*time.Millisecond))
	p.settle()
	p.say(&wire.Reject{Session: s.local, Number: 1, Slot: 0, Limit: 1, Seq: 3, Reason: wire.RejectOverLimit})
	w.run(w.now.Add(10 * time.Millisecond))
	if first.done != 1 || second.done != 0 {
		t.Fatalf("outcomes %v, %v", first.Outcome, second.Outcome)
	}
	probes := p.all(wire.TypeProbe)
	if len(probes) == 0 {
		t.Fatal("no probe")
	}
	probe, _ := wire.ParseProbe(probes[0].Raw)
	if probe.Next != 2 || probe.Demand != 1 || probe.Seq != 3 {
		t.Errorf("probe %+v", probe)
	}
	p.say(&wire.CreditUpdate{Session: s.local, Limit: 2, Seq: 4})
	p.settle()
	r, _ := wire.ParseRequest(p.last(wire.TypeRequest).Raw)
	if r.Number != 1 || !r.Retransmission || r.Demand != 0 {
		t.Errorf("request %+v", r)
	}
	p.say(&wire.Reply{Session: s.local, Number: 1, Limit: 3, Seq: 5})
	if second.Outcome != OutcomeOK {
		t.Errorf("outcome %v", second.Outcome)
	}
}

// An address that nobody uses any more costs nothing, or a client that dials many runs out of connections.
func TestConnectionOfTheLastSessionIsFreed(t *testing.T) {
	w, server, client, s := pair(t, true)
	for range 100 {
		c := client.call(s, 1, 0)
		w.run(w.now.Add(time.Millisecond))
		if c.Outcome != OutcomeOK {
			t.Fatalf("outcome %v", c.Outcome)
		}
		client.d.CloseSession(w.now, s)
		client.turn()
		s, _ = client.d.Open(w.now, server.addr)
	}
	if c, s := client.d.Snapshot().Connections, server.d.Snapshot().Connections; c != 1 || s != 1 {
		t.Errorf("one session after the other took %d connections, %d at the server", c, s)
	}
	client.d.CloseSession(w.now, s)
	for range 1000 {
		w.run(w.now.Add(10 * time.Millisecond))
		client.turn()
		server.turn()
		if client.d.Snapshot().Connections > server.d.Snapshot().Connections {
			t.Fatal("the server forgot the connection first: the client's next session would not find it")
		}
	}
	if got := client.d.Snapshot().Connections; got != 0 {
		t.Errorf("the client keeps %d connections", got)
	}
	if got := server.d.Snapshot(); got.Sessions != 0 || got.Connections != 0 {
		t.Errorf("the server keeps %d sessions, %d connections", got.Sessions, got.Connections)
	}
	if client.lent != 0 || server.lent != 0 {
		t.Error("buffers leaked")
	}
}

// Handles have 8 bits of generation: a place is not used again while a packet to its last session may be under way.
func TestHandlesAreNotUsedAgainTooSoon(t *testing.T) {
	w, server, client, s := pair(t, true)
	used := map[wire.SessionID]bool{}
	for range 1000 {
		if used[s.local] {
			t.Fatalf("handle %x twice within %v", s.local, client.d.cfg.PacketLifetime)
		}
		used[s.local] = true
		client.d.CloseSession(w.now, s)
		w.now += 10_000
		s, _ = client.d.Open(w.now, server.addr)
	}
	for range 5000 {
		client.d.CloseSession(w.now, s)
		w.now += 10_000_000
		s, _ = client.d.Open(w.now, server.addr)
	}
	if n := len(client.d.caller.sessions); n > 2000 {
		t.Errorf("%d places for one session at a time", n)
	}
}

// A call that registers its session, and waits in the server's queue, may be cancelled before its client knows how the server calls the session:
// the server must learn of it all the same, or runs for nobody.
func TestCancelBeforeTheSessionIsRegistered(t *testing.T) {
	w, server, client, s := pair(t, true)
	blocking, err := client.d.Open(w.now, server.addr)
	if err != nil {
		t.Fatal(err)
	}
	server.service = time.Second
	client.call(blocking, 1, 0) // keeps the only worker busy
	w.run(w.now.Add(time.Millisecond))
	c := client.call(s, 2, 0)
	w.run(w.now.Add(w.delay)) // it is there, and what it answers is under way
	if queued := server.d.Snapshot().Queued; queued != 1 || s.remote != 0 {
		t.Fatalf("%d queued, handle %d: the test means nothing", queued, s.remote)
	}
	client.d.Cancel(w.now, &c.Call)
	client.turn()
	w.run(w.now.Add(time.Millisecond))
	if c.Outcome != OutcomeCancelled || c.done != 1 {
		t.Errorf("%v, %d outcomes", c.Outcome, c.done)
	}
	if x := server.d.Snapshot(); x.Queued != 0 || x.Rejected[wire.RejectCancelled] != 1 {
		t.Errorf("%d still queued, %d cancelled", x.Queued, x.Rejected[wire.RejectCancelled])
	}
	client.audit()
	server.audit()
}

// The fault: what runs for long, or stands in a long queue, keeps the calls behind it from a credit, since its answer is what would bring one. Once nothing was said for a lease, they ask.
func TestWaitingBesideALongCallAsksForCredit(t *testing.T) {
	w, p, c, s := pretend(t)
	c.call(s, 1, 0)
	p.settle()
	p.accept(s, 41, 1) // which the first call has
	heard := w.now
	c.call(s, 2, 0)
	w.run(heard.Add(client.DefaultLease - 1))
	if n := len(p.all(wire.TypeProbe)); n != 0 {
		t.Fatalf("%d probes before the lease is over, while an answer may bring a credit", n)
	}
	w.run(heard.Add(client.DefaultLease + 2*rtoMax)) // the first call's answer is asked for again meanwhile
	if n := len(p.all(wire.TypeProbe)); n == 0 || s.waiting.Len() != 1 {
		t.Fatalf("%d probes; %d calls wait", n, s.waiting.Len())
	}
	p.say(&wire.CreditUpdate{Session: s.local, Limit: 5, Seq: 2})
	p.settle()
	if s.waiting.Len() != 0 || s.out.Len() != 2 {
		t.Fatalf("with a credit, %d calls wait and %d are sent", s.waiting.Len(), s.out.Len())
	}
	// The credits that are left are forgotten in turn. A call that comes then asks at once.
	w.run(w.now.Add(2 * client.DefaultLease))
	before := len(p.all(wire.TypeProbe))
	c.call(s, 3, 0)
	p.settle()
	if n := len(p.all(wire.TypeProbe)) - before; n != 1 || s.waiting.Len() != 1 {
		t.Fatalf("beside calls that run for long: %d probes, %d calls wait", n, s.waiting.Len())
	}
	p.say(&wire.CreditUpdate{Session: s.local, Limit: 5, Seq: 2}) // the server stands by what it said
	if s.waiting.Len() != 0 {
		t.Fatal("what was forgotten is not given back")
	}
}
