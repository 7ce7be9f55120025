package child

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/callers"
	"github.com/stillwater-rpc/stillwater/bench/checker"
	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/dispatcher/faults"
	"github.com/stillwater-rpc/stillwater/hw/cpu"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// Main is one of the two processes: [Server] or [Client].
type Main func(cpu int) error

// slots bounds the outstanding requests of a session, and is all that does without control: what the published experiments had.
const slots = 64

// spinForever keeps both ends polling: a sleeping CPU would be measured otherwise.
const spinForever = -1

// ServeRequest starts a child's server.
type ServeRequest struct {
	Scheme  string          `json:"scheme"` // of overload control; "" = ours
	Tuning  sw.SchemeParams `json:"tuning"`
	SLO     time.Duration   `json:"slo_ns"`
	NoFloor bool            `json:"no_floor"`
	Log     string          `json:"log"`      // path of a checker.Log for the executions; "" = none
	Boot    uint32          `json:"boot"`     // how they name this life of the server
	PinPath string          `json:"pin_path"` // the pinned program to serve on; "" = one of its own

	Single       *target.Slow   `json:"single"`    // serve target.MethodSingle, by one worker; nil = the other methods, by as many as there may be
	Locked       *target.Locked `json:"locked"`    // serve target.MethodLocked
	QueueMax     int            `json:"queue_max"` // of the configuration, as are Admission and FixedWorkers
	FixedWorkers bool           `json:"fixed_workers"`
	Admission    sw.Admission   `json:"admission"`
	Transport
}

// Transport says what is below a child's sessions.
type Transport struct {
	UDP       bool    `json:"udp"`        // kernel UDP, also where AF_XDP is to be had
	Mode      sw.Mode `json:"mode"`       // on an interface: 0 = the best of AF_XDP
	NoPacking bool    `json:"no_packing"` // one message a packet: what a port can do, without the help of packing
	Sleep     bool    `json:"sleep"`      // an idle end blocks, as it does by itself, instead of polling for ever
	Slots     int     `json:"slots"`      // outstanding requests of a session; 0 = 64

	Faults faults.Config `json:"faults"` // of what this end receives and sends
}

// Opened answers a request that opened an endpoint.
type Opened struct {
	Address string `json:"address"`
	Mode    string `json:"mode"`
	Port    string `json:"port"`
}

// DialRequest opens a child's sessions.
type DialRequest struct {
	Address  string          `json:"address"`
	Sessions int             `json:"sessions"`
	Scheme   string          `json:"scheme"` // of the server
	Tuning   sw.SchemeParams `json:"tuning"`
	Log      string          `json:"log"` // path of a checker.Log for the outcomes; "" = none
	Retry    sw.RetryConfig  `json:"retry"`
	Transport
}

// serveChild obeys the parent, over standard input and output.
func serveChild(handlers map[string]func(json.RawMessage) (any, error)) error {
	in, err := lab.Stdin()
	if err != nil {
		return err
	}
	return lab.ServeChild(in, os.Stdout, handlers)
}

// child is what both processes have in common.
type child struct {
	place lab.Place
	cpu   int
	log   *checker.Log // nil = none
	bad   *faults.Port // nil = no faults
}

// openLog takes the log at the path in use, if there is one.
func (c *child) openLog(path string) (err error) {
	if path != "" {
		c.log, err = checker.OpenLog(path)
	}
	return err
}

func (c *child) closeLog() error {
	if c.log == nil {
		return nil
	}
	err := c.log.Close()
	c.log = nil
	return err
}

// enter takes note of the place, and moves to the CPU.
func (c *child) enter(raw json.RawMessage) (any, error) {
	if err := json.Unmarshal(raw, &c.place); err != nil {
		return nil, err
	}
	if c.cpu < 0 {
		return nil, nil
	}
	return nil, cpu.PinProcess(c.cpu)
}

// endpoint is the configuration that follows from the place.
func (c *child) endpoint(port uint16, t Transport) sw.EndpointConfig {
	cfg := sw.EndpointConfig{
		Port: port, Spin: spinForever, TrustedNetwork: true, Address: c.place.Address.Addr(), NoPacking: t.NoPacking, Slots: cmp.Or(t.Slots, slots),
	}
	if t.Sleep {
		cfg.Spin = 0
	}
	if c.place.Namespaced && !t.UDP {
		cfg.Interface, cfg.Mode, cfg.RequireXDP = c.place.Interface, t.Mode, t.Mode != sw.ModeUDP
	}
	c.bad = nil
	if t.Faults.Enabled() {
		cfg.WrapPort = func(port dispatcher.Port) dispatcher.Port {
			c.bad = faults.New(port, t.Faults)
			return c.bad
		}
	}
	return cfg
}

