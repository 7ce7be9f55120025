package dispatcher

import (
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// scripted is a policy that does what a test says, and writes down what it is told.
type scripted struct {
	limits  client.Limits
	refuse  uint8      // priorities from here on are refused; 0 = none
	give    uint8      // to who has none
	window  int        // outstanding; 0 = any number
	gap     clock.Time // between two that are sent
	next    clock.Time // the earliest instant of the next one
	sent    int
	answers []client.Answer
}

func (s *scripted) Admit(_ clock.Time, priority uint8) (uint8, bool) {
	if priority == 0 {
		priority = s.give
	}
	return priority, s.refuse == 0 || priority < s.refuse
}

func (s *scripted) CanSend(now clock.Time, outstanding int) (bool, clock.Time) {
	if now < s.next {
		return false, s.next
	}
	return s.window == 0 || outstanding < s.window, 0
}

func (s *scripted) Sent(now clock.Time) {
	s.sent++
	if s.gap > 0 {
		s.next = now + s.gap
	}
}

func (s *scripted) Answered(_ clock.Time, a client.Answer) { s.answers = append(s.answers, a) }
func (s *scripted) Limits() client.Limits                  { return s.limits }

// door is a scheme that sheds as a test says.
type door struct {
	*credit.None
	level    uint8
	arrivals []credit.Arrival
	shed     int // of those that are taken from the queue, the first so many
	queued   []int
	sojourns []time.Duration
	rejected int // windows that were asked for at a rejection
}

func (d *door) Window(h credit.Holding) uint64 {
	if h.Rejected {
		d.rejected++
	}
	return d.None.Window(h)
}

func (d *door) Admit(a credit.Arrival) bool {
	d.arrivals = append(d.arrivals, a)
	return a.Priority <= d.level
}
func (d *door) Level() uint8 { return d.level }
func (d *door) Dequeue(_ clock.Time, sojourn time.Duration, queued int) bool {
	d.queued, d.sojourns = append(d.queued, queued), append(d.sojourns, sojourn)
	d.shed--
	return d.shed < 0
}

// paced is a client with one session under a policy, and a server that takes 10 us for a request.
func paced(t *testing.T, policy *scripted, control credit.Controller) (w *network, c, server *node, s *Session) {
	w = newNetwork(t, 1)
	server = w.node(1, Config{TrustedNetwork: true})
	if control == nil {
		control = credit.NewNone(64)
	}
	server.serve(10*time.Microsecond, 80*time.Microsecond, control)
	c = w.node(2, Config{ClientPolicy: func() client.Policy { return policy }})
	s, err := c.d.Open(w.now, server.addr)
	if err != nil {
		t.Fatal(err)
	}
	if c.call(s, 1000, 0); policy.refuse == 0 { // registers
		w.run(w.now.Add(time.Millisecond))
	}
	return w, c, server, s
}

// audit says that nothing is left over.
func audit(t *testing.T, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		if err := n.d.Audit(); err != nil {
			t.Error(err)
		}
	}
}

func outcomes(calls []*call) (all []Outcome) {
	for _, c := range calls {
		all = append(all, c.Outcome)
	}
	return all
}

