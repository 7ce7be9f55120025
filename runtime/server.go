package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Request is what a handler sees. It is valid until the handler returns.
type Request struct {
	Payload []byte
	Method  string

	inner  *dispatcher.Request
	server *Server
	ctx    *requestContext // &own, until a handler's children may hold that
	own    requestContext
	// For who interrupts it, which is not the worker: a copy of ctx, and the function for dispatcher.Request.Interrupt.
	current   atomic.Pointer[requestContext]
	interrupt func()
}

// Deadline is the instant, on this machine's monotonic clock, after which nobody waits for the answer; zero = none.
func (r *Request) Deadline() clock.Time { return r.inner.Deadline }

// Criticality is how much the request matters; zero = it does not say, and counts as Critical.
func (r *Request) Criticality() Criticality { return r.inner.Criticality }

// Attempt is which attempt of its call this is: 0 for the first.
func (r *Request) Attempt() int { return int(r.inner.Attempt) }

// ID names the request within the server's boot: the session's handle here, and the request's running number in it.
func (r *Request) ID() (session uint32, number uint64) { return r.inner.Session(), r.inner.Number() }

// Waited is how long the request waited at this server, in the packet queue and in the request queue.
func (r *Request) Waited() (packetQueue, requestQueue time.Duration) { return r.inner.Waited() }

// Idle says that the handler has waited so long for something that is nobody's load, such as the next item of a feed: that is no service, and says nothing of how long others would
// take. A client sees it as time in the network.
func (r *Request) Idle(d time.Duration) { r.inner.Idle += max(d, 0) }

// Handler answers one request: it appends the reply to the buffer it is lent and returns it. It runs on a worker and may block. The
// payload, the buffer and the context are valid until it returns. An error becomes the caller's [HandlerError]; a panic
// ends this call only.
//
// Calls that it makes with its context inherit the deadline, the criticality, and whether somebody above repeats the whole; and they end when nobody waits for the answer any
// more, so a call that is cancelled stops the work in all layers. A handler that computes for long should look at the context's Err now and then.
type Handler func(ctx context.Context, req *Request, reply []byte) ([]byte, error)

// ServerConfig configures a server. The zero value serves over kernel UDP on a free port.
type ServerConfig struct {
	// Interface, Address and Port say where to serve; they go before those in Endpoint. See EndpointConfig.
	Interface string
	Address   netip.Addr
	Port      uint16
	// Endpoint is all else about the port that the server opens.
	Endpoint EndpointConfig
	// Shared serves on a port that exists already, for example that of a client, instead of opening one; the server does not close it.
	Shared *Endpoint

	// SLO is the latency that callers are promised, from which the control steers its queueing delay: target 0.4 of it,
	// rejection from 0.8 of it (the paper's settings). 0 = 200 us.
	SLO time.Duration
	// Scheme is the overload control by its name; "" = SchemeStillwater. Some of the others need their half at the clients: the same name in
	// ClientConfig.
	Scheme string
	// Tuning is what the settings of the other schemes are for: the SLO, the workers, the slots and the floor in it are those of
	// this configuration.
	Tuning SchemeParams
	// Workers bounds the requests in service, blocked ones included. 0 = 256. Each of several dispatchers has its part of them, and at least one.
	Workers int
	// QueueMax bounds the requests that wait; those beyond it are refused. 0 = 131,072, which bounds nothing but memory. It is for a server whose scheme does not keep the queue
	// short, as SchemeNone: a count of what waits is a time only where all requests take as long. It is shared out in the same way.
	QueueMax int
	// FixedWorkers lets in as many as Workers says, always. Else, with SchemeStillwater, there are fewer while requests that start in time end too late, since their
	// handlers wait for a device, a lock or each other: what waits inside them is seen by nobody, what waits in the queue drives the control. The server finds
	// that bound by trial, and goes back where goodput falls; requests without a deadline have no part in it.
	FixedWorkers bool
	// Parallel is the number of handlers that can compute at the same time. 0 = GOMAXPROCS. It is shared out in the same way.
	Parallel int
	// Floor keeps a session that was just served from falling to no credit at all. The zero value keeps it, as the paper's artifact does.
	NoFloor bool
	// Weight says what share of the credits each session of a client gets where they are scarce: twice that of another's for twice its weight, and
	// zero counts as 1. Nil = all have the same. It is asked when a session registers, on the loop: it must not block.
	Weight func(client netip.AddrPort) uint8
	// Admission says what else decides about a request: shares of levels, order of the queue, rates, warm-up. The zero value is safe.
	Admission Admission
	// Downstream are the sessions that this server's handlers call through, about once for each request. While calls wait there for credits, the server's own pool
	// is at most what these sessions were granted, so that its clients wait, and not requests in its handlers. It is of no effect with schemes that have no pool.
	Downstream []*Session
	// DrainTimeout bounds the wait for admitted requests when Serve ends. 0 = 5 s.
	DrainTimeout time.Duration
}

