package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// weather is a network and a load, as data.
type weather struct {
	loss, duplicate, reorder float64
	load                     float64       // times the capacity of one worker at 10 us
	length                   time.Duration // of the load
	deadline                 time.Duration // of each call; a tenth has none
	trusted                  bool
	restart                  bool   // the server dies in the middle and comes back 2 ms later
	scheme                   string // of overload control; "" = the published law
	partition                bool   // and nothing gets through for 5 ms at a third of the time
	toolbox                  bool   // every policy of admission is on, calls have any level, and an operator pulls levers
}

// soak is 100 sessions of four clients with one server, and the books that a checker apart from the code keeps of them.
type soak struct {
	weather
	w        *network
	servers  []*node // boots, the last one alive
	clients  []*node
	sessions []*Session
	owner    []*node
	calls    []*call
	marks    uint64
	control  baseline.Scheme // if the weather names one
}

const soakService = 10 * time.Microsecond

func newSoak(t testing.TB, seed uint64, x weather) *soak {
	k := &soak{weather: x, w: newNetwork(t, seed)}
	if x.scheme != "" {
		var err error
		if k.control, err = baseline.Lookup(x.scheme, baseline.Params{Clients: 100, Seed: seed}); err != nil {
			t.Fatal(err)
		}
	}
	k.boot()
	for i := range 4 {
		k.clients = append(k.clients, k.w.node(byte(10+i), Config{ClientPolicy: k.control.NewPolicy}))
		k.clients[i].levels = x.toolbox
	}
	for i := range 100 {
		n := k.clients[i%len(k.clients)]
		s, err := n.d.Open(k.w.now, k.servers[0].addr)
		if err != nil {
			t.Fatal(err)
		}
		k.sessions, k.owner = append(k.sessions, s), append(k.owner, n)
	}
	k.w.loss, k.w.duplicate, k.w.reorder = x.loss, x.duplicate, x.reorder
	return k
}

// boot starts a server, after the one that ran before was killed.
func (k *soak) boot() {
	boot := uint32(len(k.servers) + 1)
	n := k.w.node(1, Config{TrustedNetwork: k.trusted, Epoch: boot, TokenKey: [32]byte{byte(boot)}})
	if k.toolbox {
		n.admission, n.method = k.policies()
	}
	if k.scheme == "" {
		n.serve(soakService, 80*time.Microsecond, nil)
	} else {
		n.slots = k.control.Slots
		n.serve(soakService, k.control.TargetDelay, k.control.NewController())
	}
	k.servers = append(k.servers, n)
}

func (k *soak) server() *node { return k.servers[len(k.servers)-1] }

func (k *soak) submit(i int, deadline clock.Time) *call {
	k.marks++
	c := k.owner[i].call(k.sessions[i], k.marks, deadline)
	k.calls = append(k.calls, c)
	return c
}

// arrive submits calls in a Poisson process until the end.
func (k *soak) arrive(end clock.Time) {
	gap := time.Duration(k.w.rng.ExpFloat64() / k.load * float64(soakService))
	k.w.at(k.w.now.Add(gap), func() {
		if k.w.now >= end {
			return
		}
		deadline := k.w.now.Add(k.deadline)
		if k.w.rng.IntN(10) == 0 {
			deadline = 0
		}
		c := k.submit(k.w.rng.IntN(len(k.sessions)), deadline)
		if k.w.rng.IntN(50) == 0 { // a caller that changes its mind
			k.w.at(k.w.now.Add(time.Duration(k.w.rng.IntN(100))*time.Microsecond), func() {
				n := c.Session.conn
				for _, client := range k.clients {
					if client.d.caller.conns[n.Peer] == n {
						client.d.Cancel(k.w.now, &c.Call)
						client.turn()
					}
				}
			})
		}
		k.arrive(end)
	})
}