func TestPolicyRefusesAtSubmit(t *testing.T) {
	policy := &scripted{give: 9, refuse: 10}
	control := &door{None: credit.NewNone(64), level: 128}
	w, c, server, s := paced(t, policy, control)
	w.run(w.now.Add(time.Millisecond))
	calls := []*call{{}, {}, {}}
	for i, priority := range []uint8{9, 10, 0} {
		calls[i].Session, calls[i].Method, calls[i].Payload, calls[i].Priority = s, wire.MethodOf("work"), marked(uint64(i)), priority
		calls[i].Done = func(*Call) { calls[i].done++ }
		c.d.Submit(w.now, &calls[i].Call)
		c.turn()
	}
	if calls[1].done != 1 || calls[1].Outcome != OutcomeThrottled || calls[1].Priority != 10 {
		t.Errorf("refused by the policy: %v", calls[1].Outcome)
	}
	w.run(w.now.Add(time.Millisecond))
	if got := outcomes(calls); !slices.Equal(got, []Outcome{OutcomeOK, OutcomeThrottled, OutcomeOK}) {
		t.Errorf("outcomes %v", got)
	}
	for _, a := range control.arrivals { // what was given to who had none is what the server sees
		if a.Priority != 9 || a.Now == 0 {
			t.Errorf("arrived: %+v", a)
		}
	}
	if calls[2].Priority != 0 {
		t.Error("the caller's field was written")
	}
	want := []client.Answer{ // the last waited for the one before it
		{Latency: 20 * time.Microsecond, Level: 128}, {Latency: 20 * time.Microsecond, Level: 128}, {Latency: 30 * time.Microsecond, Level: 128},
	}
	if policy.sent != 3 || !slices.Equal(policy.answers, want) {
		t.Errorf("%d sent, told %+v, want %+v", policy.sent, policy.answers, want)
	}
	audit(t, c, server)
}

func TestPolicyWindow(t *testing.T) {
	policy := &scripted{window: 2}
	w, c, server, s := paced(t, policy, nil)
	var calls []*call
	for i := range 6 {
		calls = append(calls, c.call(s, uint64(i), 0))
	}
	if s.Outstanding() != 2 || s.Waiting() != 4 {
		t.Fatalf("%d outstanding, %d wait", s.Outstanding(), s.Waiting())
	}
	w.run(w.now.Add(time.Millisecond))
	for i, x := range calls {
		if x.Outcome != OutcomeOK {
			t.Errorf("call %d: %v", i, x.Outcome)
		}
	}
	audit(t, c, server)
}

// TestPolicyPaces lets one request go every 100 us, and none is held for longer than that, though no answer comes in between.
func TestPolicyPaces(t *testing.T) {
	policy := &scripted{gap: 100_000}
	w, c, server, s := paced(t, policy, nil)
	start := w.now
	var calls []*call
	for i := range 5 {
		calls = append(calls, c.call(s, uint64(i), 0))
	}
	w.run(w.now.Add(time.Millisecond))
	for i, x := range calls {
		if want := start.Add(time.Duration(i) * 100 * time.Microsecond); x.Outcome != OutcomeOK || x.transmitted != want {
			t.Errorf("call %d: %v, sent %v after it was due", i, x.Outcome, x.transmitted.Sub(want))
		}
	}
	// A policy that names an instant that has passed must not keep the dispatcher in its turn.
	stuck := &scripted{next: 1 << 62}
	other, err := c.d.OpenWith(w.now, server.addr, pastPolicy{stuck})
	if err != nil {
		t.Fatal(err)
	}
	x := c.call(other, 9, w.now.Add(300*time.Microsecond))
	w.run(w.now.Add(time.Millisecond))
	if x.Outcome != OutcomeExpired {
		t.Errorf("held back for ever: %v", x.Outcome)
	}
	audit(t, c, server)
}

// pastPolicy wants to be asked again before now.
type pastPolicy struct{ *scripted }

func (pastPolicy) CanSend(clock.Time, int) (bool, clock.Time) { return false, 1 }

