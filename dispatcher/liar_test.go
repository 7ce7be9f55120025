package dispatcher

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

// unknown is a message that this version does not know, or has no business here.
type unknown struct {
	t      wire.Type
	flags  wire.MessageFlags
	length int
}

func (u *unknown) Length() int { return u.length }
func (u *unknown) Append(b []byte) []byte {
	b = append(b, byte(u.t), byte(u.flags), byte(u.length>>8), byte(u.length), 0, 0, 0, 1)
	return append(b, make([]byte, u.length-wire.MessageHeaderBytes)...)
}

// anything is a message with fields from a small set, so that it hits what exists, and its borders.
func anything(rng *rand.Rand, sessions []wire.SessionID) appender {
	session := sessions[rng.IntN(len(sessions))]
	numbers := []wire.Number{0, 1, 2, 3, 5, 8, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64 - 1, math.MaxUint64}
	number := func() wire.Number { return numbers[rng.IntN(len(numbers))] }
	slot := []wire.Slot{0, 1, 2, 255, 256, 65535}[rng.IntN(6)]
	seq := []uint32{0, 1, 2, math.MaxUint32, 1 << 31}[rng.IntN(5)]
	switch rng.IntN(17) {
	case 0, 1, 2, 3:
		return &wire.Request{
			Register: rng.IntN(3) == 0, Retransmission: rng.IntN(3) == 0, Unasked: rng.IntN(3) == 0, Session: session, Number: number(), Next: number(),
			Method: []wire.Method{wire.MethodOf("work"), 0, 1}[rng.IntN(3)], Seq: seq, Slot: slot, Demand: uint16(rng.Uint32()),
			HasBudget: rng.IntN(3) == 0, Budget: time.Duration(rng.IntN(1000)) * time.Microsecond,
			Payload: marked(rng.Uint64())[:8+rng.IntN(56)],
		}
	case 4:
		return &wire.Probe{Session: session, Next: number(), Seq: seq, Demand: uint16(rng.Uint32())}
	case 5:
		return &wire.Cancel{Session: session, Number: number(), Slot: slot}
	case 6:
		return &wire.Deregister{Session: session, Next: number(), Seq: seq}
	case 7:
		return &wire.Open{Connection: wire.ConnectionID(number()), HasToken: rng.IntN(2) == 0}
	case 8:
		return &wire.Accept{Connection: wire.ConnectionID(number())}
	case 9:
		return &wire.Retry{}
	case 10:
		return &wire.Gone{Connection: wire.ConnectionID(number()), Session: session}
	case 11:
		return &wire.Registered{Session: session, ServerSession: session, Slots: uint16(slot), TargetDelay: time.Hour}
	case 12:
		return &wire.Reply{Session: session, Number: number(), Limit: number(), Seq: seq, Slot: slot, Level: uint8(rng.Uint32()), Service: time.Second}
	case 13:
		return &wire.Reject{Session: session, Number: number(), Limit: number(), Seq: seq, Slot: slot, Level: uint8(rng.Uint32()), Reason: wire.RejectReason(1 + rng.IntN(8))}
	case 14:
		return &wire.Busy{Session: session, Number: number(), Slot: slot}
	case 15:
		return &wire.CreditUpdate{Session: session, Limit: number(), Seq: seq}
	default:
		return &unknown{wire.Type(rng.IntN(256)), wire.MessageFlags(rng.IntN(256)), 8 + rng.IntN(40)}
	}
}

// bounded checks the bounds of what strangers can make a node keep.
func (n *node) bounded(t testing.TB) {
	t.Helper()
	d := n.d
	if err := d.Audit(); err != nil {
		t.Fatal(err)
	}
	q := &d.server.queue
	if n.lent != 0 || d.server.inService.now > d.server.Workers || q.live > max(d.server.QueueMax, 0) || len(q.ring) > max(64, 4*d.server.QueueMax) {
		t.Fatalf("%d buffers lent, %d in service, %d queued in a ring of %d", n.lent, d.server.inService.now, q.live, len(q.ring))
	}
	if d.conns.Len() > d.cfg.ConnectionsMax || d.server.peers.Len() > d.cfg.SessionsMax || d.server.pool.count > freeRequestsMax {
		t.Fatalf("%d connections, %d sessions, %d idle objects", d.conns.Len(), d.server.peers.Len(), d.server.pool.count)
	}
	if d.server.ledger != nil {
		if c := d.server.ledger.Totals().Counters; c.Misused != 0 {
			t.Fatalf("%d events for no session, or answers to nothing", c.Misused)
		}
	}
}

