package dispatcher

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// Dispatcher is the core of one endpoint. It has one owner at a time; no method blocks.
type Dispatcher struct {
	cfg   Config
	port  Port
	now   clock.Time // of the present call
	stats Stats

	conns  *session.Table
	minter *session.Minter
	small  rate // gone and retry to strangers
	refuse rate // refusals to sessions
	batch  [batchSize]Datagram

	out         []outgoing // by connection index
	dirty       []*session.Conn
	raw         int // packets queued that belong to no connection
	unsent      int
	unsentSince clock.Time // when the first of them was put there
	unsentBy    clock.Time // when the first of them must leave

	server     server
	caller     caller
	endedCount uint64 // calls that have their outcome
	rng        *rand.Rand

	rtt       session.RTT // over all accepted connections
	nextSweep clock.Time
}

// server is the state of the serving side.
type server struct {
	ServeConfig
	ledger    *credit.Ledger  // nil = serves nothing
	dequeuer  credit.Dequeuer // nil = the scheme has no say there
	leveler   credit.Leveler  // nil = the scheme tells no level
	peers     *session.Peers
	methods   map[wire.Method]*Method
	bounded   []*Method    // of them: with a bound of their own on requests in service
	tables    []*slotTable // by Peer.Slots; 0 is never used
	spare     []uint32     // free places in tables
	cursor    uint32       // of the sweep over tables
	queue     requestQueue
	pool      requestPool
	inService inService
	packetAge time.Duration // age of the oldest packet of the last batch, without stalled
	stalled   time.Duration // how long before the last batch nobody touched the dispatcher
	service   client.Learnt // over all methods
	overrun   overrun
	draining  bool
	admission
	pressure atomic.Uint64 // bits of a float64, for everybody
}

// slotTable is the at-most-once table of one session that is not idle.
type slotTable struct {
	session.Slots[Request]
	place credit.Session // 0 = spare
	heard clock.Time
}

// New returns a dispatcher over the port.
func New(cfg Config, port Port) *Dispatcher {
	cfg = cfg.withDefaults()
	d := &Dispatcher{
		cfg: cfg, port: port,
		conns:  session.NewTable(cfg.Owner, cfg.Epoch, cfg.ConnectionsMax),
		minter: session.NewMinter(cfg.TokenKey),
		server: server{
			peers: session.NewPeers(), methods: make(map[wire.Method]*Method), tables: make([]*slotTable, 1),
		},
		caller: newCaller(),
		rng:    rand.New(rand.NewPCG(cfg.Seed, uint64(cfg.Epoch)<<8|uint64(cfg.Owner))),
	}
	d.server.pool.keep = 2 * port.PayloadMax()
	return d
}

// Serve makes the dispatcher accept connections and run requests, and returns how many may be in service. Once.
func (d *Dispatcher) Serve(cfg ServeConfig) (workers int) {
	d.server.ServeConfig = cfg.withDefaults()
	d.server.inService = newInService(d.server.Workers, d.server.Parallel, d.server.AdaptWorkers)
	d.server.admission = newAdmission(&d.server.ServeConfig)
	d.server.ledger = cfg.Credit
	d.server.dequeuer, _ = credit.As[credit.Dequeuer](cfg.Credit.Controller())
	d.server.leveler, _ = credit.As[credit.Leveler](cfg.Credit.Controller())
	return d.server.Workers
}

// Close ends all client sessions, with their calls.
func (d *Dispatcher) Close(now clock.Time) {
	for _, s := range d.caller.sessions {
		if s != nil {
			d.CloseSession(now, s)
		}
	}
	d.Flush(now)
}

// Register adds a method.
func (d *Dispatcher) Register(m *Method) error {
	if other := d.server.methods[m.ID]; other != nil {
		return &MethodCollisionError{Name: m.Name, Other: other.Name}
	}
	d.server.methods[m.ID] = m
	m.admit = admit.NewMethod(m.Admission)
	if m.admit.InService.Bounded() {
		d.server.bounded = append(d.server.bounded, m)
	}
	return nil
}

// MethodCollisionError says that two method names have one 64-bit hash, or are the same.
type MethodCollisionError struct{ Name, Other string }

// Error says which, and what to do.
func (e *MethodCollisionError) Error() string {
	if e.Name == e.Other {
		return "method " + e.Name + " is registered already"
	}
	return "methods " + e.Name + " and " + e.Other + " have the same hash: rename one"
}

// Receive takes one batch of packets from the port, handles them, and returns their number.
func (d *Dispatcher) Receive(now clock.Time) int {
	d.server.stalled = now.Sub(d.now)
	d.now = now
	n := d.port.Receive(now, d.batch[:])
	d.server.packetAge = 0
	if n > 0 {
		oldest := d.batch[0].waits()
		for i := range d.batch[1:n] { // a port with several queues has several oldest ones
			oldest = min(oldest, d.batch[1+i].waits())
		}
		d.server.packetAge = d.waited(oldest)
	}
	for i := range n {
		d.packet(&d.batch[i])
	}
	return n
}