// Server answers requests on an endpoint.
type Server struct {
	cfg    ServerConfig
	ep     *Endpoint
	owns   bool
	serves sync.Once

	panicLog sync.Mutex
	panicAt  clock.Time
}

// Defaults of a server.
const (
	sloDefault          = 200 * time.Microsecond
	drainTimeoutDefault = 5 * time.Second
)

// endpoint is the configuration of the port, with the short forms put in.
func (c *ServerConfig) endpoint() EndpointConfig {
	e := c.Endpoint
	e.Interface = cmp.Or(c.Interface, e.Interface)
	e.Port = cmp.Or(c.Port, e.Port)
	if c.Address.IsValid() {
		e.Address = c.Address
	}
	return e
}

// NewServer opens the port and makes it ready. Requests are answered from [Server.Serve] on; callers that come earlier find
// nobody, and their requests are sent again.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.SLO < 0 || cfg.Workers < 0 || cfg.Parallel < 0 || cfg.QueueMax < 0 || cfg.DrainTimeout < 0 {
		return nil, fmt.Errorf("server with SLO %v, %d workers, %d parallel, a queue of %d, drain timeout %v: none may be negative",
			cfg.SLO, cfg.Workers, cfg.Parallel, cfg.QueueMax, cfg.DrainTimeout)
	}
	if _, err := baseline.Lookup(cfg.Scheme, cfg.Tuning); err != nil {
		return nil, err
	}
	if err := checkAdmission(&cfg.Admission); err != nil {
		return nil, fmt.Errorf("server's admission: %w", err)
	}
	if slices.Contains(cfg.Downstream, nil) {
		return nil, errDownstreamNil
	}
	s := &Server{cfg: cfg, ep: cfg.Shared}
	if s.ep == nil {
		ep, err := Open(cfg.endpoint())
		if err != nil {
			return nil, err
		}
		s.ep, s.owns = ep, true
	}
	if s.cfg.SLO == 0 {
		s.cfg.SLO = sloDefault
	}
	if s.cfg.DrainTimeout == 0 {
		s.cfg.DrainTimeout = drainTimeoutDefault
	}
	if err := s.ep.reserve(); err != nil { // not of an endpoint of our own, which is new
		return nil, err
	}
	return s, nil
}

// serveConfig derives the control's settings from the SLO. Of several dispatchers each has its part of the workers, of the smallest pool and of its growth.
func (s *Server) serveConfig(i int) (dispatcher.ServeConfig, error) {
	count := len(s.ep.cores)
	parallel := share(cmp.Or(s.cfg.Parallel, parallelDefault()), i, count)
	params := s.cfg.Tuning
	params.SLO, params.Workers, params.Slots, params.NoFloor = s.cfg.SLO, parallel, s.ep.slotsMax(), s.cfg.NoFloor
	params.Share = 1 / float64(count)
	scheme, err := baseline.Lookup(s.cfg.Scheme, params)
	if err != nil {
		return dispatcher.ServeConfig{}, err
	}
	ledger := credit.Config{Slots: min(scheme.Slots, params.Slots), MaxSessions: s.ep.cfg.sessionsMax(), Asking: scheme.Asking}
	cfg := dispatcher.ServeConfig{
		Credit:  credit.NewLedger(ledger, scheme.NewController()),
		Workers: share(cmp.Or(s.cfg.Workers, dispatcher.WorkersDefault), i, count), Parallel: parallel,
		QueueMax: share(cmp.Or(s.cfg.QueueMax, dispatcher.QueueDefault), i, count), AdaptWorkers: scheme.AdaptWorkers && !s.cfg.FixedWorkers,
		TargetDelay: scheme.TargetDelay, DropThreshold: scheme.DropThreshold, Admission: s.admission(),
	}
	if s.cfg.Weight != nil {
		cfg.Weight = func(client wire.Addr) uint8 { return s.cfg.Weight(client.AddrPort()) }
	}
	return cfg, nil
}

// Endpoint is the server's port.
func (s *Server) Endpoint() *Endpoint { return s.ep }

// Addr is the address that clients dial; if there are two, the IPv4 one. [Endpoint.Addrs] are all.
func (s *Server) Addr() string { return s.ep.Addr() }

// Credits reads what the server has in its books for each session, in no order. A loop serves nobody meanwhile, which takes it time in
// proportion to the sessions: it is for tests and for people, not for a monitor.
func (s *Server) Credits() (all []Credit, err error) {
	err = s.ep.each(func(c *core, _ clock.Time) {
		c.d.EachCredit(func(c Credit) { all = append(all, c) })
	})
	return all, err
}

// Stats reads the counters and the present state.
func (s *Server) Stats() (Stats, error) { return s.ep.Stats() }

// Handle registers a method by name. It fails when the name, or another with the same 64-bit hash, is registered already. A
// method that is registered after Serve has begun is unknown to those who called it before.
func (s *Server) Handle(method string, h Handler) error {
	return s.HandleWith(method, MethodConfig{}, h)
}