// Any message in any state, to a server and to a client, from peers that may be what they say or not.
func TestAnyMessageInAnyState(t *testing.T) {
	rounds := 400
	if small() {
		rounds = 60
	}
	rng := seedtest.Rand(t)
	for range rounds {
		w := newNetwork(t, rng.Uint64())
		server := w.node(1, Config{TrustedNetwork: true, SessionsMax: 20, ConnectionsMax: 5})
		server.serve(10*time.Microsecond, 80*time.Microsecond, nil)
		p := w.peer(9, server)
		if rng.IntN(4) > 0 {
			p.connect()
		}
		handles := []wire.SessionID{0, 1, 2, 3, 1<<24 | 1, 1<<24 | 2, 2<<24 | 1}
		for range 60 {
			var messages []appender
			for range 1 + rng.IntN(4) {
				messages = append(messages, anything(rng, handles))
			}
			flags, id := wire.PacketFlags(0), p.remote
			switch rng.IntN(10) {
			case 0:
				flags, id = wire.PacketHandshake, 0
				messages = append([]appender{&wire.Open{Connection: wire.ConnectionID(1 + rng.IntN(8))}}, messages...)
			case 1:
				id = wire.ConnectionID(rng.Uint64())
			}
			data := p.packet(flags, id, messages...)
			p.deliver(data)
			if rng.IntN(4) == 0 {
				p.deliver(data)
			}
			server.bounded(t)
			w.run(w.now.Add(time.Duration(rng.IntN(100)) * time.Microsecond))
		}
		w.run(w.now.Add(10 * time.Millisecond))
		server.bounded(t)
		if server.d.Pending() != 0 {
			t.Fatal("requests pending for ever")
		}
	}
}

func TestAnyAnswerInAnyState(t *testing.T) {
	rounds := 400
	if small() {
		rounds = 60
	}
	rng := seedtest.Rand(t)
	for range rounds {
		w, p, client, s := pretend(t)
		var calls []*call
		var closed bool
		for step := range 60 {
			switch rng.IntN(8) {
			case 0:
				deadline := clock.Time(0)
				if rng.IntN(2) == 0 {
					deadline = w.now.Add(time.Duration(rng.IntN(3000)) * time.Microsecond)
				}
				calls = append(calls, client.call(s, uint64(step), deadline))
			case 1:
				if len(calls) > 0 {
					client.d.Cancel(w.now, &calls[rng.IntN(len(calls))].Call)
				}
			case 2:
				if rng.IntN(10) == 0 {
					client.d.CloseSession(w.now, s)
					closed = true
				}
			}
			id := wire.ConnectionID(0)
			if c := client.d.conns.At(0); c != nil {
				id = c.Local
			}
			if rng.IntN(10) == 0 {
				id = 0
			}
			if step == 5 && rng.IntN(3) > 0 {
				p.deliver(p.packet(0, id, &wire.Accept{Connection: p.local}, &wire.Registered{Session: s.local, ServerSession: 1, Slots: 9}))
			}
			p.deliver(p.packet(0, id, anything(rng, []wire.SessionID{0, 1, s.local, s.local, s.remote})))
			client.bounded(t)
			w.run(w.now.Add(time.Duration(rng.IntN(1000)) * time.Microsecond))
		}
		w.run(w.now.Add(client.d.cfg.GiveUp + time.Second))
		client.bounded(t)
		for i, c := range calls {
			if c.done != 1 {
				t.Fatalf("call %d of %d has %d outcomes; closed %v", i, len(calls), c.done, closed)
			}
		}
	}
}

// Liars and hoarders must not take the others' share.
func TestLiarsDoNotTakeTheOthersShare(t *testing.T) {
	good := map[bool]float64{}
	s := seedtest.Seed(t)
	length := 50 * time.Millisecond
	if small() {
		length = 10 * time.Millisecond
	}
	for _, lies := range []bool{false, true} {
		k := newSoak(t, s, weather{load: 0.8, length: length, deadline: 2 * time.Millisecond, trusted: true})
		if lies {
			k.lie()
		}
		k.run()
		k.check(t)
		good[lies] = float64(k.goodput()) / float64(len(k.calls))
		k.server().bounded(t)
	}
	t.Logf("a share of %.3f of the calls is good without liars, %.3f with them", good[false], good[true])
	if good[true] < 0.9*good[false] {
		t.Errorf("goodput fell from %.3f to %.3f", good[false], good[true])
	}
}

