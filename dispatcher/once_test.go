package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/wire"
)

// A request that a newer one pushed off its slot while it ran, of a session that has ended since, must not close a request
// of the session that has its place now.
func TestSupersededRequestDoesNotAnswerForTheNextSession(t *testing.T) {
	w, server, p := trusting(t, 4, Config{})
	server.service = time.Millisecond
	a, _ := p.register(1, 1)
	w.run(w.now.Add(5 * time.Millisecond))
	p.say(p.request(a, 1, 0, 2)) // runs
	w.run(w.now.Add(100 * time.Microsecond))
	p.say(p.request(a, 2, 0, 3)) // pushes it off
	p.say(&wire.Deregister{Session: a, Next: 3})
	w.run(w.now.Add(100 * time.Microsecond))
	p.register(2, 4)                         // has the same place, and runs
	w.run(w.now.Add(850 * time.Microsecond)) // the first two are done, this one is not
	if got := server.d.server.ledger.Totals(); got.Pending != 1 || got.Counters.Misused != 0 {
		t.Errorf("while one request runs: pending %d, misused %d", got.Pending, got.Counters.Misused)
	}
	w.run(w.now.Add(5 * time.Millisecond))
	if got := server.d.server.ledger.Totals(); got.Pending != 0 || got.Counters.Misused != 0 {
		t.Errorf("at the end: pending %d, misused %d", got.Pending, got.Counters.Misused)
	}
	server.audit()
}

// A registration that arrives once more after its session has ended must not open it again and run its request again.
func TestLateRegistrationDoesNotRunAgain(t *testing.T) {
	w, server, p := trusting(t, 1, Config{})
	a, registration := p.register(1, 1)
	w.run(w.now.Add(time.Millisecond))
	p.say(&wire.Deregister{Session: a, Next: 1})
	p.deliver(registration)
	w.run(w.now.Add(time.Millisecond))
	if server.ran[1] != 1 {
		t.Errorf("ran %d times", server.ran[1])
	}
	if got := server.d.Snapshot(); got.Sessions != 0 || got.Issued != 0 {
		t.Errorf("%d sessions hold %d credits", got.Sessions, got.Issued)
	}
	// A new session, in a newer packet, is welcome under the same handle.
	if p.register(1, 2); server.ran[1] != 1 {
		t.Error("ran again")
	}
	w.run(w.now.Add(time.Millisecond))
	if server.ran[2] != 1 {
		t.Error("the new session's request did not run")
	}
}

// Handles have 8 bits of generation: an old packet must not reach the session that has the same handle 256 sessions later.
func TestOldPacketDoesNotReachTheNextSessionOfItsHandle(t *testing.T) {
	w, server, p := trusting(t, 1, Config{})
	a, _ := p.register(1, 1)
	w.run(w.now.Add(100 * time.Microsecond))
	old := p.packet(0, p.remote, p.request(a, 0, 5, 1000))
	oldEnd := p.packet(0, p.remote, &wire.Deregister{Session: a})
	p.say(&wire.Deregister{Session: a, Next: 1})
	b := wire.SessionID(0)
	for i := range 256 {
		b, _ = p.register(wire.SessionID(2+i), uint64(2+i))
		w.run(w.now.Add(20 * time.Microsecond))
		if i < 255 {
			p.say(&wire.Deregister{Session: b, Next: 1})
		}
	}
	if a != b {
		t.Fatalf("handles %x and %x: the test means nothing", a, b)
	}
	p.deliver(old)
	p.deliver(oldEnd)
	w.run(w.now.Add(time.Millisecond))
	if server.ran[1000] != 0 {
		t.Error("a request of an earlier session ran")
	}
	if server.d.Snapshot().Sessions != 1 {
		t.Error("the end of an earlier session ended this one")
	}
}

