package dispatcher

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

const us = time.Microsecond

// open is a server without control of the credits, whose target is 80 us, and a session of a client that knows it. A request takes 10 us.
func open(t *testing.T, workers int, admission Admission, method admit.MethodConfig) (*network, *node, *node, *Session) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.workers, server.admission, server.method = workers, admission, method
	server.serve(10*us, 80*us, credit.NewNone(0))
	client := w.node(2, Config{})
	s, err := client.d.Open(w.now, server.addr)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // what a request takes is learnt
		client.call(s, 0, 0)
		w.run(w.now.Add(time.Millisecond))
	}
	return w, server, client, s
}

// levelled makes a call of a level.
func (n *node) levelled(s *Session, m uint64, level wire.Criticality) *call {
	c := &call{}
	c.Session, c.Method, c.Payload, c.Criticality = s, wire.MethodOf("work"), marked(m), level
	c.Done = func(*Call) {
		c.done++
		c.at = n.w.now
	}
	n.d.Submit(n.w.now, &c.Call)
	n.turn()
	return c
}

// TestLevelsAtTheDoor has forty calls of each level come at once, to one worker: each level is let in as long as the queued work allows. A scheme without a door of
// its own lets in all that is critical.
func TestLevelsAtTheDoor(t *testing.T) {
	for level, want := range map[wire.Criticality]int{
		wire.Sheddable: 6, wire.SheddablePlus: 8, wire.Critical: 40, wire.CriticalPlus: 40, wire.CriticalityUnset: 40,
	} {
		w, server, client, s := open(t, 1, Admission{Levels: admit.LevelsConfig{Floor: -1}}, admit.MethodConfig{})
		var calls []*call
		for i := range uint64(40) {
			calls = append(calls, client.levelled(s, i, level))
		}
		w.run(w.now.Add(time.Second))
		ok := 0
		for _, c := range calls {
			if c.Outcome == OutcomeOK {
				ok++
			} else if c.Outcome != OutcomeRejected || c.Reason != wire.RejectOverloaded || c.Advice != wire.AdviceDoNotRetry {
				t.Errorf("level %d: %v, %v", level, c.Outcome, c.Reason)
			}
		}
		if n := server.d.Snapshot().Admission; ok != want || n.Refused[admit.ReasonOverloaded] != uint64(40-want) {
			t.Errorf("level %d: %d of 40 let in, want %d: %+v", level, ok, want, n)
		}
		server.audit()
	}
}

// TestCriticalPlusOutlastsTheScheme: the scheme's own door shuts at 160 us for what is critical, and at 200 for what is more.
func TestCriticalPlusOutlastsTheScheme(t *testing.T) {
	for level, want := range map[wire.Criticality]int{wire.Critical: 18, wire.CriticalityUnset: 18, wire.CriticalPlus: 22} {
		w, server, client, s := open(t, 1, Admission{}, admit.MethodConfig{})
		client2 := w.node(1, Config{TrustedNetwork: true, Epoch: 9}) // the same address, with a door
		client2.slots = 256
		client2.serve(10*us, 80*us, &shut{None: credit.NewNone(0), at: 160 * us})
		_ = server
		for range 3 {
			client.call(s, 0, 0)
			w.run(w.now.Add(20 * time.Millisecond))
		}
		ok := 0
		var calls []*call
		for i := range uint64(40) {
			calls = append(calls, client.levelled(s, i, level))
		}
		w.run(w.now.Add(time.Second))
		for _, c := range calls {
			if c.Outcome == OutcomeOK {
				ok++
			}
		}
		if n := client2.d.Snapshot().Admission; ok != want || n.Returned != uint64(40-want) {
			t.Errorf("level %d: %d of 40 let in, want %d: %+v", level, ok, want, n)
		}
	}
}

// shut is a scheme with a door alone.
type shut struct {
	*credit.None
	at time.Duration
}

func (s *shut) Admit(a credit.Arrival) bool { return a.Delay <= s.at }