// run plays the load, with what the weather brings, and waits until every call has had the time for its outcome.
func (k *soak) run() {
	start := k.w.now
	end := start.Add(k.length)
	k.arrive(end)
	if k.toolbox {
		k.operate(end)
	}
	if k.restart {
		k.w.at(start.Add(k.length/2), func() {
			k.server().dead = true
			delete(k.w.nodes, k.server().addr)
		})
		k.w.at(start.Add(k.length/2+2*time.Millisecond), k.boot)
	}
	if k.partition {
		at := k.clients[0].addr
		k.w.at(start.Add(k.length/3), func() { k.w.cut[at] = true })
		k.w.at(start.Add(k.length/3+5*time.Millisecond), func() { k.w.cut[at] = false })
	}
	k.w.run(end.Add(k.deadline + 15*time.Millisecond))
	k.w.loss, k.w.duplicate, k.w.reorder = 0, 0, 0
	k.w.run(k.w.now.Add(200 * time.Millisecond)) // those without a deadline
}

// goodput is the number of calls answered within the deadline.
func (k *soak) goodput() (good int) {
	for _, c := range k.calls {
		if c.Outcome == OutcomeOK && c.at.Sub(c.submitted) <= k.deadline {
			good++
		}
	}
	return good
}

// check says what must hold whatever the weather was.
func (k *soak) check(t *testing.T) {
	t.Helper()
	ran := map[uint64]int{}
	for _, n := range k.servers {
		for mark, times := range n.ran {
			ran[mark] += times
		}
	}
	for _, c := range k.calls {
		m := mark(c.Payload)
		if c.done != 1 {
			t.Errorf("call %d has %d outcomes, %v; deadline %d, state %d, now %d", m, c.done, c.Outcome, c.Deadline, c.state, k.w.now)
			continue
		}
		if c.Deadline != 0 && c.at.Sub(c.Deadline) > 10*time.Millisecond {
			t.Errorf("call %d ended %v after its deadline", m, c.at.Sub(c.Deadline))
		}
		if ran[m] > 1 {
			t.Errorf("call %d ran %d times", m, ran[m])
		}
		switch c.Outcome {
		case OutcomeOK:
			if ran[m] != 1 || mark(c.Reply) != m {
				t.Errorf("call %d is ok, ran %d times, was answered %d", m, ran[m], mark(c.Reply))
			}
		case OutcomeRejected, OutcomeExpired, OutcomeQueueFull, OutcomeThrottled:
			if ran[m] != 0 {
				t.Errorf("call %d is %v, and ran", m, c.Outcome)
			}
		case OutcomeDeadline, OutcomePeerLost, OutcomeCancelled: // may have run
		default:
			t.Errorf("call %d: %v", m, c.Outcome)
		}
	}
	for _, n := range append([]*node{k.server()}, k.clients...) {
		n.audit()
		if n.lent != 0 {
			t.Errorf("%d buffers lent", n.lent)
		}
	}
	if p := k.server().d.Pending(); p != 0 {
		t.Errorf("%d requests pending", p)
	}
}

// settle makes one more call on each session, without faults, and compares what both ends know of its credits.
func (k *soak) settle(t *testing.T) {
	t.Helper()
	for i := range k.sessions {
		c := k.submit(i, 0)
		k.w.run(k.w.now.Add(2 * time.Millisecond))
		if c.Outcome == OutcomePeerLost { // did not know yet that the server had died
			c = k.submit(i, 0)
			k.w.run(k.w.now.Add(2 * time.Millisecond))
		}
		if c.Outcome != OutcomeOK {
			t.Errorf("session %d in fair weather: %v", i, c.Outcome)
		}
	}
	ledger, issued := k.server().d.server.ledger, uint64(0)
	books := make(map[uint32]SessionCredit)
	k.server().d.EachCredit(func(c SessionCredit) { books[c.Session] = c })
	for i, s := range k.sessions {
		place := credit.Session(s.remote & session.PeersMax)
		issued += ledger.Unused(place) + ledger.Pending(place)
		if ledger.Lapsed(place) {
			continue // taken back by the lease, which the client's own outruns
		}
		mine, theirs := s.Credit(), books[uint32(s.remote)]
		if mine != theirs || s.Unused() != mine.Limit-mine.Next || ledger.Unused(place) != s.Unused() {
			t.Errorf("session %d: %+v, unused %d; at the server %+v, unused %d", i, mine, s.Unused(), theirs, ledger.Unused(place))
		}
	}
	if got := ledger.Totals(); got.Issued != issued || got.Pending != 0 || got.Registered != 100 {
		t.Errorf("issued %d, the windows are %d; pending %d, registered %d", got.Issued, issued, got.Pending, got.Registered)
	}
}

