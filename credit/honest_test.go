package credit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// world is a server and honest clients over a network that loses, duplicates and reorders. Its clock is virtual.
type world struct {
	*testing.T
	random  *rand.Rand
	now     clock.Time
	ledger  *Ledger
	peers   []*peer
	flights []flight
	loss    float64
	refused int
}

// peer is an honest client with its gate, and beside it what the server keeps for its session besides the credits.
type peer struct {
	gate        client.Gate
	waiting     int
	outstanding map[uint64]clock.Time // number to when it is given up
	sent        uint64                // packet number
	answered    int

	session Session
	newest  uint64
	seen    map[uint64]bool // request numbers that were decided on: at most once
}

type flight struct {
	at clock.Time
	to func()
}

// carry delivers a packet after 5 to 205 us, or never, or twice. One that is lost for good is gone after that.
func (w *world) carry(to func()) {
	if w.random.Float64() < w.loss {
		return
	}
	for range 1 + w.random.IntN(20)/19 {
		delay := 5*us + time.Duration(w.random.IntN(200))*us
		w.flights = append(w.flights, flight{w.now.Add(delay), to})
	}
}

func newWorld(t *testing.T, random *rand.Rand, clients int, lease time.Duration) *world {
	config := Config{Slots: 8, Lease: lease, PacketLife: 500 * us, Checked: true}
	w := &world{T: t, random: random, now: 1, loss: 0.1,
		ledger: NewLedger(config, NewBreakwater(BreakwaterConfig{Workers: 3, Slots: 8}))}
	for range clients {
		s, err := w.ledger.Register(w.now)
		if err != nil {
			t.Fatal(err)
		}
		w.peers = append(w.peers, &peer{gate: client.NewGate(lease / 2), session: s,
			outstanding: map[uint64]clock.Time{}, seen: map[uint64]bool{}})
	}
	return w
}

// speak lets one client do what it can do now: give up, send, or probe.
func (w *world) speak(p *peer) {
	for number, ends := range p.outstanding {
		if w.now >= ends {
			delete(p.outstanding, number) // lost and given up: no answer is an outcome too
		}
	}
	p.gate.Expire(w.now)
	for p.waiting > 0 && p.gate.CanSend() && len(p.outstanding) < 8 {
		p.waiting--
		number := p.gate.Take()
		p.outstanding[number] = w.now.Add(2 * time.Millisecond)
		w.request(p, number)
	}
	if p.gate.ProbeDue(w.now, p.waiting, len(p.outstanding)) {
		p.sent++
		pn, next, seq, demand := p.sent, p.gate.Next(), p.gate.Seq(), uint16(p.waiting)
		w.carry(func() {
			limit, seq, answered := w.ledger.Probe(w.now, p.session, next, seq, demand, w.newer(p, pn))
			if answered {
				w.carry(func() { p.gate.Apply(w.now, limit, seq) })
			}
		})
	}
}

func (w *world) newer(p *peer, pn uint64) bool {
	newer := pn > p.newest
	p.newest = max(p.newest, pn)
	return newer
}

// request sends one request, and then the server decides, serves and answers.
func (w *world) request(p *peer, number uint64) {
	p.sent++
	pn, next, seq, demand := p.sent, p.gate.Next(), p.gate.Seq(), uint16(p.waiting)
	w.carry(func() {
		w.ledger.Heard(w.now, p.session, next, seq, demand, w.newer(p, pn))
		if p.seen[number] {
			return
		}
		p.seen[number] = true
		if !w.ledger.Arrive(w.now, p.session, number) {
			w.refused++
			limit, seq := w.ledger.Limit(p.session)
			w.carry(func() {
				p.gate.Apply(w.now, limit, seq)
				if _, mine := p.outstanding[number]; mine {
					delete(p.outstanding, number)
					p.waiting++
				}
			})
			return
		}
		service := time.Duration(w.random.IntN(60)) * us
		w.flights = append(w.flights, flight{w.now.Add(service), func() { w.serve(p, number) }})
	})
}

func (w *world) serve(p *peer, number uint64) {
	kind := Success
	if w.random.IntN(10) == 0 {
		kind = Rejection
	}
	limit, seq := w.ledger.Answer(w.now, p.session, kind)
	w.carry(func() {
		p.gate.Apply(w.now, limit, seq)
		delete(p.outstanding, number)
		p.answered++
	})
}

// run lets time pass, in steps of 5 us; load is how many requests arise per client and step.
func (w *world) run(d time.Duration, load float64) {
	w.Helper()
	for end := w.now.Add(d); w.now < end; w.now = w.now.Add(5 * us) {
		due := w.flights
		w.flights = nil
		for _, f := range due {
			if f.at <= w.now {
				f.to()
			} else {
				w.flights = append(w.flights, f)
			}
		}
		delay := time.Duration(w.ledger.Totals().Pending) * 20 * us
		w.ledger.Update(w.now, Signal{Delay: delay, RTT: 100 * us})
		w.wake()
		w.ledger.Sweep(w.now, 4)
		for _, p := range w.peers {
			if w.random.Float64() < load {
				p.waiting = min(p.waiting+1, 20)
			}
			w.speak(p)
			if e := w.ledger.at(p.session); p.gate.Limit() > e.limit+uint64(e.oldOver) {
				w.Fatalf("a client believes in %d, which the server has forgotten: %+v", p.gate.Limit(), *e)
			}
		}
	}
}

func (w *world) wake() {
	for {
		s, limit, seq, ok := w.ledger.PopDrained(w.now)
		if !ok {
			return
		}
		at := slices.IndexFunc(w.peers, func(p *peer) bool { return p.session == s })
		w.carry(func() { w.peers[at].gate.Apply(w.now, limit, seq) })
	}
}

// settle stops new requests and losses, and expects every client to get rid of what it has, and every sum to be nil.
func (w *world) settle() {
	w.Helper()
	w.loss = 0
	w.run(200*time.Millisecond, 0)
	for i, p := range w.peers {
		if p.waiting > 0 || len(p.outstanding) > 0 {
			w.Fatalf("client %d is stalled: %d waiting, %d outstanding, %+v, %+v",
				i, p.waiting, len(p.outstanding), p.gate, *w.ledger.at(p.session))
		}
		if p.answered == 0 {
			w.Fatalf("client %d was never answered", i)
		}
	}
	if got := w.ledger.Totals(); got.Pending != 0 || got.Counters.Future != 0 || got.Counters.Ahead != 0 {
		w.Fatalf("%+v", got)
	}
}

// Over a network that loses a tenth of everything, no honest client is refused, none stalls, and no credit leaks.
func TestHonestClientsOverABadNetwork(t *testing.T) {
	random := seedtest.Rand(t)
	for range 5 {
		w := newWorld(t, random, 6, time.Hour)
		w.run(30*time.Millisecond, 0.02)
		w.settle()
		if w.refused != 0 {
			t.Fatalf("%d honest requests refused: %+v", w.refused, w.ledger.Totals())
		}
	}
}

// The same with leases that run out all the time, of clients that are often silent for longer.
func TestHonestClientsAndShortLeases(t *testing.T) {
	random := seedtest.Rand(t)
	for range 5 {
		w := newWorld(t, random, 6, 4*time.Millisecond)
		for range 10 {
			w.run(4*time.Millisecond, 0.02)
			w.run(time.Duration(random.IntN(10))*time.Millisecond, 0)
		}
		w.settle()
		if w.ledger.Totals().Counters.Lapses == 0 {
			t.Fatal("no lease ran out: this test shows nothing")
		}
	}
}