// TestInServiceOfAMethod: two at once of four workers; the others wait their turn, and hold up nobody.
func TestInServiceOfAMethod(t *testing.T) {
	w, server, client, s := open(t, 4, Admission{}, admit.MethodConfig{InService: 2})
	if err := server.d.Register(&Method{Name: "other", ID: wire.MethodOf("other"), Run: server.handle}); err != nil {
		t.Fatal(err)
	}
	start := w.now
	var calls []*call
	for i := range uint64(6) {
		calls = append(calls, client.call(s, i, 0))
	}
	other := &call{}
	other.Session, other.Method, other.Payload, other.Done = s, wire.MethodOf("other"), marked(7), func(*Call) { other.at = w.now }
	client.d.Submit(w.now, &other.Call)
	client.turn()
	w.run(start.Add(6 * us))
	if q, parked, pending := server.d.server.queue.live, server.d.server.parked, server.d.Pending(); q != 0 || parked != 4 || pending != 7 {
		t.Errorf("%d queued, %d wait for the bound, %d pending", q, parked, pending)
	}
	server.audit()
	client.d.Cancel(w.now, &calls[5].Call) // one that waits for the bound
	client.turn()
	w.run(w.now.Add(time.Second))
	for i, c := range calls[:5] {
		if want := time.Duration(20+10*(i/2)) * us; c.Outcome != OutcomeOK || c.at.Sub(start) != want {
			t.Errorf("call %d: %v after %v, want %v", i, c.Outcome, c.at.Sub(start), want)
		}
	}
	if calls[5].Outcome != OutcomeCancelled || server.ran[5] != 0 || other.Outcome != OutcomeOK || other.at.Sub(start) != 20*us {
		t.Errorf("cancelled: %v; the other method: %v after %v", calls[5].Outcome, other.Outcome, other.at.Sub(start))
	}
	if server.d.Pending() != 0 {
		t.Errorf("%d pending", server.d.Pending())
	}
	server.audit()
}

// TestMethodsBeforeServe: methods are registered before and after, and keep their bounds.
func TestMethodsBeforeServe(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.workers = 4
	early := &Method{Name: "early", ID: wire.MethodOf("early"), Run: server.handle, Admission: admit.MethodConfig{InService: 1}}
	if err := server.d.Register(early); err != nil {
		t.Fatal(err)
	}
	server.method.InService = 1
	server.serve(10*us, 80*us, credit.NewNone(0))
	client := w.node(2, Config{})
	s, err := client.d.Open(w.now, server.addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"early", "work"} {
		ok := 0
		for range 5 {
			c := &call{}
			c.Session, c.Method, c.Payload = s, wire.MethodOf(method), marked(1)
			c.Done = func(*Call) {
				if c.Outcome == OutcomeOK {
					ok++
				}
			}
			client.d.Submit(w.now, &c.Call)
		}
		client.turn()
		w.run(w.now.Add(time.Millisecond))
		if ok != 5 {
			t.Errorf("%s: %d of 5 answered", method, ok)
		}
	}
	server.audit()
}

// TestInServiceRefusesByItsOwnQueue: what waits for the bound is refused by how long that will take, and does not shut the door to others.
func TestInServiceRefusesByItsOwnQueue(t *testing.T) {
	w, server, client, s := open(t, 4, Admission{}, admit.MethodConfig{InService: 1, Level: admit.SheddablePlus})
	for i := range uint64(40) {
		client.call(s, i, 0)
	}
	w.run(w.now.Add(6 * us))
	if parked := server.d.server.parked; parked < 6 || parked > 9 { // 60 us of 10 each
		t.Errorf("%d wait", parked)
	}
	if d := server.d.Delay(); d != 0 {
		t.Errorf("the delay of all is %v", d)
	}
	client.d.CloseSession(w.now, s)
	client.turn()
	w.run(w.now.Add(time.Second))
	server.audit()
	if p := server.d.Pending(); p != 0 {
		t.Errorf("%d pending after the session's end", p)
	}
}

