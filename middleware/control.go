package middleware

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Control decides about the requests of one server. It is safe for concurrent use: one mutex stands around its gates, for less than a microsecond at a time, and
// nobody waits inside it. It has one goroutine, which measures (see beat), until Close.
type Control struct {
	config Config
	now    func() clock.Time
	until  func(time.Time) time.Duration
	alarm  func(*queue, time.Duration) // has the ring of a queue called later
	routes map[string]*Lane
	mux    *http.ServeMux // nil = no routes
	others Lane
	passes sync.Pool
	beat   *beat
	delay  func(clock.Time) time.Duration

	mu     sync.Mutex
	queues []*queue // the first is the shared one
}

// queue is a gate, and the alarm for those who wait at it.
type queue struct {
	control *Control
	gate    *admit.Gate
	timer   *time.Timer
	armed   bool
}

// Lane is where the requests of a route go. It belongs to its Control.
type Lane struct {
	queue  *queue // nil = exempt
	method admit.Method
	apart  bool
}

// Apart reports whether the route has permits of its own (Route.InService).
func (l *Lane) Apart() bool { return l.apart }

// ServeHTTP is never called: a lane is a handler so that http.ServeMux can find it by its pattern.
func (l *Lane) ServeHTTP(http.ResponseWriter, *http.Request) {}

// New makes a Control. It panics if two patterns of Config.Routes conflict, or one cannot be read, as http.ServeMux does.
func New(config Config) *Control {
	config.fill()
	c := &Control{config: config, now: config.Now, until: time.Until, routes: map[string]*Lane{}}
	c.delay = config.Delay
	if c.delay == nil {
		c.beat = newBeat(config.SLO, c.now)
		c.delay = c.beat.delay
	}
	c.alarm = func(l *queue, d time.Duration) {
		if l.timer == nil {
			l.timer = time.AfterFunc(d, l.ring)
		} else {
			l.timer.Reset(d)
		}
	}
	c.passes.New = func() any {
		p := &Pass{wake: make(chan told, 1)}
		p.ticket.Value = p
		return p
	}
	c.others = Lane{queue: c.newQueue(config.Permits), method: admit.NewMethod(admit.MethodConfig{})}
	for pattern, route := range config.Routes {
		c.routes[pattern] = c.newRoute(route)
		if c.mux == nil {
			c.mux = http.NewServeMux()
		}
		c.mux.Handle(pattern, c.routes[pattern])
	}
	return c
}

func (c *Control) newQueue(permits int) *queue {
	l := &queue{control: c, gate: c.config.gate(permits, rand.Uint64())}
	c.queues = append(c.queues, l)
	return l
}

func (c *Control) newRoute(r Route) *Lane {
	l := &Lane{queue: c.queues[0], apart: r.InService > 0}
	switch {
	case r.Exempt:
		l.queue = nil
	case r.InService > 0:
		l.queue = c.newQueue(r.InService)
	}
	l.method = admit.NewMethod(admit.MethodConfig{Cost: r.Cost, Rate: r.Rate, Burst: r.Burst, Weight: r.Weight, Level: r.Level})
	return l
}

// Arrival is a request as a transport sees it.
type Arrival struct {
	Lane     *Lane       // nil = that of the requests without a route
	Level    admit.Level // Unset = the route's
	Attempt  uint8       // 0 for the first
	Deadline time.Time   // zero = none
	// Arrived is when the request came to this host, where the transport has an idea; zero = it has none. It has not waited longer than anything did since, as far as
	// the control can tell.
	Arrived clock.Time
}

// Close ends what measures. Requests are decided about as before, as if they had not waited before they came here.
func (c *Control) Close() { c.beat.close() }

// Audit checks the books: that each request that arrived is accounted for. It takes time in proportion to those that wait.
func (c *Control) Audit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.queues {
		if err := q.gate.Audit(); err != nil {
			return err
		}
	}
	return nil
}

// Now reads the control's clock.
func (c *Control) Now() clock.Time { return c.now() }

