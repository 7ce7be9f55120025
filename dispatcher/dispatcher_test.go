package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/wire"
)

// pair is a server and a client on a network without faults.
func pair(t *testing.T, trusted bool) (w *network, server, client *node, s *Session) {
	w = newNetwork(t, 1)
	server = w.node(1, Config{TrustedNetwork: trusted})
	server.serve(10*time.Microsecond, 80*time.Microsecond, nil)
	client = w.node(2, Config{})
	s, err := client.d.Open(w.now, server.addr)
	if err != nil {
		t.Fatal(err)
	}
	return w, server, client, s
}

func TestOneCall(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		w, server, client, s := pair(t, trusted)
		c := client.call(s, 7, w.now.Add(time.Millisecond))
		start := w.now
		w.run(w.now.Add(10 * time.Millisecond))
		if c.done != 1 || c.Outcome != OutcomeOK || mark(c.Reply) != 7 {
			t.Fatalf("trusted %v: outcome %v, done %d times, reply %x", trusted, c.Outcome, c.done, c.Reply)
		}
		// One round trip of 10 us and 10 us of service; without a token one round trip more.
		want := 20 * time.Microsecond
		if !trusted {
			want = 30 * time.Microsecond
		}
		if took := c.at.Sub(start); took != want {
			t.Errorf("trusted %v: took %v, want %v", trusted, took, want)
		}
		if c.Timing.Service != 10*time.Microsecond || c.Timing.Network != want-10*time.Microsecond {
			t.Errorf("timing %+v", c.Timing)
		}
		if server.ran[7] != 1 {
			t.Errorf("ran %d times", server.ran[7])
		}
		if server.lent != 0 || client.lent != 0 {
			t.Errorf("buffers leaked: %d, %d", server.lent, client.lent)
		}
	}
}

// A cached token lets the first request of a new session's connection run at once.
func TestCachedTokenSavesTheRoundTrip(t *testing.T) {
	w, server, client, s := pair(t, false)
	client.call(s, 1, 0)
	w.run(w.now.Add(time.Millisecond))
	for place := uint32(0); place < 1; place++ {
		server.d.forget(server.d.conns.At(0)) // the server forgets an idle connection
	}
	c := client.call(s, 2, w.now.Add(10*time.Millisecond))
	w.run(w.now.Add(time.Millisecond))
	if c.Outcome != OutcomePeerLost {
		t.Fatalf("outcome %v: a request under a forgotten connection has an unknown outcome", c.Outcome)
	}
	start := w.now
	c = client.call(s, 3, w.now.Add(10*time.Millisecond))
	w.run(w.now.Add(10 * time.Millisecond))
	if c.Outcome != OutcomeOK || c.at.Sub(start) != 20*time.Microsecond {
		t.Fatalf("outcome %v after %v", c.Outcome, c.at.Sub(start))
	}
	if server.ran[2] != 0 || server.ran[3] != 1 {
		t.Errorf("ran: %v", server.ran)
	}
}

func TestUnknownMethodIsRejected(t *testing.T) {
	w, _, client, s := pair(t, true)
	c := &call{}
	c.Session, c.Method, c.Done = s, wire.MethodOf("nothing"), func(*Call) { c.done++ }
	client.d.Submit(w.now, &c.Call)
	client.turn()
	w.run(w.now.Add(time.Millisecond))
	if c.Outcome != OutcomeRejected || c.Reason != wire.RejectUnknownMethod {
		t.Fatalf("outcome %v, reason %v", c.Outcome, c.Reason)
	}
}

func TestDeadServerEndsCallsByDeadlineOrGivesUp(t *testing.T) {
	w, server, client, s := pair(t, true)
	client.call(s, 1, 0)
	w.run(w.now.Add(time.Millisecond))
	delete(w.nodes, server.addr)
	start := w.now
	a := client.call(s, 2, w.now.Add(3*time.Millisecond))
	b := client.call(s, 3, 0)
	w.run(w.now.Add(20 * time.Second))
	if a.Outcome != OutcomeDeadline || a.at.Sub(start) != 3*time.Millisecond {
		t.Errorf("with deadline: %v after %v", a.Outcome, a.at.Sub(start))
	}
	if b.Outcome != OutcomePeerLost && b.Outcome != OutcomeExpired {
		t.Errorf("without deadline: %v after %v", b.Outcome, b.at.Sub(start))
	}
	if b.done != 1 {
		t.Errorf("done %d times", b.done)
	}
}

