package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// ClientConfig configures a client. The zero value opens kernel UDP on a free port.
type ClientConfig struct {
	// Interface has the client use AF_XDP on it; it goes before the one in Endpoint. "" = kernel UDP.
	Interface string
	// Endpoint is all else about the port that the client opens.
	Endpoint EndpointConfig
	// Shared is a port that exists already, for example a server's, to be used instead of opening one; the client does not close it.
	Shared *Endpoint

	// Scheme is the server's overload control by its name, where that has a half at its clients; "" = SchemeStillwater, which has none. A client without
	// the half that its server counts on is served all the same, but not controlled by it.
	Scheme string
	// Tuning is what the settings of that half are for.
	Tuning SchemeParams

	// Retry, Hedge, Throttle and Breaker say what is done about calls that fail, over all sessions of the client. Left open, calls that are marked repeatable are tried
	// again, three attempts at most, from a budget of a tenth of all calls. The others are off unless they are set, and why:
	//   - Hedge sends what need not be sent; it is for who knows that slow calls are slow by chance, and not by load.
	//   - Throttle has little to do where there are credits: who holds none sends nothing but what the server last invited, one request at a time for each session, be the
	//     server busy or gone, and its return shows at once, with a throttle and without (dispatcher, TestDefaultsRecover). It is for schemes without credits.
	//   - Breaker turns a part of the calls that fail into all of them; it is for who would rather fail at once than wait for a server that is gone.
	Retry    RetryConfig
	Hedge    HedgeConfig
	Throttle ThrottleConfig
	Breaker  BreakerConfig
}

// Client is a session with one server, on an endpoint of its own or a shared one.
type Client struct {
	Session
	owns bool
}

// endpoint is the configuration of the port, with the short form put in.
func (c *ClientConfig) endpoint() EndpointConfig {
	e := c.Endpoint
	e.Interface = cmp.Or(c.Interface, e.Interface)
	return e
}

// Dial opens a client of the server at host:port, like 10.0.0.1:7700, [fd00::1]:7700 or server:7700. Nothing is sent before the first call, so a
// server that is not there shows at that call. The name is looked up at once. Of its addresses the first is taken that the endpoint can
// send to, IPv4 before IPv6, and what the kernel has a route to before the rest; the others are not tried. It is [ErrUnreachable] if there is none.
func Dial(ctx context.Context, address string, cfg ClientConfig) (*Client, error) {
	c, err := dial(ctx, address, cfg)
	if err != nil {
		return nil, fmt.Errorf("dialing %s: %w", address, err)
	}
	return c, nil
}