// collapse waits until everything idle is gone, and counts what is left.
func (k *soak) collapse(t *testing.T) {
	t.Helper()
	k.w.run(k.w.now.Add(3 * time.Second))
	s := &k.server().d.server
	if live := len(s.tables) - 1 - len(s.spare); live != 0 || s.pool.lent != 0 {
		t.Errorf("%d tables, %d request objects in use", live, s.pool.lent)
	}
	if issued := s.ledger.Totals().Issued; issued != 0 {
		t.Errorf("%d credits are issued to nobody", issued)
	}
	if s.pool.count > freeRequestsMax {
		t.Errorf("%d idle request objects", s.pool.count)
	}
}

func TestBadWeather(t *testing.T) {
	length := 30 * time.Millisecond
	if small() {
		length = 10 * time.Millisecond
	}
	for _, c := range []struct {
		name string
		weather
	}{
		{"fair", weather{}},
		{"1 percent", weather{loss: 0.01, duplicate: 0.01, reorder: 0.01}},
		{"5 percent", weather{loss: 0.05, duplicate: 0.05, reorder: 0.05}},
		{"10 percent", weather{loss: 0.1, duplicate: 0.1, reorder: 0.1}},
		{"restart", weather{loss: 0.05, duplicate: 0.05, reorder: 0.05, restart: true}},
		{"partition", weather{loss: 0.01, duplicate: 0.05, reorder: 0.1, partition: true}},
		{"everything", weather{loss: 0.1, duplicate: 0.2, reorder: 0.5, restart: true, partition: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.load, c.length, c.deadline = 2, length, time.Millisecond
			k := newSoak(t, seedtest.Seed(t), c.weather)
			k.run()
			k.check(t)
			k.settle(t)
			k.check(t)
			k.collapse(t)
		})
	}
}

// On a trusted network the first contact needs no token; everything else is the same.
func TestBadWeatherOnATrustedNetwork(t *testing.T) {
	k := newSoak(t, seedtest.Seed(t), weather{
		loss: 0.05, duplicate: 0.1, reorder: 0.1, load: 2, length: 10 * time.Millisecond, deadline: time.Millisecond, trusted: true,
	})
	k.run()
	k.check(t)
	k.settle(t)
	k.collapse(t)
}

// One percent of the packets lost may cost a tenth of the goodput, at twice the capacity.
func TestGoodputUnderLoss(t *testing.T) {
	s := seedtest.Seed(t)
	good := map[float64]int{}
	length := 60 * time.Millisecond
	if small() {
		length = 15 * time.Millisecond
	}
	for _, loss := range []float64{0, 0.01} {
		k := newSoak(t, s, weather{loss: loss, load: 2, length: length, deadline: 200 * time.Microsecond})
		k.run()
		k.check(t)
		good[loss] = k.goodput()
	}
	capacity := float64(length) / float64(soakService)
	t.Logf("of %.0f that fit: %d without loss, %d with 1 %%", capacity, good[0], good[0.01])
	if float64(good[0.01]) < 0.9*float64(good[0]) {
		t.Errorf("goodput fell from %d to %d", good[0], good[0.01])
	}
	if float64(good[0]) < 0.8*capacity {
		t.Errorf("goodput %d of %.0f", good[0], capacity)
	}
}

// A short soak: a new seed each, random weather.
func TestManySeeds(t *testing.T) {
	runs := 60
	if small() {
		runs = 8
	}
	first := seedtest.Seed(t)
	for i := range uint64(runs) {
		w := newNetwork(t, first+i)
		x := weather{
			loss: w.rng.Float64() * 0.2, duplicate: w.rng.Float64() * 0.2, reorder: w.rng.Float64() * 0.5,
			load: 0.2 + 3*w.rng.Float64(), length: 3 * time.Millisecond, deadline: time.Duration(200+w.rng.IntN(3000)) * time.Microsecond,
			restart: w.rng.IntN(3) == 0, partition: w.rng.IntN(3) == 0,
		}
		k := newSoak(t, first+i, x)
		k.run()
		k.check(t)
		k.settle(t)
		k.collapse(t)
		if t.Failed() {
			t.Fatalf("TEST_SEED=%d, %+v", first+i, x)
		}
	}
}
