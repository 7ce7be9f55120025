package runtime

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// EndpointConfig says where an endpoint stands and how it uses its CPU. The zero value is kernel UDP on a free port.
type EndpointConfig struct {
	// Interface has AF_XDP sockets opened on its receive queues. "" = kernel UDP, which is all that other systems than Linux have.
	Interface string
	// Queue is the first queue that gets a socket, and Queues how many from there on; 0 = all, at most 64. Packets of any other queue, and those
	// that the XDP program leaves to the kernel (fragments, IP options, extension headers, VLAN tags), are served through ordinary sockets, more slowly.
	Queue  uint32
	Queues int
	// PinPath shares the program that `stillwater xdp load` has pinned in this folder, instead of loading one. That takes CAP_NET_RAW alone, and
	// several processes can share a NIC, each with queues of its own. What is put into the program is taken out again by Close.
	PinPath string
	// Mode names a rung of the ladder: exactly that one is used, also when the interface is opened anew, and where it is not to be had there is an
	// error and no fallback. 0 = the best that works, in the order of the modes. ModeUDP with an Interface is kernel UDP at its first IPv4
	// address, or at its first IPv6 one if it has no other or Address is "::".
	Mode Mode
	// RequireXDP makes opening fail where AF_XDP is not to be had, instead of falling back to kernel UDP.
	RequireXDP bool
	// Sockets has the AF_XDP sockets of another implementation than package xsk's, on one queue. It must be had where it is named: there is
	// no fallback. Package xsk/asavie is one; whoever does not name it does not link it.
	Sockets *Sockets
	// Address is the local address, IPv4 or IPv6. Unset or "::": the interface's first address of each family, on one port; or, with kernel UDP,
	// all addresses of the host. 0.0.0.0 means the same of IPv4 alone. A link-local address is served only if it is named; with kernel UDP it
	// needs its zone. An endpoint that has an IPv6 address sends payloads that are 20 bytes shorter.
	Address netip.Addr
	// Port is the UDP port. 0 = a free one.
	Port uint16
	// Spin is how long an idle endpoint polls before it blocks. 0 = 50 us, negative = for ever.
	Spin time.Duration
	// Dedicated has the loop poll on a thread of its own, while handlers run on others, instead of taking turns with them: for hosts with CPUs to
	// spare. It needs GOMAXPROCS of at least 2, or falls back to taking turns, as [Endpoint.Mode] says. It is unproven above two CPUs. PollerCPU pins that thread; nil = the
	// kernel chooses. Nothing else of the process is ever pinned. With several dispatchers, each has a thread, on the CPUs from PollerCPU on, and GOMAXPROCS must be above
	// their number.
	Dedicated bool
	PollerCPU *int
	// Dispatchers is how many loops the endpoint has, each with queues, sessions, workers and a part of the credits of its own, so that several CPUs serve one port.
	// Requests of one connection are one dispatcher's, and the kernel spreads packets as it likes: those of another dispatcher are handed over. 0 = 1, at most
	// DispatchersMax; with AF_XDP at most as many as there are queues, and with kernel UDP more than one need Linux.
	Dispatchers int
	// TrustedNetwork accepts peers without proof that they receive at their address: see ARCHITECTURE.md, section 3.
	TrustedNetwork bool
	// Slots bounds the outstanding requests of one session. 0 = 256, at most 1024.
	Slots int
	// SessionsMax and ConnectionsMax bound what peers can make us keep. 0 = 1<<20 and 65536. Each of several dispatchers has its part of them.
	SessionsMax, ConnectionsMax int
	// NoPacking sends one message a packet. It is there to measure ports; packing never makes a message wait.
	NoPacking bool
	// WrapPort puts middleware around the port, such as faults, or the tap of runtime/capture. It is called for each dispatcher, which has a port
	// of its own; a tap is for one.
	WrapPort func(dispatcher.Port) dispatcher.Port
}

const (
	slotsDefault = 256
	slotsMax     = 1024
)

// Stats is what an operator watches.
type Stats = dispatcher.Snapshot