// Arrive decides about a request without waiting. If the verdict is OK, the pass is to be given back exactly once, by Wait (when it does not return an OK), Done or Leave;
// otherwise it is nil, and the request did not run. It is nil, too, for an exempt route: all methods of a nil pass do nothing.
func (c *Control) Arrive(a Arrival) (*Pass, admit.Verdict) {
	if a.Lane == nil {
		a.Lane = &c.others
	}
	l := a.Lane.queue
	if l == nil {
		return nil, admit.Verdict{OK: true}
	}
	p := c.passes.Get().(*Pass)
	now := c.now()
	delay := c.delay(now)
	if a.Arrived != 0 {
		delay = min(delay, max(now.Sub(a.Arrived), 0))
	}
	arrival := admit.Arrival{Delay: delay, Level: a.Level, Attempt: a.Attempt, Method: &a.Lane.method}
	if !a.Deadline.IsZero() {
		arrival.Deadline = now.Add(c.until(a.Deadline))
	}
	c.mu.Lock()
	step, v := l.gate.Arrive(now, &p.ticket, arrival)
	l.drain(now)
	c.mu.Unlock()
	if step == admit.Refused {
		c.passes.Put(p)
		return nil, v
	}
	p.queue, p.waits = l, step == admit.Wait
	return p, v
}

// drain tells those that wait no longer. The control's mutex is held; nobody is waited for, since each channel has room for the one answer that it gets.
func (l *queue) drain(now clock.Time) {
	for t, step, v := l.gate.Next(now); t != nil; t, step, v = l.gate.Next(now) {
		t.Value.(*Pass).wake <- told{step, v}
	}
	if at := l.gate.Deadline(); at != 0 && !l.armed {
		l.armed = true
		l.control.alarm(l, at.Sub(now))
	}
}

// ring is called when somebody may have waited too long. An alarm is not moved when the oldest goes, so it may find that it is too early.
func (l *queue) ring() {
	l.control.mu.Lock()
	defer l.control.mu.Unlock()
	l.armed = false
	l.drain(l.control.now())
}

// Pass is a request that was let in: it may run now, or waits for that. It has one owner.
type Pass struct {
	queue  *queue
	ticket admit.Ticket
	waits  bool
	wake   chan told // of one
}

type told struct {
	step    admit.Step
	verdict admit.Verdict
}

// Wait returns when the request may run, was refused after all, or the context ended: then the error is the context's. Without an OK the pass is
// given back, and is not to be used any more.
func (p *Pass) Wait(ctx context.Context) (admit.Verdict, error) {
	if p == nil || !p.waits {
		return admit.Verdict{OK: true}, nil
	}
	select {
	case told := <-p.wake:
		return p.hear(told), nil
	case <-ctx.Done():
		p.Leave()
		return admit.Verdict{}, ctx.Err()
	}
}

func (p *Pass) hear(t told) admit.Verdict {
	p.waits = false
	if t.step == admit.Refused {
		p.queue.control.passes.Put(p)
	}
	return t.verdict
}

// Done gives the pass of a request back that ran. What it took is learnt of its route, unless it says nothing of the next one, since it panicked or was
// cancelled.
func (p *Pass) Done(learn bool) {
	if p == nil {
		return
	}
	l, c := p.queue, p.queue.control
	now := c.now()
	c.mu.Lock()
	l.gate.Done(now, &p.ticket, learn)
	l.drain(now)
	c.mu.Unlock()
	c.passes.Put(p)
}

// Leave gives the pass of a request back that will not run, whether it waits, may run, or was refused meanwhile.
func (p *Pass) Leave() {
	if p == nil {
		return
	}
	if p.waits {
		c := p.queue.control
		c.mu.Lock()
		left := p.queue.gate.Leave(&p.ticket)
		c.mu.Unlock()
		if left {
			p.waits = false
			c.passes.Put(p)
			return
		}
		if !p.hear(<-p.wake).OK {
			return
		}
	}
	p.Done(false)
}

// Lane is where the requests of a gRPC method go, "/package.Service/Method": its own, its service's, or nil.
func (c *Control) Lane(method string) *Lane {
	if len(c.routes) == 0 {
		return nil
	}
	if l, found := c.routes[method]; found {
		return l
	}
	return c.routes[method[:strings.LastIndexByte(method, '/')+1]]
}

// Exempt is the lane of requests that pass whatever happens.
var Exempt = &Lane{}