// heal ends the faults of what this end receives and sends.
func (c *child) heal() {
	if c.bad != nil {
		c.bad.Heal()
	}
}

// decode makes a handler of the control protocol out of a typed function.
func decode[T any](f func(T) (any, error)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var request T
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &request); err != nil {
				return nil, err
			}
		}
		return f(request)
	}
}

// serverChild is the server's process.
type serverChild struct {
	child
	srv  *sw.Server
	stop context.CancelFunc
	done chan error
	raw  *rawEcho
}

// Server runs the server's side of the lab until standard input ends. It is pinned to the CPU, unless that is negative.
func Server(cpu int) error {
	s := &serverChild{child: child{cpu: cpu}}
	err := serveChild(map[string]func(json.RawMessage) (any, error){
		lab.MethodGo: s.enter,
		"serve":      decode(s.serve),
		"stats":      decode(func(struct{}) (any, error) { return s.stats() }),
		"audit":      decode(func(struct{}) (any, error) { return nil, s.audit() }),
		"allocs":     decode(func(struct{}) (any, error) { return heapObjects(), nil }),
		"credits":    decode(func(struct{}) (any, error) { return s.credits() }),
		"heal":       decode(func(struct{}) (any, error) { s.heal(); return nil, nil }),
		"raw":        decode(func(struct{}) (any, error) { return s.serveRaw() }),
		"attached":   decode(func(struct{}) (any, error) { return s.attached() }),
		"close":      decode(func(struct{}) (any, error) { return nil, s.close() }),
	})
	return errors.Join(err, s.close())
}

func (s *serverChild) serve(r ServeRequest) (any, error) {
	if err := s.close(); err != nil {
		return nil, err
	}
	port := uint16(serverPort)
	if !s.place.Namespaced {
		port = 0 // the host's own loopback, where somebody may have it
	}
	endpoint := s.endpoint(port, r.Transport)
	endpoint.PinPath = r.PinPath
	cfg := sw.ServerConfig{
		Endpoint: endpoint, SLO: r.SLO, Scheme: r.Scheme, Tuning: r.Tuning, NoFloor: r.NoFloor, QueueMax: r.QueueMax, Admission: r.Admission, FixedWorkers: r.FixedWorkers,
	}
	if r.Single != nil {
		cfg.Workers, cfg.Parallel = 1, 1
	}
	srv, err := sw.NewServer(cfg)
	if err != nil {
		return nil, err
	}
	if err := s.register(srv, r); err != nil {
		return nil, errors.Join(err, srv.Endpoint().Close(), s.closeLog())
	}
	ctx, stop := context.WithCancel(context.Background())
	s.srv, s.stop, s.done = srv, stop, make(chan error, 1)
	go func() { s.done <- srv.Serve(ctx) }()
	ep := srv.Endpoint()
	return Opened{Address: ep.Addr(), Mode: ep.Mode(), Port: ep.PortName()}, nil
}

func (s *serverChild) register(srv *sw.Server, r ServeRequest) error {
	switch {
	case r.Single != nil:
		return target.NewSingle(*r.Single).Register(srv)
	case r.Locked != nil:
		return r.Locked.Register(srv)
	case r.Log == "":
		return target.Register(srv)
	}
	if err := s.openLog(r.Log); err != nil {
		return err
	}
	return target.RegisterLogged(srv, s.log, r.Boot)
}

// serverPort is where the lab's server listens.
const serverPort = 7700

var errNotServing = errors.New("no server runs in this child")

func (s *serverChild) stats() (sw.Stats, error) {
	if s.srv == nil {
		return sw.Stats{}, errNotServing
	}
	return s.srv.Stats()
}

func (s *serverChild) audit() error {
	if s.srv == nil {
		return errNotServing
	}
	return s.srv.Endpoint().Audit()
}

// close ends whatever serves. Handlers write to the log, so that is closed after them.
func (s *serverChild) close() error {
	err := s.closeRaw()
	if s.srv == nil {
		return err
	}
	s.stop()
	s.srv = nil
	return errors.Join(err, <-s.done, s.closeLog())
}