// TestNewestFirst: while the oldest have waited too long, who comes last is served first, and who waited far too long is refused.
func TestNewestFirst(t *testing.T) {
	w, server, client, s := open(t, 1, Admission{Order: admit.OrderConfig{NewestFirst: 50 * us, Expire: 200 * us}}, admit.MethodConfig{})
	var old, late []*call
	for i := range uint64(40) {
		old = append(old, client.call(s, i, 0))
	}
	w.run(w.now.Add(75 * us))
	start := w.now
	for i := range uint64(3) {
		late = append(late, client.call(s, 100+i, 0))
	}
	w.run(w.now.Add(time.Second))
	for _, c := range late {
		if took := c.at.Sub(start); c.Outcome != OutcomeOK || took > 60*us {
			t.Errorf("a late one: %v after %v", c.Outcome, took)
		}
	}
	ok, refused := 0, 0
	for _, c := range old {
		switch {
		case c.Outcome == OutcomeOK:
			ok++
		case c.Outcome == OutcomeRejected && c.Reason == wire.RejectOverloaded && c.at.Sub(start) <= 145*us:
			refused++
		}
	}
	if ok+refused != 40 || refused < 15 || server.d.Snapshot().Admission.Refused[admit.ReasonWaited] != uint64(refused) {
		t.Errorf("%d answered, %d refused in time", ok, refused)
	}
	server.audit()
}

// TestCoDelAtTheQueue refuses from a queue that stands.
func TestCoDelAtTheQueue(t *testing.T) {
	w, server, client, s := open(t, 1, Admission{CoDelTarget: 20 * us, CoDelInterval: 40 * us}, admit.MethodConfig{})
	for i := range uint64(40) {
		client.call(s, i, 0)
	}
	w.run(w.now.Add(time.Second))
	if n := server.d.Snapshot().Admission.Refused[admit.ReasonCoDel]; n < 3 || n > 30 {
		t.Errorf("%d refused", n)
	}
	server.audit()
}

// TestClientRate: each connection has its own.
func TestClientRate(t *testing.T) {
	w, server, client, s := open(t, 4, Admission{ClientRate: 1000, ClientBurst: 5}, admit.MethodConfig{})
	other := w.node(3, Config{})
	s2, err := other.d.Open(w.now, server.addr)
	if err != nil {
		t.Fatal(err)
	}
	count := func(n *node, s *Session) (ok int) {
		var calls []*call
		for i := range uint64(20) {
			calls = append(calls, n.call(s, i, 0))
		}
		w.run(w.now.Add(5 * time.Millisecond))
		for _, c := range calls {
			if c.Outcome == OutcomeOK {
				ok++
			} else if c.Reason != wire.RejectRateLimited || c.Advice != wire.AdviceNone || c.RetryAfter <= 0 {
				t.Errorf("refused with %v, advice %d, again after %v, by a bucket that fills by itself", c.Reason, c.Advice, c.RetryAfter)
			}
		}
		return ok
	}
	if a, b := count(client, s), count(other, s2); a != 5 || b != 5 {
		t.Errorf("%d and %d let in, of bursts of 5", a, b)
	}
}

// TestAdviceOnTheWire: what a refusal says, by who refuses, and when the like may come again.
func TestAdviceOnTheWire(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.serve(10*us, 80*us, credit.NewNone(0))
	p := w.peer(9, server).connect()
	id, _ := p.register(1, 1)
	w.run(w.now.Add(100 * us)) // its answer brings credits
	number := wire.Number(1)
	refused := func(attempt uint8, criticality wire.Criticality) wire.Reject {
		t.Helper()
		r := p.request(id, number, wire.Slot(number), 2)
		r.Attempt, r.Criticality = attempt, criticality
		number++
		p.say(r)
		p.settle()
		m, err := wire.ParseReject(p.last(wire.TypeReject).Raw)
		if err != nil || m.Number != r.Number {
			t.Fatalf("%v; rejected is %d, not %d", err, m.Number, r.Number)
		}
		return m
	}
	server.d.Door().RetriesOff(true)
	if m := refused(1, 0); m.Reason != wire.RejectOverloaded || m.Advice != wire.AdviceDoNotRetry || m.RetryAfter != 0 {
		t.Errorf("retries off: %+v", m)
	}
	server.d.Door().RetriesOff(false)
	server.d.Door().Drain(true)
	if m := refused(0, 0); m.Reason != wire.RejectDraining || m.Advice != wire.AdviceNone {
		t.Errorf("draining: %+v", m)
	}
	server.d.Door().Drain(false)
	server.d.Door().Warmup(500 * time.Millisecond)
	for {
		r := p.request(id, number, wire.Slot(number), 2)
		number++
		before := len(p.all(wire.TypeReject))
		p.say(r)
		w.run(w.now.Add(100 * us))
		if len(p.all(wire.TypeReject)) > before {
			break
		}
	}
	if m, _ := wire.ParseReject(p.last(wire.TypeReject).Raw); m.Reason != wire.RejectOverloaded || m.RetryAfter < 400*time.Millisecond {
		t.Errorf("cold: %+v", m)
	}
}