// Endpoint owns a port, and the loops that poll it: usually one. Servers and clients of a process may share it.
type Endpoint struct {
	cfg   EndpointConfig
	cores []*core
	bare  dispatcher.Port // of the first dispatcher, without middleware
	mode  string
	// dispatchers is what Mode adds.
	dispatchers string
	starts      sync.Once
	closes      sync.Once
	closed      chan struct{}
	keeper      sync.WaitGroup // of who looks after the port's interface
	err         error
	life        life
	dialed      atomic.Uint64 // connections that were given a dispatcher

	replyMax int // the largest reply in bytes

	mu     sync.Mutex
	serves bool
	idle   *waiter // calls that can be used again
}

// ErrServesAlready says that an endpoint has a server.
var ErrServesAlready = errors.New("endpoint has a server already: register its methods there")

// Open opens the port. AF_XDP needs root, or CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and CAP_NET_RAW; with PinPath CAP_NET_RAW alone.
func Open(cfg EndpointConfig) (*Endpoint, error) {
	if cfg.Slots == 0 {
		cfg.Slots = slotsDefault
	}
	if cfg.Slots < 1 || cfg.Slots > slotsMax {
		return nil, fmt.Errorf("slots %d: must be 1 to %d", cfg.Slots, slotsMax)
	}
	if err := errors.Join(cfg.settleMode(), cfg.settleDispatchers()); err != nil {
		return nil, err
	}
	ports, mode, err := openPorts(cfg)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{cfg: cfg, mode: mode, dispatchers: cfg.describe(goruntime.GOMAXPROCS(0)), closed: make(chan struct{})}
	if err := e.build(ports, cfg.core()); err != nil {
		return nil, err
	}
	return e, nil
}

// core configures a dispatcher, with its part of what is bounded for all. They have one boot epoch and one secret: what one of them gave to a peer, each
// of them knows again.
func (c *EndpointConfig) core() dispatcher.Config {
	core := dispatcher.Config{
		TrustedNetwork: c.TrustedNetwork, SlotsMax: c.Slots, NoPacking: c.NoPacking,
		SessionsMax:    c.sessionsMax(),
		ConnectionsMax: share(cmp.Or(c.ConnectionsMax, dispatcher.ConnectionsDefault), 0, c.Dispatchers),
	}
	var epoch [4]byte
	rand.Read(epoch[:]) // never fails: crypto/rand aborts the process instead
	rand.Read(core.TokenKey[:])
	core.Epoch = binary.BigEndian.Uint32(epoch[:])>>8 | 1
	var seed [8]byte
	rand.Read(seed[:])
	core.Seed = binary.BigEndian.Uint64(seed[:])
	return core
}

// openPorts opens AF_XDP if an interface is named, and kernel UDP if not, or if AF_XDP is not to be had there: a port for each dispatcher.
func openPorts(cfg EndpointConfig) ([]dispatcher.Port, string, error) {
	fallback := ""
	if cfg.Interface != "" && cfg.Mode != ModeUDP {
		ports, err := openXDP(cfg)
		if err == nil {
			return asPorts(ports), ports[0].Mode(), nil
		}
		if cfg.RequireXDP || cfg.Sockets != nil || cfg.Mode != ModeAuto || tooFewQueues(err) {
			return nil, "", fmt.Errorf("opening AF_XDP on %s, mode %v: %w", cfg.Interface, cfg.Mode, err)
		}
		fallback = fmt.Sprintf(" (AF_XDP on %s is not to be had: %v)", cfg.Interface, err)
	}
	ports, err := openUDP(cfg.Address, cfg.Port, cfg.Dispatchers)
	if err != nil {
		return nil, "", fmt.Errorf("opening kernel UDP: %w", err)
	}
	return asPorts(ports), "kernel UDP" + fallback, nil
}

// sessionsMax bounds the sessions of one dispatcher.
func (c *EndpointConfig) sessionsMax() int {
	return share(cmp.Or(c.SessionsMax, dispatcher.SessionsDefault), 0, c.Dispatchers)
}

