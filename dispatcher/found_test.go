package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/wire"
)

// What the faulty runs of bench/faultsim found, each by itself.

// A server dies with its acceptance of a connection still under way, and its next boot asks for another token. What the first one said comes after
// that: it must not give the session a handle of the dead boot, by which the living one knows another session, or nobody.
func TestLateAcceptanceOfADeadServer(t *testing.T) {
	w, p, client, s := pretend(t)
	opened := func() wire.ConnectionID {
		open, err := wire.ParseOpen(p.last(wire.TypeOpen).Raw)
		if err != nil {
			t.Fatal(err)
		}
		return open.Connection
	}
	first := client.call(s, 1, 0)
	p.settle()
	of := opened()
	p.deliver(p.packet(0, of, &wire.Retry{Token: wire.Token{1}}))
	p.settle()
	late := p.packet(0, of, &wire.Accept{Connection: 41}, &wire.Registered{Session: s.local, ServerSession: 41, Slots: 16},
		&wire.Reply{Session: s.local, Number: 0, Slot: 0, Limit: 9, Seq: 9, Payload: marked(1)})
	p.deliver(p.packet(0, of, &wire.Retry{Token: wire.Token{2}}))
	if first.Outcome != OutcomePeerLost {
		t.Fatalf("what the dead boot may have run: %v", first.Outcome)
	}
	second := client.call(s, 2, 0)
	p.deliver(late)
	if s.remote != 0 || s.conn.Established() || second.done != 0 {
		t.Errorf("session %x, connection %x, outcome %v: all by the word of a dead server", s.remote, s.conn.Remote, second.Outcome)
	}
	w.run(w.now.Add(time.Millisecond)) // it registers with the living one
	if p.remote = opened(); p.remote == of {
		t.Error("the connection has the name by which the dead server knew it")
	}
	p.say(&wire.Accept{Connection: p.local}, &wire.Registered{Session: s.local, ServerSession: 42, Slots: 16},
		&wire.Reject{Session: s.local, Number: 0, Limit: 2, Seq: 1, Reason: wire.RejectExpired})
	p.settle()
	p.say(&wire.Reply{Session: s.local, Number: 1, Slot: 0, Limit: 2, Seq: 1, Payload: marked(2)})
	if second.Outcome != OutcomeOK || mark(second.Reply) != 2 {
		t.Errorf("outcome %v", second.Outcome)
	}
	client.audit()
}

// A call under way while its session's lease runs out at the server, since nothing gets through, is refused when it gets there at last: its credit has
// been taken back. It must not be sent again at once, and refused again, as fast as packets go, but ask for another credit.
func TestCallThatOutlivesItsLease(t *testing.T) {
	w, server, client, s := pair(t, true)
	client.call(s, 1, 0)
	w.run(w.now.Add(100 * time.Millisecond))
	w.cut[client.addr] = true
	c := client.call(s, 2, 0)
	w.run(w.now.Add(1050 * time.Millisecond)) // lease, and life of a packet
	w.cut[client.addr] = false
	before := w.packets
	w.run(w.now.Add(300 * time.Millisecond))
	if c.Outcome != OutcomeOK {
		t.Errorf("outcome %v", c.Outcome)
	}
	if sent := w.packets - before; sent > 20 {
		t.Errorf("%d packets for one call", sent)
	}
	server.audit()
	client.audit()
}

// A session that is closed while nothing gets through must not stay at the server, which keeps sessions for as long as their connection lives.
func TestFarewellOutlastsAPartition(t *testing.T) {
	w, server, client, s := pair(t, true)
	other, _ := client.d.Open(w.now, server.addr) // keeps the connection
	client.call(other, 1, 0)
	client.call(s, 2, 0)
	w.run(w.now.Add(time.Millisecond))
	w.cut[client.addr] = true
	client.d.CloseSession(w.now, s)
	client.turn()
	w.run(w.now.Add(4 * time.Second))
	w.cut[client.addr] = false
	w.run(w.now.Add(5 * time.Second))
	if got := server.d.Snapshot(); got.Sessions != 1 {
		t.Errorf("%d sessions at the server, one is open", got.Sessions)
	}
	server.audit()
}