// run calls the handler on a worker. The request's own Request and context stay with the request object, so that a call allocates nothing.
func (s *Server) run(method string, h Handler, inner *dispatcher.Request) {
	r, _ := inner.Shell.(*Request)
	if r == nil {
		r = &Request{}
		r.ctx = &r.own
		r.current.Store(r.ctx)
		r.interrupt = func() { r.current.Load().interrupt() }
		inner.Shell = r
		inner.Interrupt.Store(&r.interrupt)
	}
	r.Payload, r.Method, r.inner, r.server, inner.Idle = inner.Payload, method, inner, s, 0
	r.ctx.begin(inner.Deadline, &s.ep.life, callOptions{criticality: inner.Criticality, left: inner.AttemptsLeft})
	if inner.Abandoned() { // before there was a context to interrupt
		r.ctx.interrupt()
	}
	inner.Status = wire.StatusPanic // until the handler has returned, which it need not: it may panic, or end its goroutine
	defer func() {
		if !r.ctx.finish() {
			r.ctx = &requestContext{}
			r.current.Store(r.ctx)
		}
		if v := recover(); v != nil {
			inner.Status = wire.StatusPanic
			s.logPanic(method, v)
		}
		if inner.Status == wire.StatusPanic {
			inner.Reply = inner.Reply[:0]
		}
	}()
	reply, err := h(r.ctx, r, inner.Reply[:0])
	switch {
	case err != nil:
		inner.Reply = append(inner.Reply[:0], errorText(err)...)
		inner.Status = wire.StatusHandlerError
		if isUnavailable(err) {
			inner.Status = wire.StatusUnavailable
		}
	case len(reply) > s.ep.replyMax: // not worth a copy
		inner.Status, inner.Reply = wire.StatusTooLarge, inner.Reply[:0]
	default:
		inner.Status, inner.Reply = wire.StatusOK, own(inner.Reply, reply)
	}
}

// own makes the reply the request object's: appended to the buffer that was lent it is already; anything else, such as the
// request's own payload, is copied, since nobody knows who else holds it.
func own(lent, reply []byte) []byte {
	if cap(lent) > 0 && cap(reply) > 0 && &lent[:1][0] == &reply[:1][0] {
		return reply
	}
	return append(lent[:0], reply...)
}

// errorTextMax bounds what an error costs on the wire.
const errorTextMax = 256

func errorText(err error) string { return clip(err.Error()) }

// clip cuts a text to errorTextMax bytes, between two characters.
func clip(text string) string {
	if len(text) <= errorTextMax {
		return text
	}
	end := errorTextMax
	for end > errorTextMax-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// logPanic writes at most one panic a second: a handler that always panics must not fill a disk.
func (s *Server) logPanic(method string, v any) {
	s.panicLog.Lock()
	defer s.panicLog.Unlock()
	now := clock.Now()
	if s.panicAt != 0 && now.Sub(s.panicAt) < time.Second {
		return
	}
	s.panicAt = now
	slog.Error("handler panicked", "method", method, "panic", clip(fmt.Sprint(v)), "stack", string(debug.Stack()))
}

// Serve answers requests until the context ends, then drains: new requests are refused, admitted ones are answered, within
// the drain timeout; then it closes the endpoint, if the server opened it. It returns nil after an orderly end. When the drain
// timeout is over, the contexts of the requests still in service are cancelled, and the error says how many they were.
func (s *Server) Serve(ctx context.Context) error {
	var err error
	s.serves.Do(func() {
		var cfgs []dispatcher.ServeConfig
		for i := range s.ep.cores {
			var cfg dispatcher.ServeConfig
			if cfg, err = s.serveConfig(i); err != nil {
				return
			}
			cfgs = append(cfgs, cfg)
		}
		err = s.ep.serve(cfgs)
	})
	if err != nil {
		return err
	}
	if len(s.cfg.Downstream) > 0 {
		done := make(chan struct{})
		var pressing sync.WaitGroup
		pressing.Go(func() { s.press(done) })
		defer pressing.Wait()
		defer close(done)
	}
	select {
	case <-ctx.Done():
	case <-s.ep.closed:
		return ErrClosed
	}
	if err = s.drain(); err != nil {
		s.ep.life.end()
	}
	if s.owns {
		err = errors.Join(err, s.ep.Close())
	}
	return err
}

// drainPoll is how often a draining server looks whether it is done.
const drainPoll = time.Millisecond

func (s *Server) drain() error {
	deadline := time.Now().Add(s.cfg.DrainTimeout)
	for {
		pending := 0
		err := s.ep.each(func(c *core, _ clock.Time) {
			c.d.Drain()
			pending += c.d.Pending()
		})
		if err != nil || pending == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("drain: %d requests still in service after %v", pending, s.cfg.DrainTimeout)
		}
		time.Sleep(drainPoll)
	}
}