// The reply is kept for as long as a packet lives, counted from the answer and not from the question.
func TestReplyOfALongRequestIsKept(t *testing.T) {
	w, server, p := trusting(t, 1, Config{})
	a, _ := p.register(1, 1)
	w.run(w.now.Add(10 * time.Millisecond))
	server.service = 3 * time.Second
	r := p.request(a, 1, 0, 2)
	p.say(r)
	w.run(w.now.Add(3*time.Second + 100*time.Millisecond))
	answered := len(p.all(wire.TypeReply))
	r.Retransmission = true
	p.say(r)
	p.settle()
	if got := len(p.all(wire.TypeReply)); got != answered+1 {
		t.Errorf("%d replies to a question asked again 0.1 s after the answer, %d before", got, answered)
	}
	// A packet's life later slots and cache are gone, and neither does it run nor is it answered wrongly.
	w.run(w.now.Add(2 * time.Second))
	if live := len(server.d.server.tables) - 1 - len(server.d.server.spare); live != 0 {
		t.Errorf("%d tables of slots after the collapse", live)
	}
	heard := len(p.heard)
	p.say(r)
	w.run(w.now.Add(4 * time.Second))
	if server.ran[2] != 1 || len(p.heard) != heard {
		t.Errorf("ran %d times, %d answers", server.ran[2], len(p.heard)-heard)
	}
}

// The credits that the end of an abandoned request leaves behind are told: nobody else will.
func TestEndOfAnAbandonedRequestTellsItsCredits(t *testing.T) {
	w, server, p := trusting(t, 4, Config{})
	a, _ := p.register(1, 1)
	w.run(w.now.Add(time.Millisecond))
	server.service = time.Millisecond
	p.say(p.request(a, 1, 0, 2))
	w.run(w.now.Add(500 * time.Microsecond))
	p.say(&wire.Cancel{Session: a, Number: 1}) // runs on
	r := p.request(a, 2, 0, 3)
	r.Demand = 10
	server.service = 100 * time.Microsecond
	p.say(r) // has the slot now, and its answer
	w.run(w.now.Add(5 * time.Millisecond))
	limit, seq := server.d.server.ledger.Limit(1)
	told := wire.Number(0)
	var toldSeq uint32
	for _, m := range p.heard {
		switch m.Type {
		case wire.TypeReply:
			if r, _ := wire.ParseReply(m.Raw); r.Seq >= toldSeq {
				told, toldSeq = r.Limit, r.Seq
			}
		case wire.TypeCreditUpdate:
			if u, _ := wire.ParseCreditUpdate(m.Raw); u.Seq >= toldSeq {
				told, toldSeq = u.Limit, u.Seq
			}
		}
	}
	if told != wire.Number(limit) || toldSeq != seq {
		t.Errorf("limit %d (%d), told %d (%d)", limit, seq, told, toldSeq)
	}
}

// A request sent to a boot that died may have run there: the token of the next boot is no leave to send it again.
func TestRequestOfFirstContactDoesNotRunInTwoBoots(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TokenKey: [32]byte{1}})
	server.serve(10*time.Microsecond, 80*time.Microsecond, nil)
	client := w.node(2, Config{})
	s, _ := client.d.Open(w.now, server.addr)
	c := client.call(s, 7, 0)
	w.run(w.now.Add(16 * time.Microsecond)) // retry, and the request with the token has arrived and runs
	if server.busy != 1 {
		t.Fatal("the request does not run: the test means nothing")
	}
	server.d = nil
	delete(w.nodes, server.addr) // dies with the answer
	second := w.node(1, Config{TokenKey: [32]byte{2}, Epoch: 77})
	second.serve(10*time.Microsecond, 80*time.Microsecond, nil)
	w.events = nil
	client.wakeAt = 0
	client.turn()
	w.run(w.now.Add(100 * time.Millisecond))
	if second.ran[7] != 0 {
		t.Error("ran in both boots")
	}
	if c.done != 1 || c.Outcome != OutcomePeerLost {
		t.Errorf("outcome %v, %d times", c.Outcome, c.done)
	}
	if c = client.call(s, 8, 0); w.now == 0 {
		t.Fatal()
	}
	w.run(w.now.Add(100 * time.Millisecond))
	if c.Outcome != OutcomeOK {
		t.Errorf("afterwards: %v", c.Outcome)
	}
}
