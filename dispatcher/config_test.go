package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// reasonOf is the reason of the last reject.
func (p *peer) reasonOf() wire.RejectReason {
	p.w.t.Helper()
	r, err := wire.ParseReject(p.last(wire.TypeReject).Raw)
	if err != nil {
		p.w.t.Fatal(err)
	}
	return r.Reason
}

func TestSlotsMax(t *testing.T) {
	w, server, p := trusting(t, 1, Config{SlotsMax: 4})
	a, _ := p.register(1, 1)
	w.run(w.now.Add(time.Millisecond))
	p.say(p.request(a, 1, 3, 2))
	w.run(w.now.Add(time.Millisecond))
	p.say(p.request(a, 2, 4, 3))
	p.settle()
	if server.ran[2] != 1 || server.ran[3] != 0 || p.reasonOf() != wire.RejectNoSlot {
		t.Errorf("ran %v, %v", server.ran, p.reasonOf())
	}
	r, _ := wire.ParseRegistered(p.last(wire.TypeRegistered).Raw)
	if r.Slots != 4 {
		t.Errorf("clients are told of %d", r.Slots)
	}
	if got := (Config{SlotsMax: 1 << 20, SessionsMax: 1 << 30}).withDefaults(); got.SlotsMax != session.SlotsMax || got.SessionsMax != session.PeersMax {
		t.Errorf("not clamped: %d, %d", got.SlotsMax, got.SessionsMax)
	}
}

func TestSlotsMaxOfAClient(t *testing.T) {
	w, p, client, s := pretend(t)
	client.call(s, 1, 0)
	p.settle()
	p.accept(s, 5, 100) // grants 100, has 16 slots
	for i := range 20 {
		client.call(s, uint64(2+i), 0)
	}
	if s.Outstanding() != 16 || s.Waiting() != 5 {
		t.Errorf("%d outstanding, %d wait", s.Outstanding(), s.Waiting())
	}
	_ = w
}

func TestConnectionsMax(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true, ConnectionsMax: 3})
	server.serve(10*time.Microsecond, 0, nil)
	for i := range byte(3) {
		w.peer(10+i, server).connect()
	}
	p := w.peer(20, server)
	p.deliver(p.packet(wire.PacketHandshake, 0, &wire.Open{Connection: p.local}))
	p.settle()
	if got := server.d.Snapshot(); got.Connections != 3 || got.TooMany != 1 || len(p.heard) != 0 {
		t.Errorf("%d connections, %d too many", got.Connections, got.TooMany)
	}
	client := w.node(2, Config{ConnectionsMax: 1})
	if _, err := client.d.Open(w.now, server.addr); err != nil {
		t.Fatal(err)
	}
	if _, err := client.d.Open(w.now, p.addr); err == nil {
		t.Error("a second connection")
	}
}

func TestSessionsMax(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true, SessionsMax: 2})
	server.serve(10*time.Microsecond, 0, nil)
	for i := range byte(3) {
		p := w.peer(10+i, server).connect()
		r := p.request(1, 0, 0, uint64(i))
		r.Register = true
		p.say(r)
		w.run(w.now.Add(time.Millisecond))
	}
	if got := server.d.Snapshot(); got.Sessions != 2 || got.TooMany != 1 || got.Completed != 2 {
		t.Errorf("%d sessions, %d too many, %d served", got.Sessions, got.TooMany, got.Completed)
	}
}

func TestWaitingMax(t *testing.T) {
	w := newNetwork(t, 1)
	client := w.node(2, Config{WaitingMax: 3})
	s, _ := client.d.Open(w.now, wire.Addr{IP: [16]byte{15: 1}, Port: 1})
	for range 4 { // one is sent, to register
		if c := client.call(s, 1, 0); c.done != 0 {
			t.Fatalf("outcome %v", c.Outcome)
		}
	}
	if c := client.call(s, 1, 0); c.Outcome != OutcomeQueueFull {
		t.Errorf("one more: %v", c.Outcome)
	}
}

func TestIdleTimeout(t *testing.T) {
	w, server, p := trusting(t, 1, Config{IdleTimeout: 10 * time.Second})
	p.register(1, 1)
	w.run(w.now.Add(time.Millisecond))
	for _, x := range []struct {
		after time.Duration
		want  int
	}{{9 * time.Second, 1}, {2 * time.Second, 0}} {
		w.now = w.now.Add(x.after)
		server.turn()
		w.run(w.now.Add(10 * time.Millisecond))
		server.turn()
		if got := server.d.Snapshot(); got.Connections != x.want || got.Sessions != x.want {
			t.Errorf("after %v more: %d connections, %d sessions", x.after, got.Connections, got.Sessions)
		}
	}
	server.audit()
}

