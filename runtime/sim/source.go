package sim

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// SourceConfig describes who calls a machine: open loop, each client by itself, so that the calls of all of them together are a Poisson process, unless they
// are Regular.
type SourceConfig struct {
	// Service is how long handlers take; nil = no time.
	Service Distribution
	// Deadline of each call from when it was made; 0 = none.
	Deadline time.Duration
	// Class is the method, below the machine's Classes. Mix, if set, says it for each call instead.
	Class int
	Mix   func(rng *rand.Rand) (class int, service time.Duration)
	// Together is how many clients wake up at the same instant, Burst how many calls each of them then makes; zero or less means 1. The demand
	// stays what SetRate says.
	Together, Burst int
	// Guard is what each client host does about calls that fail, for all its clients together; nil = a call has one attempt.
	Guard *client.GuardConfig
	// Regular has the calls come at equal gaps, as those of a metronome.
	Regular bool
	// Stream keeps the random numbers of several sources in one world apart.
	Stream uint64
	// Observe is told of each outcome; what it points to is valid during the call.
	Observe func(*Observation)
}

// Observation is a call that has its outcome.
type Observation struct {
	Client  int // by the order in which they were added
	Work    Work
	Made    clock.Time
	Ended   clock.Time
	Call    *dispatcher.Call // Outcome, Reason, Timing, Retransmissions
	Latency time.Duration    // Ended - Made, the wait at the client included
}

// Distribution is of service times.
type Distribution interface {
	Sample(rng *rand.Rand) time.Duration
}

// Source makes calls.
type Source struct {
	w       *World
	cfg     SourceConfig
	to      *Machine
	clients []session
	guards  map[*Host]guard
	rng     *rand.Rand
	rate    float64 // calls per second
	nextAt  clock.Time
	spare   *call
	seen    Observation
}

// guard is a host's, as long as its process lives.
type guard struct {
	*client.Guard
	life uint32
}

// session is one client.
type session struct {
	host    *Host
	life    uint32 // the host's epoch in which the session was opened; 0 = it was closed
	session *dispatcher.Session
}

// call is a call with its payload.
type call struct {
	dispatcher.Call
	source  *Source
	client  int
	host    *Host
	life    uint32 // of the host, when it was made
	ended   func(*Observation)
	work    Work
	made    clock.Time
	payload [workBytes]byte
	next    *call
}

// NewSource makes a source without clients and without demand.
func (w *World) NewSource(to *Machine, cfg SourceConfig) *Source {
	cfg.Together, cfg.Burst = max(cfg.Together, 1), max(cfg.Burst, 1)
	return &Source{w: w, cfg: cfg, to: to, guards: make(map[*Host]guard), rng: rand.New(rand.NewPCG(w.seed, streamArrivals+cfg.Stream<<8))}
}

// ErrNoClients says that a source was given demand, and nobody to make it.
var ErrNoClients = errors.New("a source without clients can make no calls")

// AddClients adds so many sessions on a host. They say nothing until their first calls.
func (s *Source) AddClients(h *Host, count int) error {
	for range count {
		c := session{host: h}
		if err := s.open(&c); err != nil {
			return err
		}
		s.clients = append(s.clients, c)
	}
	return nil
}

func (s *Source) open(c *session) (err error) {
	h := c.host
	c.session, err = h.d.Open(s.w.now, s.to.addr)
	c.life = h.epoch
	if err != nil || s.cfg.Guard == nil {
		return err
	}
	g := s.guards[h]
	if g.Guard == nil || g.life != h.epoch {
		g = guard{client.NewGuard(*s.cfg.Guard), h.epoch}
		s.guards[h] = g
	}
	h.d.SetGuard(c.session, g.Guard)
	return nil
}

// SetAlternates has the hedges of each client sent by the client of another source that was added at the same place, on the same host; for as long as neither host
// is killed.
func (s *Source) SetAlternates(other *Source) {
	for i := range s.clients {
		s.clients[i].session.SetAlternate(other.clients[i].session)
	}
}

// Clients is the number of clients.
func (s *Source) Clients() int { return len(s.clients) }

// SetRate sets the demand of all clients together, in calls per second, from now on.
func (s *Source) SetRate(perSecond float64) error {
	if len(s.clients) == 0 && perSecond > 0 {
		return ErrNoClients
	}
	s.rate, s.nextAt = perSecond, 0
	if perSecond > 0 {
		s.foresee()
	}
	return nil
}

// foresee draws the next arrival. The time to it does not depend on how long ago the last one was.
func (s *Source) foresee() {
	calls := float64(s.cfg.Together * s.cfg.Burst)
	gap := 1.0
	if !s.cfg.Regular {
		gap = s.rng.ExpFloat64()
	}
	s.nextAt = s.w.now.Add(time.Duration(math.Ceil(gap * calls / s.rate * float64(time.Second))))
	s.w.at(s.nextAt, s)
}

// act is an arrival.
func (s *Source) act(w *World) {
	if w.now != s.nextAt {
		return // of an earlier rate
	}
	s.foresee()
	for range s.cfg.Together {
		client := s.rng.IntN(len(s.clients))
		for range s.cfg.Burst {
			s.Call(client)
		}
	}
}