func TestPolicyLimits(t *testing.T) {
	t.Run("the oldest is dropped", func(t *testing.T) {
		policy := &scripted{limits: client.Limits{Waiting: 2, DropOldest: true}, window: 1}
		w, c, server, s := paced(t, policy, nil)
		var calls []*call
		for i := range 5 { // the deadlines say another order
			calls = append(calls, c.call(s, uint64(i), w.now.Add(time.Duration(10-i)*time.Millisecond)))
		}
		w.run(w.now.Add(time.Millisecond))
		if got, want := outcomes(calls), []Outcome{OutcomeOK, OutcomeQueueFull, OutcomeQueueFull, OutcomeOK, OutcomeOK}; !slices.Equal(got, want) {
			t.Errorf("outcomes %v, want %v", got, want)
		}
		audit(t, c, server)
	})
	t.Run("the new one is refused", func(t *testing.T) {
		policy := &scripted{limits: client.Limits{Waiting: 2}, window: 1}
		w, c, server, s := paced(t, policy, nil)
		var calls []*call
		for i := range 4 {
			calls = append(calls, c.call(s, uint64(i), 0))
		}
		w.run(w.now.Add(time.Millisecond))
		if got, want := outcomes(calls), []Outcome{OutcomeOK, OutcomeOK, OutcomeOK, OutcomeQueueFull}; !slices.Equal(got, want) {
			t.Errorf("outcomes %v, want %v", got, want)
		}
		audit(t, c, server)
	})
	t.Run("none waits for longer", func(t *testing.T) {
		policy := &scripted{limits: client.Limits{Expiry: 15 * time.Microsecond}, window: 1}
		w, c, server, s := paced(t, policy, nil)
		start := w.now
		first, second := c.call(s, 1, 0), c.call(s, 2, 0)
		w.run(w.now.Add(time.Millisecond))
		if first.Outcome != OutcomeOK || second.Outcome != OutcomeExpired || second.at.Sub(start) != 15*time.Microsecond {
			t.Errorf("%v, %v after %v", first.Outcome, second.Outcome, second.at.Sub(start))
		}
		audit(t, c, server)
	})
}

// TestPolicyHearsOfLoss has a server that does not answer in time.
func TestPolicyHearsOfLoss(t *testing.T) {
	policy := &scripted{}
	w, c, server, s := paced(t, policy, nil)
	policy.answers = nil
	w.cut[server.addr] = true
	x := c.call(s, 1, w.now.Add(200*time.Microsecond))
	w.run(w.now.Add(time.Millisecond))
	if x.Outcome != OutcomeDeadline || !slices.Equal(policy.answers, []client.Answer{{Latency: 200 * time.Microsecond, Lost: true}}) {
		t.Errorf("%v, told %+v", x.Outcome, policy.answers)
	}
	audit(t, c)
}

// TestLevelRidesOnRejections rejects by priority, and the client hears up to which.
func TestLevelRidesOnRejections(t *testing.T) {
	policy := &scripted{give: 50}
	control := &door{None: credit.NewNone(64), level: 49}
	w, c, server, _ := paced(t, policy, control)
	w.run(w.now.Add(time.Millisecond))
	want := []client.Answer{{Latency: 10 * time.Microsecond, Level: 49, Rejected: true}}
	if !slices.Equal(policy.answers, want) {
		t.Errorf("told %+v, want %+v", policy.answers, want)
	}
	audit(t, c, server)
}

// TestDequeueSheds takes the first two requests off the queue in vain: they are rejected, and the worker goes on with the third.
func TestDequeueSheds(t *testing.T) {
	policy := &scripted{}
	control := &door{None: credit.NewNone(64)}
	w, c, server, s := paced(t, policy, control)
	control.shed, control.queued, control.sojourns = 0, nil, nil
	calls := []*call{c.call(s, 1, 0)}
	w.run(w.now.Add(6 * time.Microsecond)) // it is in service
	control.shed = 2
	for i := range 4 {
		calls = append(calls, c.call(s, uint64(2+i), 0))
	}
	w.run(w.now.Add(time.Millisecond))
	want := []Outcome{OutcomeOK, OutcomeRejected, OutcomeRejected, OutcomeOK, OutcomeOK}
	if got := outcomes(calls); !slices.Equal(got, want) || calls[1].Reason != wire.RejectOverloaded {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if !slices.Equal(control.queued, []int{0, 3, 2, 1, 0}) || control.sojourns[0] != 0 || control.sojourns[1] != 4*time.Microsecond {
		t.Errorf("queued behind: %v, waited %v", control.queued, control.sojourns)
	}
	if control.rejected != 2 {
		t.Errorf("the ledger took %d of them for rejections", control.rejected)
	}
	if n := server.d.Snapshot(); n.RejectedLate != 2 || n.Rejected[wire.RejectOverloaded] != 2 {
		t.Errorf("%d rejected late", n.RejectedLate)
	}
	audit(t, c, server)
}