func TestTimesOfAnUnansweredCall(t *testing.T) {
	w := newNetwork(t, 1)
	client := w.node(2, Config{RTOInitial: 3 * time.Millisecond, GiveUp: 2 * time.Second})
	p := w.peer(9, client)
	s, _ := client.d.Open(w.now, p.addr)
	start := w.now
	c := client.call(s, 1, 0)
	var sent []time.Duration
	for c.done == 0 {
		before := len(p.heard)
		w.run(w.now.Add(100 * time.Microsecond))
		if len(p.heard) > before {
			sent = append(sent, w.now.Sub(start))
		}
	}
	if first := sent[1]; first < 3*time.Millisecond || first > 3200*time.Microsecond {
		t.Errorf("retransmitted after %v", first)
	}
	for i := range sent[2:] {
		if gap := sent[i+2] - sent[i+1]; gap > rtoMax+200*time.Microsecond {
			t.Errorf("%v between two retransmissions", gap)
		}
	}
	if took := c.at.Sub(start); took != 2*time.Second || c.Outcome != OutcomePeerLost {
		t.Errorf("%v after %v", c.Outcome, took)
	}
}

func TestWorkersAndQueueMax(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.workers, server.service = 100, time.Second
	server.d.Serve(ServeConfig{
		Credit: credit.NewLedger(credit.Config{Checked: true}, credit.NewNone(64)), Workers: 3, QueueMax: 5,
	})
	_ = server.d.Register(&Method{Name: "work", ID: wire.MethodOf("work"), Run: server.handle})
	p := w.peer(9, server).connect()
	for i := range 10 {
		p.register(wire.SessionID(1+i), uint64(1+i))
	}
	got := server.d.Snapshot()
	if got.InService != 3 || got.Queued != 5 || got.Rejected[wire.RejectOverloaded] != 2 {
		t.Errorf("%d in service, %d queued, %d rejected", got.InService, got.Queued, got.Rejected[wire.RejectOverloaded])
	}
	w.run(w.now.Add(5 * time.Second))
	if got := server.d.Snapshot(); got.Completed != 8 {
		t.Errorf("%d completed", got.Completed)
	}
	server.audit()
}

func TestBatchSize(t *testing.T) {
	_, server, p := trusting(t, 1, Config{})
	for range batchSize + 1 {
		server.inbox = append(server.inbox, Datagram{Payload: []byte{1}, From: p.addr, Arrival: p.w.now})
	}
	if n := server.d.Receive(p.w.now); n != batchSize {
		t.Errorf("%d packets in a turn", n)
	}
}

// Strangers get a burst of small answers and then a rate, and each is no larger than its question.
func TestSmallAnswersAreBounded(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{})
	server.serve(10*time.Microsecond, 0, nil)
	p := w.peer(9, server)
	p.deliver(p.packet(0, 12345)) // an empty packet of an unknown connection: no answer is as small
	p.settle()
	if len(p.heard) != 0 {
		t.Error("a small question got a larger answer")
	}
	flood := func(n int, take time.Duration) int {
		before := len(p.heard)
		for range n {
			w.now = w.now.Add(take / time.Duration(n))
			p.deliver(p.packet(0, 12345, &wire.Probe{Session: 1}))
		}
		p.settle()
		return len(p.heard) - before
	}
	if got := flood(5000, time.Microsecond); got != smallAnswerBurst {
		t.Errorf("%d answers at once", got)
	}
	if got := flood(50_000, 100*time.Millisecond); got > smallAnswerRate/10+1 || got < smallAnswerRate/10-10 {
		t.Errorf("%d answers in 100 ms", got)
	}
	if got := server.d.Snapshot(); got.SmallAnswersHeldBack == 0 || got.UnknownConnection != 55_001 {
		t.Errorf("%d held back of %d", got.SmallAnswersHeldBack, got.UnknownConnection)
	}
}