// Waited is how long a packet that arrived then has waited for the dispatcher while that worked, as of its present Receive.
func (d *Dispatcher) Waited(arrival clock.Time) time.Duration { return d.waited(arrival) }

// waited is how long a packet waited for the dispatcher while that worked. A dispatcher whose CPU was taken away, or that slept, finds
// packets that waited for its return: no load of the server's, and nothing that refusing them would mend.
func (d *Dispatcher) waited(arrival clock.Time) time.Duration {
	return max(d.now.Sub(arrival)-d.server.stalled, 0)
}

// packet handles one datagram: it finds the connection, then walks the messages.
func (d *Dispatcher) packet(in *Datagram) {
	d.stats.PacketsReceived++
	p, err := wire.ParsePacket(in.Payload)
	if err != nil || p.Flags&wire.PacketSealed != 0 {
		d.stats.Malformed++
		return
	}
	var c *session.Conn
	switch {
	case p.Flags&wire.PacketHandshake != 0:
		c = d.handshake(in, p.Messages)
	case p.Connection == 0:
		d.gone(in, p.Messages)
		return
	default:
		c = d.conns.Lookup(p.Connection)
		if c == nil {
			d.unknown(in, p)
			return
		}
		c.Heard = true
	}
	if c == nil {
		return
	}
	if c.Peer != in.From {
		d.stats.WrongPeer++
		return
	}
	newer, rtt := c.Received(in.Arrival, p.Header)
	d.messages(c, inbound{arrival: in.Arrival, since: in.waits(), number: p.Number, newer: newer, rtt: rtt}, p.Messages)
}

// inbound is what a packet says of all messages in it.
type inbound struct {
	arrival clock.Time
	since   clock.Time // it waits; later than its arrival if another dispatcher received it
	number  wire.PacketNumber
	newer   bool          // no later packet of its connection was seen before
	rtt     time.Duration // measured by it; zero = none
}

// messages walks the messages of a packet. What follows a malformed one is not readable.
func (d *Dispatcher) messages(c *session.Conn, in inbound, rest []byte) {
	for len(rest) > 0 {
		m, tail, err := wire.NextMessage(rest)
		if err != nil {
			d.stats.Malformed++
			return
		}
		rest = tail
		if c.Dialed {
			if err = d.fromServer(c, in, m); err == errOtherBoot {
				d.stats.LateAnswers++
				return
			}
		} else {
			err = d.fromClient(c, in, m)
		}
		if err != nil {
			d.stats.Malformed++
		}
	}
}

// Tick does what is due at now: finished timers of calls, the pool, grants to drained sessions, housekeeping. It is
// cheap when nothing is due.
func (d *Dispatcher) Tick(now clock.Time) {
	d.now = now
	d.callTimers()
	if d.server.ledger != nil {
		d.expireTail()
		d.credits()
	}
	if now >= d.nextSweep {
		d.nextSweep = now.Add(sweepEvery)
		d.sweep()
	}
}

// Deadline is when Tick must be called next even if no packet arrives; zero = never.
func (d *Dispatcher) Deadline() clock.Time {
	at := clock.Earliest(d.caller.timers.Next(), d.caller.probes.Next())
	if d.server.ledger == nil {
		return at
	}
	at = clock.Earliest(at, d.tailExpires())
	if d.server.ledger.Drained() > 0 {
		at = clock.Earliest(at, d.now.Add(drainedEvery))
	} else if len(d.server.tables)-1 > len(d.server.spare) || d.server.ledger.Issued() > 0 {
		at = clock.Earliest(at, d.now.Add(sweepEvery))
	}
	return at
}

// sweepCount is how many of so many a sweep looks at.
func sweepCount(all int) int { return max(sweepMin, all/sweepPart) }

// sweep looks at a few sessions, slot tables and connections: none has a timer of its own.
func (d *Dispatcher) sweep() {
	if d.server.ledger != nil {
		d.server.ledger.Sweep(d.now, sweepCount(d.server.peers.Len()))
		d.sweepTables()
	}
	for range min(sweepCount(d.conns.Len()), d.conns.Len()) {
		if c := d.conns.Sweep(); c != nil {
			d.sweepConnection(c)
		}
	}
}

// sweepConnection forgets a connection that is not used. One without sessions goes soon, and the client goes first: its next
// session would not find the server's half.
func (d *Dispatcher) sweepConnection(c *session.Conn) {
	silent := d.now.Sub(c.LastHeard)
	if c.Dialed {
		if at := d.caller.conns[c.Peer]; at.users == 0 && d.now.Sub(at.unusedSince) > d.cfg.PacketLifetime {
			d.abandon(c)
			d.conns.Remove(c)
			delete(d.caller.conns, c.Peer)
		}
		return
	}
	if silent > d.cfg.IdleTimeout || c.Sessions() == 0 && silent > unusedLifetimes*d.cfg.PacketLifetime {
		d.forget(c)
	}
}