func dial(ctx context.Context, address string, cfg ClientConfig) (*Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	policy, err := policyOf(cfg.Scheme, cfg.Tuning)
	if err != nil {
		return nil, err
	}
	found, err := lookup(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &Client{Session: Session{ep: cfg.Shared, policy: policy, guard: cfg.guard()}}
	if c.ep == nil {
		endpoint := cfg.endpoint()
		if (endpoint.Interface == "" || endpoint.Mode == ModeUDP) && !endpoint.Address.IsValid() {
			found = routed(found)
			endpoint.Address = wildcard(found[0].Addr())
		}
		if c.ep, err = Open(endpoint); err != nil {
			return nil, err
		}
		c.owns = true
	}
	if c.to, err = c.ep.pick(found); err == nil {
		c.core = c.ep.dialer(&c.to)
		err = c.open()
	}
	if err != nil && c.owns {
		err = errors.Join(err, c.ep.Close())
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// NewSession opens one more session with the same server, on the same connection: another virtual client with credits of its own.
func (c *Client) NewSession() (*Session, error) {
	s := &Session{ep: c.ep, core: c.core, to: c.to, policy: c.policy, guard: c.guard}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// Endpoint is the client's port.
func (c *Client) Endpoint() *Endpoint { return c.ep }

// Close ends the client's session, and its endpoint with all sessions there if the client opened it.
func (c *Client) Close() error {
	err := c.Session.Close()
	if c.owns {
		err = errors.Join(err, c.ep.Close())
	}
	return err
}

// Session is one virtual client of a server: it holds credits, and its calls wait for them in order of their deadlines.
type Session struct {
	ep     *Endpoint
	core   *core // the dispatcher that has its connection
	to     wire.Addr
	policy func() client.Policy // nil = none
	guard  *client.Guard        // of the client, and its dispatcher's owner's; nil = none
	inner  *dispatcher.Session
}

func (s *Session) open() error {
	var err error
	var policy client.Policy
	if s.policy != nil {
		policy = s.policy()
	}
	stopped := s.do(func(d *dispatcher.Dispatcher, now clock.Time) {
		if s.core.shut {
			err = ErrClosed
			return
		}
		if s.inner, err = d.OpenWith(now, s.to, policy); err == nil {
			d.SetGuard(s.inner, s.guard)
		}
	})
	if stopped != nil {
		return stopped
	}
	return err
}

// do runs f as the owner of the session's dispatcher and waits for it.
func (s *Session) do(f func(d *dispatcher.Dispatcher, now clock.Time)) error {
	s.ep.start()
	return s.core.do(f)
}

// Close ends the session's calls with ErrClosed and hands its credits back.
func (s *Session) Close() error {
	err := s.do(func(d *dispatcher.Dispatcher, now clock.Time) {
		d.CloseSession(now, s.inner)
		d.Flush(now)
	})
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// SetAlternate has the session's hedges sent over another one, perhaps to another server that holds the same; nil = over itself. Both must be on one endpoint
// (ClientConfig.Shared) and one of its dispatchers, which an endpoint with one always is.
func (s *Session) SetAlternate(other *Session) error {
	if other != nil && other.core != s.core {
		return ErrOtherDispatcher
	}
	return s.do(func(*dispatcher.Dispatcher, clock.Time) {
		if other == nil {
			s.inner.SetAlternate(nil)
		} else {
			s.inner.SetAlternate(other.inner)
		}
	})
}

// Credit is what one end has in its books about the credits of one session.
type Credit = dispatcher.SessionCredit

// Credit reads the session's state: what it may send, and what waits.
func (s *Session) Credit() (c Credit, err error) {
	err = s.do(func(*dispatcher.Dispatcher, clock.Time) { c = s.inner.Credit() })
	return c, err
}

// Timing splits the time of a call.
type Timing = dispatcher.Timing

// MethodID is the hash of a method's name, for [Call].
type MethodID = wire.Method

// MethodOf hashes a method's name.
func MethodOf(name string) MethodID { return wire.MethodOf(name) }

// Call is one asynchronous call, for callers that have many under way: load generators, proxies, fan-out. Fill in the fields of the
// first block and hand it to [Session.Start]. Until Done is called it belongs to the runtime; afterwards it can be used again.
type Call struct {
	Method   MethodID
	Payload  []byte     // must not change until Done
	Deadline clock.Time // zero = none
	Priority uint8      // 1 is shed last, 128 first, by schemes that shed by rank; 0 = the session's scheme gives it one, if it does that
	Reply    []byte     // the reply is appended
	// Criticality says how much the call matters; Repeatable, that it may be tried again and hedged; NoWait, that it fails at once if there is no credit; and
	// AttemptsLeft, what the request said for which it is made. Inherit fills them in from a context.
	Criticality  Criticality
	Repeatable   bool
	NoWait       bool
	AttemptsLeft uint8
	// Done is called exactly once, on the endpoint's loop: it must not block, and may start calls. On an endpoint that is
	// closed it is called before Start returns; so one that starts the next call looks for OutcomeClosed first, or recurses for ever.
	Done func(*Call)
	User any // the caller's own

	inner     dispatcher.Call
	start     dispatcher.Task
	cancel    dispatcher.Task
	replyFrom int
}

// Outcome is how the call ended.
func (c *Call) Outcome() Outcome { return c.inner.Outcome }

// Reason is why the server refused it.
func (c *Call) Reason() RejectReason { return c.inner.Reason }

// Timing splits the time of an answered call.
func (c *Call) Timing() Timing { return c.inner.Timing }

// Retransmissions is how often the request was sent again.
func (c *Call) Retransmissions() int { return c.inner.Retransmissions }

// Attempts is how many attempts it took, hedges included; 0 where the client does nothing about calls that fail.
func (c *Call) Attempts() int { return c.inner.Attempts() }

// RetryAfter is for how long a server that refused the call expects to refuse the like; 0 = it does not say.
func (c *Call) RetryAfter() time.Duration { return c.inner.RetryAfter }

// Number is the request's running number in its session, once it was sent; of several attempts, that of the last.
func (c *Call) Number() (uint64, bool) { return c.inner.Number() }

// Start starts the call on the session. It does not block.
func (s *Session) Start(c *Call) {
	if c.Done == nil {
		panic("stillwater: Start of a call without Done") // here, and not on the loop, where nobody would know whose it is
	}
	c.replyFrom = len(c.Reply)
	in := &c.inner
	in.Outcome, in.Reason, in.Advice, in.Timing, in.Retransmissions = 0, 0, 0, Timing{}, 0 // of its last use
	in.Session, in.Method, in.Payload, in.Deadline, in.Reply = s.inner, c.Method, c.Payload, c.Deadline, c.Reply
	in.Priority, in.Criticality, in.Repeatable, in.NoWait, in.AttemptsLeft = c.Priority, c.Criticality, c.Repeatable, c.NoWait, c.AttemptsLeft
	if c.start.Run == nil {
		c.start.Run = func(d *dispatcher.Dispatcher, now clock.Time) { d.Submit(now, in) }
		c.cancel.Run = func(d *dispatcher.Dispatcher, now clock.Time) { d.Cancel(now, in) }
		in.Done = func(in *dispatcher.Call) {
			c.Reply = in.Reply
			c.Done(c)
		}
	}
	if !s.core.loop.Post(&c.start) {
		in.Outcome = dispatcher.OutcomeClosed
		c.Done(c)
	}
}

// waiter is a call with a goroutine that waits for it.
type waiter struct {
	Call
	wake chan struct{}

	next *waiter
}

// getWaiter takes a used one, or makes one.
func (e *Endpoint) getWaiter() *waiter {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.idle
	if w == nil {
		w = &waiter{wake: make(chan struct{}, 1)}
		w.Done = func(*Call) { w.wake <- struct{}{} }
		return w
	}
	e.idle, w.next = w.next, nil
	return w
}

func (e *Endpoint) putWaiter(w *waiter) {
	w.Payload, w.Reply = nil, nil
	w.inner.Payload, w.inner.Reply = nil, nil
	e.mu.Lock()
	w.next, e.idle = e.idle, w
	e.mu.Unlock()
}

// Call sends a request and appends the reply to buf, which it returns. It blocks until there is a credit and an answer, bounded by the
// context. Every cause of failure has an error of its own; the payload is the caller's again when Call returns. [Repeatable], [WithCriticality] and [NoWait] say more
// of the call, by its context. When the context ends, the server is told: what waits there does not start, and what runs has its context cancelled.
func (s *Session) Call(ctx context.Context, method string, payload, buf []byte) ([]byte, error) {
	reply, _, err := s.CallTimed(ctx, method, payload, buf)
	return reply, err
}

// deadlineMax is what a later deadline counts as: an instant further away is not to be had in nanoseconds.
const deadlineMax = 100 * 365 * 24 * time.Hour

// deadlineOf is a context's deadline on our clock.
func deadlineOf(ctx context.Context) clock.Time {
	at, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return clock.Now().Add(min(time.Until(at), deadlineMax))
}

// deadlineSlack is how much earlier than ours the timer of a context with the same deadline may be.
const deadlineSlack = time.Millisecond

// CallTimed is Call, and says where the time of an answered call went.
func (s *Session) CallTimed(ctx context.Context, method string, payload, buf []byte) ([]byte, Timing, error) {
	if err := ctx.Err(); err != nil {
		return buf, Timing{}, unsent(err)
	}
	w := s.ep.getWaiter()
	w.Method, w.Payload, w.Reply = wire.MethodOf(method), payload, buf
	w.Inherit(ctx)
	s.Start(&w.Call)
	cancelled := false
	select {
	case <-w.wake:
	case <-ctx.Done():
		// At its deadline the call ends by itself, and so does what runs for it; only a cancellation has to be told. One that was told at the
		// deadline would race with it, and the handler's context would say one or the other.
		if w.Call.Deadline == 0 || clock.Now().Add(deadlineSlack) < w.Call.Deadline {
			cancelled = s.core.loop.Post(&w.cancel)
		}
		<-w.wake
	}
	err := w.Err()
	reply, timing := w.Reply[:w.replyFrom:cap(w.Reply)], w.inner.Timing
	if err == nil {
		reply = w.Reply
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = w.endedBy(ctx.Err())
	}
	if !cancelled { // otherwise its task may still be on the list: left to the garbage collector
		s.ep.putWaiter(w)
	}
	return reply, timing, err
}

// endedBy is the error of a call that its context ended before the loop did. Context and loop have the same deadline on two timers,
// and whichever is first must not decide which error the caller sees.
func (c *Call) endedBy(err error) error {
	_, sent := c.Number()
	if sent && errors.Is(err, context.DeadlineExceeded) {
		return ErrDeadline
	}
	return unsent(err)
}

// unsent is the error of a call that its context ended before it was sent.
func unsent(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrNoCredit
	}
	return err
}
