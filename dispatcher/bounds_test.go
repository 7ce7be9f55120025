package dispatcher

import (
	"errors"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Requests that nobody waits for any more must not fill the memory while the workers are blocked.
func TestAbandonedRequestsDoNotPileUp(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.serve(time.Hour, 0, credit.NewNone(4))
	p := w.peer(9, server).connect()
	p.register(1, 1)
	p.register(2, 2) // the head of the queue
	for i := range 2000 {
		a, _ := p.register(wire.SessionID(3+i), uint64(3+i))
		p.say(&wire.Deregister{Session: a, Next: 1})
		p.heard, p.headers = nil, nil
	}
	q := &server.d.server.queue
	if len(q.ring) > 64 || q.live != 1 {
		t.Errorf("a ring of %d for %d requests", len(q.ring), q.live)
	}
	if got := server.d.Snapshot(); got.Abandoned != 2000 || got.Sessions != 2 {
		t.Errorf("%d abandoned, %d sessions", got.Abandoned, got.Sessions)
	}
	server.audit()
}

// What a handler appended to a reply that is too large must not stay with the object.
func TestHugeReplyIsNotKept(t *testing.T) {
	w, server, client, s := pair(t, true)
	server.d.server.methods[wire.MethodOf("work")].Run = func(r *Request) { r.Reply = make([]byte, 1<<20) }
	c := client.call(s, 1, 0)
	w.run(w.now.Add(time.Millisecond))
	if c.Outcome != OutcomeReplyTooLarge || len(c.Reply) != 0 {
		t.Errorf("outcome %v, %d bytes", c.Outcome, len(c.Reply))
	}
	w.run(w.now.Add(5 * time.Second))
	for r := server.d.server.pool.free; r != nil; r = r.next {
		if cap(r.Reply) > 2*testPayloadMax {
			t.Errorf("an idle object holds %d bytes", cap(r.Reply))
		}
	}
	for _, table := range server.d.server.tables {
		if table != nil && table.Live() != 0 {
			t.Error("a table is not collapsed")
		}
	}
}

// The queued work is a sum of what was added, so that a mean that moves leaves nothing behind.
func TestQueuedWorkDoesNotDrift(t *testing.T) {
	m := &Method{}
	for range 100 {
		m.admit.Age.Sample(100 * time.Microsecond)
	}
	var q requestQueue
	for range 1000 {
		q.push(&Request{Method: m, state: requestQueued})
	}
	for range 2000 {
		m.admit.Age.Sample(time.Microsecond)
	}
	for range 999 {
		q.pop()
	}
	if q.work > 200*time.Microsecond || q.work < 0 {
		t.Errorf("one request left, %v of work", q.work)
	}
}

// A request that was given up has no age.
func TestAbandonedHeadHasNoAge(t *testing.T) {
	w, server, p := trusting(t, 1, Config{})
	server.service = time.Millisecond
	p.register(1, 1)
	a, _ := p.register(2, 2)
	w.run(w.now.Add(500 * time.Microsecond))
	p.say(&wire.Deregister{Session: a, Next: 1}, &wire.Request{
		Register: true, Session: 3, Next: 1, Method: wire.MethodOf("work"), Payload: marked(3),
	})
	if got := server.d.Snapshot(); got.Rejected[wire.RejectOverloaded] != 0 || got.Queued != 1 {
		t.Errorf("%d rejected, %d queued", got.Rejected[wire.RejectOverloaded], got.Queued)
	}
	w.run(w.now.Add(10 * time.Millisecond))
}

// A client that lies about its round trip must not slow the control down for the others.
func TestLiarDoesNotMoveTheRoundTrip(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.serve(10*time.Microsecond, 80*time.Microsecond, nil)
	client := w.node(2, Config{})
	s, _ := client.d.Open(w.now, server.addr)
	p := w.peer(9, server).connect()
	a, _ := p.register(1, 1)
	for i := range 2000 {
		client.call(s, uint64(10+i), 0)
		w.run(w.now.Add(25 * time.Microsecond))
		for range 3 {
			data := p.packet(0, p.remote, &wire.Probe{Session: a, Next: 1})
			echo := uint32(w.now) - 900_000_000
			data[24], data[25], data[26], data[27] = byte(echo>>24), byte(echo>>16), byte(echo>>8), byte(echo)
			p.deliver(data)
		}
	}
	if rtt := server.d.rtt.Smoothed(); rtt > 100*time.Microsecond {
		t.Errorf("a round trip of 10 us is taken for %v", rtt)
	}
}

func TestClientSessionsHaveABound(t *testing.T) {
	w := newNetwork(t, 1)
	client := w.node(2, Config{SessionsMax: 3})
	var open []*Session
	for range 3 {
		s, err := client.d.Open(w.now, wire.Addr{IP: [16]byte{15: 1}, Port: 1})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}
	if _, err := client.d.Open(w.now, open[0].conn.Peer); !errors.Is(err, ErrTooManySessions) {
		t.Errorf("one more: %v", err)
	}
	client.d.CloseSession(w.now, open[1])
	if _, err := client.d.Open(w.now, open[0].conn.Peer); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
}

// One address may not have all connections, nor one connection all sessions.
func TestOnePeerCannotHaveEverything(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true, ConnectionsMax: 64, SessionsMax: 100})
	server.serve(10*time.Microsecond, 80*time.Microsecond, nil)
	p := w.peer(9, server)
	for i := range 1000 {
		p.deliver(p.packet(wire.PacketHandshake, 0, &wire.Open{Connection: wire.ConnectionID(1 + i)}))
	}
	p.local = 1000
	p.connect() // the newest is still known
	for i := range 1000 {
		r := p.request(wire.SessionID(1+i), 0, 0, uint64(i))
		r.Register = true
		p.say(r)
	}
	got := server.d.Snapshot()
	if got.Connections > 8 || got.Sessions > 50 || got.TooMany == 0 {
		t.Errorf("%d connections, %d sessions, refused %d", got.Connections, got.Sessions, got.TooMany)
	}
	client := w.node(2, Config{})
	s, _ := client.d.Open(w.now, server.addr)
	c := client.call(s, 5000, w.now.Add(100*time.Millisecond))
	w.run(w.now.Add(200 * time.Millisecond))
	if c.Outcome != OutcomeOK {
		t.Errorf("somebody else: %v", c.Outcome)
	}
	server.audit()
}

func TestOpenWithoutIDIsMalformed(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.serve(10*time.Microsecond, 80*time.Microsecond, credit.NewNone(4))
	p := w.peer(9, server)
	p.deliver(p.packet(wire.PacketHandshake, 0, &wire.Open{}))
	p.settle()
	if got := server.d.Snapshot(); got.Connections != 0 || got.Malformed != 1 || len(p.heard) != 0 {
		t.Errorf("%d connections, %d malformed, %d answers", got.Connections, got.Malformed, len(p.heard))
	}
}
