package runtime

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/hw/cpu"
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
	// kernel chooses. Nothing else of the process is ever pinned.
	Dedicated bool
	PollerCPU *int
	// TrustedNetwork accepts peers without proof that they receive at their address: see ARCHITECTURE.md, section 3.
	TrustedNetwork bool
	// Slots bounds the outstanding requests of one session. 0 = 256, at most 1024.
	Slots int
	// SessionsMax and ConnectionsMax bound what peers can make us keep. 0 = 1<<20 and 65536.
	SessionsMax, ConnectionsMax int
	// NoPacking sends one message a packet. It is there to measure ports; packing never makes a message wait.
	NoPacking bool
	// WrapPort puts middleware around the port, such as faults, or the tap of runtime/capture.
	WrapPort func(dispatcher.Port) dispatcher.Port
}

const (
	slotsDefault = 256
	slotsMax     = 1024
)

// Stats is what an operator watches.
type Stats = dispatcher.Snapshot

// Endpoint owns a port and the one loop that polls it. Servers and clients of a process may share it.
type Endpoint struct {
	cfg  EndpointConfig
	port dispatcher.Port
	bare dispatcher.Port // port without middleware
	mode string
	// dispatcher is what Mode adds, where the loop's mode was chosen.
	dispatcher string
	d          *dispatcher.Dispatcher
	loop       *dispatcher.Loop
	starts     sync.Once
	closes     sync.Once
	closed     chan struct{}
	keeper     sync.WaitGroup // of who looks after the port's interface
	err        error
	life       life
	shut       bool // no session may be opened any more; only the loop looks at it

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
	if err := cfg.settleMode(); err != nil {
		return nil, err
	}
	port, mode, err := openPort(cfg)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{cfg: cfg, port: port, bare: port, mode: mode, closed: make(chan struct{})}
	if cfg.WrapPort != nil {
		port = cfg.WrapPort(port)
		e.port = port
	}
	core := dispatcher.Config{
		TrustedNetwork: cfg.TrustedNetwork, SlotsMax: cfg.Slots,
		SessionsMax: cfg.SessionsMax, ConnectionsMax: cfg.ConnectionsMax, NoPacking: cfg.NoPacking,
	}
	var epoch [4]byte
	rand.Read(epoch[:]) // never fails: crypto/rand aborts the process instead
	rand.Read(core.TokenKey[:])
	core.Epoch = binary.BigEndian.Uint32(epoch[:])>>8 | 1
	e.d = dispatcher.New(core, port)
	e.replyMax = e.d.ReplyMax()
	loop, err := e.loopConfig()
	if err != nil {
		return nil, errors.Join(err, port.Close())
	}
	if e.loop, err = dispatcher.NewLoop(loop, e.d, port); err != nil {
		return nil, errors.Join(err, port.Close())
	}
	return e, nil
}

// loopConfig says how the loop uses its CPU.
func (e *Endpoint) loopConfig() (dispatcher.LoopConfig, error) {
	cfg := dispatcher.LoopConfig{Spin: e.cfg.Spin}
	if !e.cfg.Dedicated {
		if e.cfg.PollerCPU != nil {
			return cfg, errors.New("PollerCPU is for dedicated mode: set Dedicated as well")
		}
		return cfg, nil
	}
	if goruntime.GOMAXPROCS(0) < 2 {
		e.dispatcher = ", shared dispatcher (dedicated needs two Ps, and GOMAXPROCS is 1: run one process per CPU)"
		return cfg, nil
	}
	cfg.Dedicated, e.dispatcher = true, ", dedicated dispatcher"
	if e.cfg.PollerCPU == nil {
		return cfg, nil
	}
	own := *e.cfg.PollerCPU
	allowed, err := cpu.Allowed()
	if err == nil && !slices.Contains(allowed, own) {
		err = fmt.Errorf("poller CPU %d: this process may use %v", own, allowed)
	}
	cfg.Pin = func() {
		if err := cpu.PinThread(own); err != nil {
			slog.Warn("the poller is not pinned", "cpu", own, "error", err)
		}
	}
	return cfg, err
}

// openPort opens AF_XDP if an interface is named, and kernel UDP if not, or if AF_XDP is not to be had there.
func openPort(cfg EndpointConfig) (dispatcher.Port, string, error) {
	fallback := ""
	if cfg.Interface != "" && cfg.Mode != ModeUDP {
		port, err := openXDP(cfg)
		if err == nil {
			return port, port.Mode(), nil
		}
		if cfg.RequireXDP || cfg.Sockets != nil || cfg.Mode != ModeAuto {
			return nil, "", fmt.Errorf("opening AF_XDP on %s, mode %v: %w", cfg.Interface, cfg.Mode, err)
		}
		fallback = fmt.Sprintf(" (AF_XDP on %s is not to be had: %v)", cfg.Interface, err)
	}
	port, err := openUDP(cfg.Address, cfg.Port)
	if err != nil {
		return nil, "", fmt.Errorf("opening kernel UDP: %w", err)
	}
	return port, "kernel UDP" + fallback, nil
}

// Mode says in words what carries the packets, and why it is not AF_XDP where that was asked for.
func (e *Endpoint) Mode() string {
	mode := e.mode
	if port, ok := e.bare.(xdpPort); ok {
		_ = e.do(func(*dispatcher.Dispatcher, clock.Time) { mode = port.Mode() }) // closed: what it was when it was opened
	}
	return mode + e.dispatcher
}

// PortName is "xdp" or "udp".
func (e *Endpoint) PortName() string { return e.port.Name() }

// Stats reads the counters and the present state.
func (e *Endpoint) Stats() (Stats, error) {
	var s Stats
	err := e.do(func(d *dispatcher.Dispatcher, _ clock.Time) { s = d.Snapshot() })
	return s, err
}

// Audit checks the books: the sum of all sessions' windows against the credits issued, calls and requests against their
// outcomes, and, with AF_XDP, that every frame has exactly one owner.
func (e *Endpoint) Audit() error {
	var err error
	stopped := e.do(func(d *dispatcher.Dispatcher, _ clock.Time) {
		err = d.Audit()
		if frames, ok := e.bare.(interface{ Audit() error }); ok {
			err = errors.Join(err, frames.Audit())
		}
	})
	if stopped != nil {
		return stopped
	}
	return err
}

// start makes the loop run, once, and has somebody look after the port's interface.
func (e *Endpoint) start() {
	e.starts.Do(func() {
		e.loop.Start()
		if port, ok := e.bare.(xdpPort); ok {
			own := func(f func()) bool {
				return e.loop.Do(func(*dispatcher.Dispatcher, clock.Time) { f() }) == nil
			}
			e.keeper.Go(func() { port.Keep(own, e.closed) })
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

// do runs f as the dispatcher's owner and waits for it.
func (e *Endpoint) do(f func(d *dispatcher.Dispatcher, now clock.Time)) error {
	e.start()
	if err := e.loop.Do(f); err != nil {
		return ErrClosed
	}
	return nil
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

// serve has the endpoint accept connections from here on.
func (e *Endpoint) serve(cfg dispatcher.ServeConfig) error {
	return e.do(func(d *dispatcher.Dispatcher, _ clock.Time) { e.loop.SetWorkers(d.Serve(cfg)) })
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
		e.start() // so that the task below finds a loop
		_ = e.loop.Do(func(d *dispatcher.Dispatcher, now clock.Time) {
			e.shut = true // a session that was opened from here on would have nobody to end its calls
			d.Close(now)
		})
		e.keeper.Wait()
		e.life.end()
		e.err = e.loop.Stop(closePatience)
	})
	return e.err
}