// TestRefusedAgainOnTheWire: who repeats a request that was refused is told the same, with what is left of the wait.
func TestRefusedAgainOnTheWire(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.serve(10*us, 80*us, credit.NewNone(0))
	p := w.peer(9, server).connect()
	id, _ := p.register(1, 1)
	w.run(w.now.Add(100 * us)) // its answer brings credits
	said := func(r *wire.Request) wire.Reject {
		t.Helper()
		p.say(r)
		p.settle()
		m, err := wire.ParseReject(p.last(wire.TypeReject).Raw)
		if err != nil || m.Number != r.Number {
			t.Fatalf("%v; rejected is %d, not %d", err, m.Number, r.Number)
		}
		return m
	}
	server.d.Door().Warmup(500 * time.Millisecond)
	var r *wire.Request
	for number := wire.Number(1); len(p.all(wire.TypeReject)) == 0; number++ {
		r = p.request(id, number, wire.Slot(number), 2)
		p.say(r)
		p.settle()
	}
	first, _ := wire.ParseReject(p.last(wire.TypeReject).Raw)
	start := w.now
	w.run(w.now.Add(50 * time.Millisecond))
	r.Retransmission = true
	again := said(r)
	if left := first.RetryAfter - w.now.Sub(start); again.Reason != first.Reason || again.Advice != first.Advice || (again.RetryAfter-left).Abs() > 30*us {
		t.Errorf("first %+v, after %v %+v", first, w.now.Sub(start), again)
	}
	w.run(w.now.Add(time.Second))
	if late := said(r); late.Reason != first.Reason || late.RetryAfter != 0 {
		t.Errorf("when it is over: %+v", late)
	}
}

// TestPoolLevers: frozen it stays, under a ceiling it stays below, and it goes on afterwards; a scheme without a pool says so.
func TestPoolLevers(t *testing.T) {
	w, server, client, s := pair(t, true)
	load := func() {
		for i := range uint64(200) {
			client.call(s, i, w.now.Add(time.Millisecond))
		}
		w.run(w.now.Add(3 * time.Millisecond))
	}
	pool := func() uint64 { return server.d.Snapshot().Pool }
	load()
	before := pool()
	if before < 3 || !server.d.FreezePool(true) {
		t.Fatalf("a pool of %d", before)
	}
	load()
	if pool() != before {
		t.Errorf("frozen at %d, and now %d", before, pool())
	}
	server.d.FreezePool(false)
	if !server.d.Ceiling(2) || pool() != 2 {
		t.Errorf("%d under a ceiling of 2", pool())
	}
	load()
	if got := server.d.Snapshot(); got.Pool > 2 || got.Issued > 2 {
		t.Errorf("%d, and %d issued, under a ceiling of 2", got.Pool, got.Issued)
	}
	server.d.Ceiling(0)
	load()
	if pool() < 3 {
		t.Errorf("%d after it was lifted", pool())
	}
	_, none, _, _ := open(t, 1, Admission{}, admit.MethodConfig{})
	if none.d.FreezePool(true) || none.d.Ceiling(1) || client.d.FreezePool(true) {
		t.Error("a pool where there is none")
	}
}

// TestPressureOfTheDispatcher is that of the last time the pool was sized.
func TestPressureOfTheDispatcher(t *testing.T) {
	w, server, client, s := open(t, 1, Admission{}, admit.MethodConfig{})
	if p := server.d.Pressure(); p != 0 {
		t.Errorf("idle: %v", p)
	}
	for i := range uint64(41) {
		client.call(s, i, 0)
	}
	w.run(w.now.Add(16 * us))
	if p := server.d.Pressure(); p < 4 || p > 5 { // 400 us of work for a target of 80
		t.Errorf("loaded: %v", p)
	}
	w.run(w.now.Add(time.Second))
	if p := server.d.Pressure(); p != 0 {
		t.Errorf("idle again: %v", p)
	}
}