// A session that provokes refusals must not use up what strangers need to get in, nor they its own.
func TestRefusalsHaveTheirOwnRate(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.serve(10*time.Microsecond, 80*time.Microsecond, nil)
	p := w.peer(9, server).connect()
	a, _ := p.register(1, 1)
	for range 3 * smallAnswerBurst {
		p.say(p.request(a, 1<<40, 0, 5))
	}
	server.d.cfg.TrustedNetwork = false
	client := w.node(2, Config{})
	s, _ := client.d.Open(w.now, server.addr)
	c := client.call(s, 2, w.now.Add(time.Millisecond))
	w.run(w.now.Add(time.Millisecond))
	if c.Outcome != OutcomeOK || c.Retransmissions != 1 {
		t.Errorf("a newcomer: %v, %d retransmissions", c.Outcome, c.Retransmissions)
	}
}

func TestFreeRequestsMax(t *testing.T) {
	var p requestPool
	var all []*Request
	for range freeRequestsMax + 10 {
		all = append(all, p.get())
	}
	for _, r := range all {
		p.put(r)
	}
	if p.count != freeRequestsMax || p.lent != 0 {
		t.Errorf("%d kept, %d lent", p.count, p.lent)
	}
}

func TestTimeoutHasAMargin(t *testing.T) {
	c := &dialed{Conn: &session.Conn{}, threshold: 160 * time.Microsecond}
	if got := c.rto(7 * time.Millisecond); got != 7*time.Millisecond {
		t.Errorf("before anything was measured: %v", got)
	}
	for range 100 {
		c.RTT.Sample(10 * time.Microsecond)
	}
	if got := c.rto(0); got < 10*time.Microsecond+c.threshold+settleMargin {
		t.Errorf("%v", got)
	}
	c.threshold = time.Hour
	if got := c.rto(0); got != rtoMax {
		t.Errorf("%v", got)
	}
}

// However many sessions wait, a turn grants to a bounded number, and the server comes back for the rest.
func TestGrantsOfATurnAreBounded(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.workers = 1000
	server.d.Serve(ServeConfig{Credit: credit.NewLedger(credit.Config{Checked: true, DrainedPerUpdate: 1000}, credit.NewNone(4)), Workers: 1000})
	_ = server.d.Register(&Method{Name: "work", ID: wire.MethodOf("work"), Run: server.handle})
	p := w.peer(9, server).connect()
	var ids []wire.SessionID
	for i := range 100 {
		id, _ := p.register(wire.SessionID(1+i), uint64(1+i))
		ids = append(ids, id)
	}
	w.run(w.now.Add(3 * time.Second)) // their leases run out
	for _, id := range ids {
		server.inbox = append(server.inbox, Datagram{
			Payload: p.packet(0, p.remote, &wire.Probe{Session: id, Next: 1, Demand: 1}), From: p.addr, Arrival: w.now,
		})
	}
	before := server.d.stats.CreditUpdates
	for server.d.Receive(w.now) > 0 {
	}
	for granted := before; granted < before+100; {
		server.d.Tick(w.now)
		n := server.d.stats.CreditUpdates - granted
		if n > drainedGrantsTurn {
			t.Fatalf("%d grants in a turn", n)
		}
		if granted += n; granted < before+100 {
			at := server.d.Deadline()
			if at == 0 || at.Sub(w.now) > drainedEvery {
				t.Fatalf("sessions wait, and the server comes back in %v", at.Sub(w.now))
			}
			w.now = at
		}
	}
	server.d.Flush(w.now)
}

// A server that does not confirm the end of a session is told for as long as a call would wait for it, ever less often, and no longer.
func TestFarewellEnds(t *testing.T) {
	w, server, client, s := pair(t, true)
	client.call(s, 1, 0)
	w.run(w.now.Add(time.Millisecond))
	delete(w.nodes, server.addr)
	p := w.peer(1, client)
	client.d.CloseSession(w.now, s)
	client.turn()
	w.run(w.now.Add(10*time.Second - 1))
	if client.d.caller.sessions[1] == nil {
		t.Error("forgotten too soon")
	}
	w.run(w.now.Add(15 * time.Second))
	if got := len(p.all(wire.TypeDeregister)); got < 10 || got > 20 {
		t.Errorf("told %d times", got)
	}
	if at := client.d.Deadline(); at != clock.Time(0) || client.d.caller.sessions[1] != nil {
		t.Error("not forgotten")
	}
}

// Every table of slots is looked at about once a second, however many there are.
func TestSweepReachesAll(t *testing.T) {
	for _, all := range []int{1, 100, 10_000, 1_000_000} {
		if turns := (all + sweepCount(all) - 1) / sweepCount(all); time.Duration(turns)*sweepEvery > 1100*time.Millisecond {
			t.Errorf("%d take %v", all, time.Duration(turns)*sweepEvery)
		}
	}
}