// lie adds 50 sessions that ask for everything and use nothing, and 50 that say and send what they may not.
func (k *soak) lie() {
	p := k.w.peer(99, k.server()).connect()
	var sessions []wire.SessionID
	for i := range 100 {
		r := p.request(wire.SessionID(1+i), 0, 0, uint64(1<<40+i))
		r.Register, r.Demand = true, math.MaxUint16
		p.say(r)
		k.w.run(k.w.now.Add(20 * time.Microsecond))
		m, _ := wire.ParseRegistered(p.last(wire.TypeRegistered).Raw)
		sessions = append(sessions, m.ServerSession)
	}
	end := k.w.now.Add(k.length)
	var lie func()
	lie = func() {
		i := k.w.rng.IntN(len(sessions))
		id := sessions[i]
		switch {
		case i < 50: // a hoarder asks again and again
			p.say(&wire.Probe{Session: id, Next: 1, Demand: math.MaxUint16})
		case k.w.rng.IntN(2) == 0:
			r := p.request(id, math.MaxUint64, wire.Slot(k.w.rng.IntN(300)), uint64(2<<40))
			r.Next, r.Demand = []wire.Number{1 << 63, math.MaxUint64}[k.w.rng.IntN(2)], math.MaxUint16
			p.say(r, &wire.Cancel{Session: id, Number: 5}, &unknown{wire.TypeStream, 0, 20})
		default:
			p.say(&wire.Probe{Session: id, Next: 1 << 63, Seq: 77, Demand: math.MaxUint16})
		}
		p.heard, p.headers = nil, nil
		if k.w.now < end {
			k.w.at(k.w.now.Add(20*time.Microsecond), lie)
		}
	}
	k.w.at(k.w.now, lie)
}

// A million registrations of one peer leave room for others.
func TestRegistrationFlood(t *testing.T) {
	flood := 1_000_000
	if small() {
		flood = 50_000
	}
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true, SessionsMax: 100_000})
	server.unchecked = true
	server.serve(10*time.Microsecond, 80*time.Microsecond, nil)
	p := w.peer(9, server).connect()
	r := p.request(1, 0, 0, 1)
	r.Register, r.Payload = true, nil
	for i := range flood {
		r.Session = wire.SessionID(1 + i)
		server.inbox = append(server.inbox, Datagram{Payload: p.packet(0, p.remote, r), From: p.addr, Arrival: w.now})
		if i%64 == 63 {
			server.turn()
			p.heard, p.headers = nil, nil
			w.run(w.now.Add(10 * time.Microsecond))
		}
	}
	if got := server.d.Snapshot(); got.Sessions > 50_000 || got.Sessions < 40_000 {
		t.Errorf("%d sessions", got.Sessions)
	}
	server.bounded(t)
	w.run(w.now.Add(10 * time.Millisecond)) // the flood's own requests are served or refused
	client := w.node(2, Config{})
	ok := 0
	for range 20 {
		s, _ := client.d.Open(w.now, server.addr)
		c := client.call(s, 2, w.now.Add(20*time.Millisecond))
		w.run(w.now.Add(20 * time.Millisecond))
		if c.Outcome == OutcomeOK {
			ok++
		}
	}
	if ok != 20 {
		t.Errorf("%d of 20 newcomers were served", ok)
	}
}

// Ten busy clients among ten thousand idle ones get the whole capacity.
func TestTenBusyAmongTenThousandIdle(t *testing.T) {
	w := newNetwork(t, seedtest.Seed(t))
	server := w.node(1, Config{TrustedNetwork: true})
	server.unchecked = true
	server.serve(10*time.Microsecond, 80*time.Microsecond, nil)
	client := w.node(2, Config{})
	for range 10_000 {
		s, err := client.d.Open(w.now, server.addr)
		if err != nil {
			t.Fatal(err)
		}
		client.call(s, 1, 0)
		w.run(w.now.Add(11 * time.Microsecond))
	}
	w.run(w.now.Add(time.Millisecond))
	done := 0
	end := w.now.Add(100 * time.Millisecond)
	for range 10 {
		s, _ := client.d.Open(w.now, server.addr)
		for range 16 { // closed loop, 16 outstanding
			c := &call{}
			c.Session, c.Method, c.Payload = s, wire.MethodOf("work"), marked(2)
			c.Done = func(*Call) {
				if c.Outcome == OutcomeOK {
					done++
				}
				if w.now < end {
					w.at(w.now, func() {
						c.Reply = c.Reply[:0]
						client.d.Submit(w.now, &c.Call)
						client.turn()
					})
				}
			}
			client.d.Submit(w.now, &c.Call)
		}
	}
	client.turn()
	w.run(end)
	capacity := float64(100*time.Millisecond) / float64(10*time.Microsecond)
	t.Logf("%.3f of the capacity", float64(done)/capacity)
	if float64(done) < 0.85*capacity {
		t.Errorf("%d of %.0f", done, capacity)
	}
	server.audit()
	client.audit()
}