// TestTailBound has a method of which one in twenty takes 20 times as long, at one and a half times what a worker can do, with deadlines of 1 ms: what is
// answered late is work for nothing, and with room for the tail there is less of it.
func TestTailBound(t *testing.T) {
	late := map[bool]int{}
	for _, tail := range []bool{false, true} {
		w, server, client, s := open(t, 1, Admission{Tail: tail}, admit.MethodConfig{})
		rng := rand.New(rand.NewPCG(1, 2))
		served := 0
		for i := range uint64(20_000) {
			server.service = 10 * us
			if rng.IntN(20) == 0 {
				server.service = 200 * us
			}
			client.call(s, i, w.now.Add(time.Millisecond))
			w.run(w.now.Add(13 * us))
		}
		w.run(w.now.Add(time.Second))
		for i := range uint64(20_000) {
			served += server.ran[i]
		}
		stats := client.d.Snapshot()
		late[tail] = served - int(stats.Outcomes[OutcomeOK])
		t.Logf("tail %v: %d answered in time, %d late", tail, stats.Outcomes[OutcomeOK], late[tail])
		if stats.Outcomes[OutcomeOK] < 12_000 { // of 13,333 that fit
			t.Errorf("tail %v: %d answered in time", tail, stats.Outcomes[OutcomeOK])
		}
		server.audit()
	}
	if late[true] >= late[false] {
		t.Errorf("%d answered late without, %d with the bound", late[false], late[true])
	}
}

// policies are some of all, by the seed.
func (k *soak) policies() (Admission, admit.MethodConfig) {
	rng := k.w.rng
	a := Admission{Tail: rng.IntN(2) == 0, Warmup: time.Duration(rng.IntN(3)) * time.Millisecond, Seed: rng.Uint64()}
	if rng.IntN(2) == 0 {
		a.Order = admit.OrderConfig{NewestFirst: time.Duration(20+rng.IntN(100)) * us}
	}
	if rng.IntN(2) == 0 {
		a.CoDelTarget, a.CoDelInterval = 20*us, 50*us
	}
	if rng.IntN(2) == 0 {
		a.ClientRate = 20_000
	}
	m := admit.MethodConfig{Cost: rng.IntN(4), InService: rng.IntN(2)}
	if rng.IntN(2) == 0 {
		m.Rate = 80_000
	}
	return a, m
}

// operate pulls levers, and has them back at the end.
func (k *soak) operate(end clock.Time) {
	k.w.at(k.w.now.Add(time.Duration(k.w.rng.IntN(int(300*us)))), func() {
		d, rng := k.server().d, k.w.rng
		if k.w.now >= end {
			d.Door().ShedShare(0)
			d.Door().RetriesOff(false)
			d.Door().Drain(false)
			d.Door().Headroom(0)
			d.Door().Warmup(0)
			d.FreezePool(false)
			d.Ceiling(0)
			return
		}
		switch rng.IntN(6) {
		case 0:
			d.Door().ShedShare(rng.Float64())
		case 1:
			d.Door().Drain(rng.IntN(4) == 0)
		case 2:
			d.Door().Headroom(rng.Float64() / 2)
		case 3:
			d.Door().Warmup(time.Millisecond)
		case 4:
			d.FreezePool(rng.IntN(2) == 0)
		case 5:
			d.Ceiling(uint64(rng.IntN(20)))
		}
		k.operate(end)
	})
}

// TestToolboxInBadWeather: whatever refuses, every call has one outcome, what was refused did not run, and the books are whole.
func TestToolboxInBadWeather(t *testing.T) {
	runs := 40
	if small() {
		runs = 6
	}
	first := seedtest.Seed(t)
	for i := range uint64(runs) {
		w := newNetwork(t, first+i)
		x := weather{
			toolbox: true, loss: w.rng.Float64() * 0.1, duplicate: w.rng.Float64() * 0.2, reorder: w.rng.Float64() * 0.5,
			load: 0.2 + 3*w.rng.Float64(), length: 4 * time.Millisecond, deadline: time.Duration(200+w.rng.IntN(3000)) * us,
			restart: w.rng.IntN(4) == 0, partition: w.rng.IntN(4) == 0,
		}
		k := newSoak(t, first+i, x)
		k.run()
		k.check(t)
		k.collapse(t)
		if t.Failed() {
			t.Fatalf("TEST_SEED=%d, %+v", first+i, x)
		}
	}
}