// Call has one client make one call now. A client whose host is down makes none.
func (s *Source) Call(at int) {
	a := Ask{Class: s.cfg.Class, Deadline: s.cfg.Deadline}
	switch {
	case s.cfg.Mix != nil:
		a.Class, a.Service = s.cfg.Mix(s.rng)
	case s.cfg.Service != nil:
		a.Service = s.cfg.Service.Sample(s.rng)
	}
	s.Ask(at, a)
}

// Ask is one call that somebody else has thought out.
type Ask struct {
	Service  time.Duration // that its handler is to take
	Class    int           // the method, below the machine's Classes
	Deadline time.Duration // from now on; 0 = none
	Cancel   time.Duration // its caller changes its mind so long after; 0 = never
	// Criticality is its level.
	Criticality wire.Criticality
	// Repeatable says that it may run several times; AttemptsLeft is what the request says for which it is made (see wire.Request).
	Repeatable   bool
	AttemptsLeft uint8
	// Done is told of its outcome after Observe. It is called by the client's dispatcher in the middle of its turn: what it wants to do with that host, such as
	// to make another call, it leaves to World.At.
	Done func(*Observation)
}

// Ask has one client make this call now. It reports whether it could: a client whose host is down or stalls makes none.
func (s *Source) Ask(at int, a Ask) bool { return s.ask(at, a) != nil }

// Begin is Ask for a call that may be cancelled when its caller chooses: cancel may be called at any time, also by a Done, and does nothing once the call has
// its outcome.
func (s *Source) Begin(at int, a Ask) (cancel func(), ok bool) {
	ended, done := false, a.Done
	a.Done = func(o *Observation) {
		ended = true
		if done != nil {
			done(o)
		}
	}
	k := s.ask(at, a)
	if k == nil {
		return func() {}, false
	}
	id := k.work.ID
	return func() {
		if !ended {
			s.w.at(s.w.now, script(func() { k.cancel(id) }))
		}
	}, true
}

// ask makes the call; nil if it could not. What it returns may have ended, and be another call's.
func (s *Source) ask(at int, a Ask) *call {
	c := &s.clients[at]
	if c.host.down || c.host.stalls() || c.life != c.host.epoch && s.open(c) != nil {
		return nil
	}
	k := s.lend()
	k.client, k.host, k.life, k.made = at, c.host, c.life, s.w.now
	k.work = Work{ID: s.w.checks.call(a.Repeatable), Service: a.Service, Class: a.Class}
	k.work.encode(k.payload[:])
	k.Session, k.Method, k.Payload, k.Reply = c.session, s.to.methods[a.Class], k.payload[:], k.Reply[:0]
	k.Deadline, k.Criticality, k.Repeatable, k.AttemptsLeft, k.ended = 0, a.Criticality, a.Repeatable, a.AttemptsLeft, a.Done
	if a.Deadline > 0 {
		k.Deadline = s.w.now.Add(a.Deadline)
	}
	if a.Cancel > 0 {
		id := k.work.ID
		s.w.at(s.w.now.Add(a.Cancel), script(func() { k.cancel(id) }))
	}
	c.host.calls++
	c.host.d.Submit(s.w.now, &k.Call)
	c.host.turn()
	return k
}

// cancel ends the call if it is still the same one. One that has ended, the dispatcher leaves alone.
func (k *call) cancel(id uint64) {
	h := k.host
	switch {
	case k.work.ID != id || h.down || k.life != h.epoch:
	case h.stalls():
		h.w.at(h.stopped, script(func() { k.cancel(id) }))
	default:
		h.d.Cancel(h.w.now, &k.Call)
		h.turn()
	}
}

// Close closes a client's session with all its calls, if it has one; its next call opens another. One whose host stalls does nothing.
func (s *Source) Close(at int) {
	c := &s.clients[at]
	if session := s.Session(at); session != nil && !c.host.stalls() {
		c.life = 0
		c.host.d.CloseSession(s.w.now, session)
		c.host.turn()
	}
}

// Session is a client's session; nil = it has none, or its host is down or was.
func (s *Source) Session(at int) *dispatcher.Session {
	c := &s.clients[at]
	if c.host.down || c.host.stalls() || c.life != c.host.epoch {
		return nil
	}
	return c.session
}

func (s *Source) lend() *call {
	k := s.spare
	if k == nil {
		k = &call{source: s}
		k.Done = k.done
		return k
	}
	s.spare, k.next = k.next, nil
	return k
}

// done is the call's outcome.
func (k *call) done(*dispatcher.Call) {
	s := k.source
	k.host.calls--
	s.w.checks.ended(k.work.ID, k.Outcome)
	if k.Outcome == dispatcher.OutcomeOK {
		s.w.checks.answer(k.work.ID, k.Reply)
	}
	if s.cfg.Observe != nil || k.ended != nil {
		now := s.w.now
		s.seen = Observation{Client: k.client, Work: k.work, Made: k.made, Ended: now, Call: &k.Call, Latency: now.Sub(k.made)}
		if s.cfg.Observe != nil {
			s.cfg.Observe(&s.seen)
		}
		if k.ended != nil {
			k.ended(&s.seen)
		}
	}
	k.next, s.spare = s.spare, k
}