// clientChild is the load generator's process.
type clientChild struct {
	child
	client *sw.Client
	issuer *target.Issuer
}

// OpenRequest is an open-loop run against one method.
type OpenRequest struct {
	Method string        `json:"method"`
	Loop   load.OpenLoop `json:"loop"`
}

// ClosedRequest is a closed-loop run against one method.
type ClosedRequest struct {
	Method string          `json:"method"`
	Loop   load.ClosedLoop `json:"loop"`
}

// Client runs the generator's side of the lab until standard input ends. It is pinned to the CPU, unless that is negative.
func Client(cpu int) error {
	c := &clientChild{child: child{cpu: cpu}}
	err := serveChild(map[string]func(json.RawMessage) (any, error){
		lab.MethodGo: c.enter,
		"dial":       decode(c.dial),
		"open":       decode(c.open),
		"closed":     decode(c.closed),
		"callers":    decode(c.callers),
		"stats":      decode(func(struct{}) (any, error) { return c.stats() }),
		"audit":      decode(func(struct{}) (any, error) { return nil, c.audit() }),
		"credits":    decode(func(struct{}) (any, error) { return c.credits() }),
		"heal":       decode(func(struct{}) (any, error) { c.heal(); return nil, nil }),
		"round":      decode(func(struct{}) (any, error) { return nil, c.round() }),
		"allocs":     decode(func(struct{}) (any, error) { return heapObjects(), nil }),
		"raw":        decode(c.raw),
		"close":      decode(func(struct{}) (any, error) { return nil, c.close() }),
	})
	return errors.Join(err, c.close())
}

func (c *clientChild) dial(r DialRequest) (any, error) {
	if err := c.close(); err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddrPort(r.Address); err != nil {
		return nil, err
	}
	client, err := sw.Dial(context.Background(), r.Address, sw.ClientConfig{
		Endpoint: c.endpoint(0, r.Transport), Scheme: r.Scheme, Tuning: r.Tuning, Retry: r.Retry,
	})
	if err != nil {
		return nil, err
	}
	issuer, err := target.NewIssuer(client, r.Sessions, target.MethodSpin)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if err := c.openLog(r.Log); err != nil {
		return nil, errors.Join(err, issuer.Close(), client.Close())
	}
	if c.log != nil {
		issuer.SetLog(c.log)
	}
	c.client, c.issuer = client, issuer
	ep := client.Endpoint()
	return Opened{Address: ep.Addr(), Mode: ep.Mode(), Port: ep.PortName()}, nil
}

var errNotDialed = errors.New("this child has dialed nobody")

func (c *clientChild) open(r OpenRequest) (any, error) {
	if c.issuer == nil {
		return nil, errNotDialed
	}
	c.issuer.SetMethod(r.Method)
	r.Loop.ReasonName = target.ReasonName
	result, err := r.Loop.Run(context.Background(), c.issuer)
	if err != nil {
		return nil, fmt.Errorf("open loop: %w", err)
	}
	result.Histograms = nil
	return result, nil
}

func (c *clientChild) closed(r ClosedRequest) (any, error) {
	if c.issuer == nil {
		return nil, errNotDialed
	}
	c.issuer.SetMethod(r.Method)
	r.Loop.ReasonName = target.ReasonName
	result, err := r.Loop.Run(context.Background(), c.issuer)
	if err != nil {
		return nil, fmt.Errorf("closed loop: %w", err)
	}
	result.Histograms = nil
	return result, nil
}

// callers has callers make their calls over the sessions.
func (c *clientChild) callers(p callers.Plan) (any, error) {
	if c.issuer == nil {
		return nil, errNotDialed
	}
	return p.Run(context.Background(), c.issuer.Sessions())
}

// round has each session make one call without work, one after the other.
func (c *clientChild) round() error {
	if c.issuer == nil {
		return errNotDialed
	}
	c.issuer.SetMethod(target.MethodEcho)
	return c.issuer.Round()
}

func (c *clientChild) stats() (sw.Stats, error) {
	if c.client == nil {
		return sw.Stats{}, errNotDialed
	}
	return c.client.Endpoint().Stats()
}

func (c *clientChild) audit() error {
	if c.client == nil {
		return errNotDialed
	}
	return c.client.Endpoint().Audit()
}

func (c *clientChild) close() error {
	if c.client == nil {
		return nil
	}
	err := errors.Join(c.issuer.Close(), c.client.Close(), c.closeLog())
	c.client, c.issuer = nil, nil
	return err
}