func TestRestartedServerServesTheSameSession(t *testing.T) {
	w, server, client, s := pair(t, true)
	client.call(s, 1, 0)
	w.run(w.now.Add(time.Millisecond))
	again := w.node(1, Config{TrustedNetwork: true, Epoch: 99})
	again.serve(10*time.Microsecond, 80*time.Microsecond, nil)
	lost := client.call(s, 2, w.now.Add(50*time.Millisecond))
	w.run(w.now.Add(100 * time.Millisecond))
	if lost.Outcome != OutcomePeerLost || again.ran[2] != 0 || server.ran[2] != 0 {
		t.Fatalf("a request of the old boot: outcome %v, ran %d times", lost.Outcome, again.ran[2])
	}
	c := client.call(s, 3, w.now.Add(50*time.Millisecond))
	w.run(w.now.Add(100 * time.Millisecond))
	if c.Outcome != OutcomeOK || again.ran[3] != 1 {
		t.Fatalf("after the restart: %v", c.Outcome)
	}
}

func TestCancel(t *testing.T) {
	w, server, client, s := pair(t, true)
	server.service = 500 * time.Microsecond
	client.call(s, 1, 0)
	w.run(w.now.Add(2 * time.Millisecond))
	running := client.call(s, 2, 0)
	w.run(w.now.Add(50 * time.Microsecond))
	client.d.Cancel(w.now, &running.Call)
	client.turn()
	w.run(w.now.Add(5 * time.Millisecond))
	if running.Outcome != OutcomeCancelled || running.done != 1 {
		t.Fatalf("outcome %v, done %d", running.Outcome, running.done)
	}
	if err := server.d.Audit(); err != nil {
		t.Error(err)
	}
	if server.d.Pending() != 0 {
		t.Errorf("%d requests still pending", server.d.Pending())
	}
}

func TestCloseSessionEndsItsCallsAndReturnsItsCredits(t *testing.T) {
	w, server, client, s := pair(t, true)
	client.call(s, 1, 0)
	w.run(w.now.Add(time.Millisecond))
	c := client.call(s, 2, 0)
	client.d.CloseSession(w.now, s)
	client.turn()
	if c.Outcome != OutcomeClosed {
		t.Fatalf("outcome %v", c.Outcome)
	}
	w.run(w.now.Add(10 * time.Millisecond))
	if got := server.d.Snapshot(); got.Sessions != 0 || got.Issued != 0 {
		t.Errorf("%d sessions hold %d credits", got.Sessions, got.Issued)
	}
	late := client.call(s, 3, 0)
	if late.Outcome != OutcomeClosed {
		t.Errorf("a call on a closed session: %v", late.Outcome)
	}
}

func TestDrainRefusesNewAndAnswersAdmitted(t *testing.T) {
	w, server, client, s := pair(t, true)
	client.call(s, 1, 0)
	w.run(w.now.Add(time.Millisecond))
	admitted := client.call(s, 2, 0)
	w.run(w.now.Add(7 * time.Microsecond))
	server.d.Drain()
	w.run(w.now.Add(time.Millisecond))
	refused := client.call(s, 3, 0)
	w.run(w.now.Add(time.Millisecond))
	if admitted.Outcome != OutcomeOK {
		t.Errorf("admitted: %v", admitted.Outcome)
	}
	if refused.Outcome != OutcomeRejected || refused.Reason != wire.RejectDraining {
		t.Errorf("refused: %v %v", refused.Outcome, refused.Reason)
	}
}

// A registration that nobody answered in time must not leave its session mute for ever.
func TestLostRegistrationIsRepeated(t *testing.T) {
	w, server, client, s := pair(t, true)
	w.loss = 1
	first := client.call(s, 1, w.now.Add(200*time.Microsecond))
	w.run(w.now.Add(time.Millisecond))
	if first.Outcome != OutcomeDeadline {
		t.Fatalf("with everything lost: %v", first.Outcome)
	}
	w.loss = 0
	second := client.call(s, 2, w.now.Add(time.Second))
	w.run(w.now.Add(time.Second))
	if second.Outcome != OutcomeOK || server.ran[1] != 0 || server.ran[2] != 1 {
		t.Fatalf("afterwards: %v, ran %v", second.Outcome, server.ran)
	}
}

// Estimates that grew without bound while the host stood still must not refuse everything for ever.
func TestWrongEstimatesAreUnlearnt(t *testing.T) {
	w, server, client, s := pair(t, true)
	client.call(s, 1, 0)
	w.run(w.now.Add(time.Millisecond))
	for range 60 { // a server that takes 10 ms for everything, for a while
		server.service = 10 * time.Millisecond
		client.call(s, 1, 0)
		w.run(w.now.Add(20 * time.Millisecond))
	}
	server.service = 10 * time.Microsecond
	ok := 0
	for range 3000 {
		c := client.call(s, 2, w.now.Add(200*time.Microsecond))
		w.run(w.now.Add(200 * time.Microsecond))
		if c.Outcome == OutcomeOK {
			ok++
		}
	}
	if ok < 2000 {
		t.Fatalf("only %d of 3000 calls got through after the server was fast again", ok)
	}
}