// What a server says before it is heard to accept the connection may be of an earlier boot: the client believes nothing of it.
func TestNothingBeforeTheAcceptance(t *testing.T) {
	w, p, client, s := pretend(t)
	c := client.call(s, 1, 0)
	p.settle()
	open, err := wire.ParseOpen(p.last(wire.TypeOpen).Raw)
	if err != nil {
		t.Fatal(err)
	}
	said := []appender{
		&wire.Registered{Session: s.local, ServerSession: 41, Slots: 16},
		&wire.Reply{Session: s.local, Number: 0, Slot: 0, Limit: 3, Seq: 1, Payload: marked(1)},
	}
	p.deliver(p.packet(0, open.Connection, said...))
	if c.done != 0 || s.remote != 0 || s.gate.Heard() {
		t.Errorf("outcome %v, session %x", c.Outcome, s.remote)
	}
	p.accept(s, 42, 1)
	other := append([]appender{&wire.Accept{Connection: p.local + 1}}, said...)
	p.deliver(p.packet(0, open.Connection, other...))
	if c.done != 0 || s.remote != 42 {
		t.Errorf("by the word of another boot: outcome %v, session %x", c.Outcome, s.remote)
	}
	p.say(said[1])
	w.run(w.now.Add(time.Millisecond))
	if c.Outcome != OutcomeOK {
		t.Errorf("outcome %v", c.Outcome)
	}
	client.audit()
}

// So a server begins each packet with its acceptance, until it has heard the client use the id that stands in it.
func TestAcceptanceBeginsEachPacket(t *testing.T) {
	for _, apart := range []bool{false, true} {
		w, _, p := trusting(t, 1, Config{NoPacking: apart})
		p.remote = 0
		register := p.request(1, 0, 0, 1)
		register.Register = true
		begun := len(p.all(wire.TypeAccept))
		headers := len(p.headers)
		p.deliver(p.packet(wire.PacketHandshake, 0, &wire.Open{Connection: p.local}, register))
		w.run(w.now.Add(time.Millisecond))
		accepts, packets := len(p.all(wire.TypeAccept))-begun, len(p.headers)-headers
		if len(p.all(wire.TypeReply)) != 1 || accepts != packets {
			t.Errorf("apart %v: %d of %d packets accept the connection, %d replies", apart, accepts, packets, len(p.all(wire.TypeReply)))
		}
		accept, err := wire.ParseAccept(p.last(wire.TypeAccept).Raw)
		if err != nil {
			t.Fatal(err)
		}
		p.remote = accept.Connection
		p.say(p.request(1, 1, 0, 2)) // of no session: it is told so
		p.settle()
		if got := len(p.all(wire.TypeAccept)) - begun; got != accepts {
			t.Errorf("apart %v: accepted once more", apart)
		}
	}
}

// A server that comes to itself late answers each copy of a registration. To a session that was closed meanwhile that must not look like as many farewells
// in vain.
func TestFarewellAfterManyRegistrations(t *testing.T) {
	w, p, client, s := pretend(t)
	client.call(s, 1, 0)
	p.settle()
	client.d.CloseSession(w.now, s)
	for range 20 {
		p.accept(s, 41, 1)
	}
	w.run(w.now.Add(100 * time.Millisecond))
	if got := len(p.all(wire.TypeDeregister)); got < 5 || got > 10 {
		t.Errorf("told %d times in 100 ms", got)
	}
}

// A call whose answer was lost, and is kept no more when its client gets through again, must not hold up those behind it until it is given up.
func TestCallBehindOneThatIsForgotten(t *testing.T) {
	w, server, client, s := pair(t, true)
	client.call(s, 1, 0)
	w.run(w.now.Add(time.Millisecond))
	lost := client.call(s, 2, 0)
	w.run(w.now.Add(w.delay + time.Microsecond)) // it has arrived, and its answer will not
	w.cut[client.addr] = true
	w.run(w.now.Add(2200 * time.Millisecond)) // a packet's life, and a sweep
	w.cut[client.addr] = false
	behind := client.call(s, 3, 0)
	w.run(w.now.Add(300 * time.Millisecond))
	if server.ran[2] != 1 || lost.done != 0 {
		t.Fatalf("ran %d times, %v: the test means nothing", server.ran[2], lost.Outcome)
	}
	if behind.Outcome != OutcomeOK {
		t.Errorf("outcome %v", behind.Outcome)
	}
	w.run(w.now.Add(10 * time.Second))
	if lost.Outcome != OutcomePeerLost || server.ran[2] != 1 {
		t.Errorf("outcome %v, ran %d times", lost.Outcome, server.ran[2])
	}
	server.audit()
	client.audit()
}