func asPorts[P dispatcher.Port](ports []P) (all []dispatcher.Port) {
	for _, p := range ports {
		all = append(all, p)
	}
	return all
}

// Mode says in words what carries the packets, and why it is not AF_XDP where that was asked for; and what the dispatchers are, if not one that is shared.
func (e *Endpoint) Mode() string {
	mode := e.mode
	if port, ok := e.bare.(xdpPort); ok {
		e.start()
		e.own(func() { mode = port.Mode() }) // closed: what it was when it was opened
	}
	return mode + e.dispatchers
}

// PortName is "xdp" or "udp".
func (e *Endpoint) PortName() string { return e.cores[0].port.Name() }

// Stats reads the counters and the present state. Of several dispatchers it is the sum, and the largest of the delays.
func (e *Endpoint) Stats() (all Stats, err error) {
	err = e.each(func(c *core, _ clock.Time) {
		s := c.d.Snapshot()
		all.Add(&s)
	})
	if err != nil {
		return Stats{}, err
	}
	return all, nil
}

// Audit checks the books: the sum of all sessions' windows against the credits issued, calls and requests against their
// outcomes, and, with AF_XDP, that every frame has exactly one owner.
func (e *Endpoint) Audit() error {
	var errs []error
	stopped := e.each(func(c *core, _ clock.Time) {
		errs = append(errs, c.d.Audit())
		if frames, ok := c.bare.(interface{ Audit() error }); ok {
			errs = append(errs, frames.Audit())
		}
	})
	return errors.Join(append(errs, stopped)...)
}

// start makes the loops run, once, and has somebody look after the port's interface.
func (e *Endpoint) start() {
	e.starts.Do(func() {
		for _, c := range e.cores {
			c.loop.Start()
		}
		if port, ok := e.bare.(xdpPort); ok {
			e.keeper.Go(func() { port.Keep(e.own, e.closed) })
		}
	})
}

// SetQueues gives the endpoint sockets on another number of the interface's queues, from the first one on, while it serves. What was received is
// handled; packets of queues that are given up go through an ordinary socket from then on. It waits until that is done. Unless
// EndpointConfig.Queues says how many, an endpoint takes new queues of its interface by itself.
func (e *Endpoint) SetQueues(count int) error {
	port, ok := e.bare.(xdpPort)
	if !ok {
		return errors.New("kernel UDP has no queues")
	}
	e.start()
	return port.Resize(count)
}

// Trouble is what is wrong with the endpoint's interface, in words; "" = nothing. What XDP cannot bring meanwhile goes through an
// ordinary socket, as far as the interface carries packets at all.
func (e *Endpoint) Trouble() string {
	if port, ok := e.bare.(xdpPort); ok {
		return port.Trouble()
	}
	return ""
}

// reserve makes the endpoint a server's: it can have one.
func (e *Endpoint) reserve() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.serves {
		return ErrServesAlready
	}
	e.serves = true
	return nil
}

// serve has the endpoint accept connections from here on, each dispatcher by its own configuration.
func (e *Endpoint) serve(cfgs []dispatcher.ServeConfig) error {
	i := 0
	return e.each(func(c *core, _ clock.Time) {
		c.loop.SetWorkers(c.d.Serve(cfgs[i]))
		i++
	})
}

func (e *Endpoint) slotsMax() int { return e.cfg.Slots }

func parallelDefault() int { return goruntime.GOMAXPROCS(0) }

// closePatience is how long Close waits for handlers once their contexts have ended.
const closePatience = time.Second

// Close ends calls under way with ErrClosed, cancels the contexts of the requests in service, gives their handlers a second
// to return, and closes the port. What a handler answers that takes longer goes nowhere; [Server.Serve] drains first.
func (e *Endpoint) Close() error {
	e.closes.Do(func() {
		close(e.closed)
		_ = e.each(func(c *core, now clock.Time) {
			c.shut = true // a session that was opened from here on would have nobody to end its calls
			c.d.Close(now)
		})
		e.keeper.Wait()
		e.life.end()
		e.err = e.stop()
	})
	return e.err
}
