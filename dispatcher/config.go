package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// Config is fixed when a dispatcher is made. Zero values mean the documented defaults.
type Config struct {
	Owner    uint8    // which dispatcher of its endpoint this is: in every connection id
	Epoch    uint32   // differs from boot to boot: requests of an earlier boot never run
	TokenKey [32]byte // secret of the address tokens, random for each boot
	// TrustedNetwork accepts a first contact without an address token: one round trip less, and any peer can make us keep state
	// for an address that is not its own. And a first contact that is repeated across a restart of the server may run in both boots,
	// since nothing in it says which boot it is for; with tokens, it cannot.
	TrustedNetwork bool

	// ClientPolicy makes the client's half of a scheme of overload control, one for each session that is opened; nil = credits alone
	// decide.
	ClientPolicy func() client.Policy

	// Seed of the random numbers that spread retries in time, and that the throttle of a client refuses by.
	Seed uint64

	NoPacking bool // one message a packet: to measure ports without the help of packing

	SlotsMax       int           // outstanding requests of one session, at the server and at the client; 0 = 256, at most 1024
	ConnectionsMax int           // 0 = 65536
	SessionsMax    int           // at the server, and at the client; 0 = 1<<20. One connection may have at most as many as are left to others
	WaitingMax     int           // calls waiting for credit in one client session; 0 = 4096
	PacketLifetime time.Duration // how long a packet may still be under way; 0 = 1 s
	IdleTimeout    time.Duration // a connection that said nothing for so long is forgotten; 0 = 1 h
	RTOInitial     time.Duration // first retransmission before anything was measured; 0 = 2 ms
	GiveUp         time.Duration // a call without deadline is lost after so long without a sign of life, and so is the end of a session; 0 = 10 s
}

// ServeConfig makes a dispatcher serve. Zero values mean the documented defaults.
type ServeConfig struct {
	Credit  *credit.Ledger // required
	Workers int            // requests in service at once, blocked ones included; 0 = 256
	// Parallel is how many requests can be computed on at once: the queued work divided by it is how long the queue will take. 0 = 1.
	Parallel int
	// AdaptWorkers bounds the requests in service further while they wait in their handlers and end too late: see descent.
	AdaptWorkers bool
	QueueMax     int // requests waiting; 0 = 131072. Beyond it they are rejected
	// Backlog is the load signal of a shell that keeps queues of its own, for each CPU, which neither its Port nor the dispatcher sees: the whole of the
	// queueing delay, and how many packets wait there. nil = what Receive takes is the oldest, and requests are started in their order.
	Backlog func(now clock.Time) (delay time.Duration, count int)
	// Queued is told of each request that was admitted, for a shell that says itself which one to Start; nil = it takes what Next gives it.
	Queued func(*Request)
	// Admission is what else decides about a request.
	Admission Admission
	// Weight says what share of scarce credits each session of a client gets; nil = all the same. It is asked when a session registers.
	Weight func(client wire.Addr) uint8
	// TargetDelay and DropThreshold are told to the clients, who expire by the one and time retransmission by the other.
	TargetDelay, DropThreshold time.Duration
}

// Defaults that several dispatchers have to share.
const (
	ConnectionsDefault = 1 << 16
	SessionsDefault    = credit.DefaultMaxSessions
	WorkersDefault     = 256
	QueueDefault       = 1 << 17
)

// Bounds of what a peer can make us do or keep.
const (
	batchSize           = 64                     // packets taken from the port at once: 64 x 64 B fit the L1 cache, and 64 x 0.3 us keep a turn short
	smallAnswerRate     = 20_000                 // refusals, gone and retry per second: enough for every client to learn, too few to be worth provoking
	smallAnswerBurst    = 1024                   //
	freeRequestsMax     = 4096                   // request objects kept for reuse; more goes back to the garbage collector
	rtoMax              = 100 * time.Millisecond // a probe of a pending request is never slower than this
	settleMargin        = 20 * time.Microsecond  // below it, a timer is noise: one timer tick of a spinning loop
	sweepEvery          = time.Millisecond       // housekeeping at most this often
	sweepMin, sweepPart = 16, 1024               // a sweep looks at this many, or this part of all: everybody about once a second
	drainedGrantsTurn   = 32                     // credits given to drained sessions per turn
	drainedEvery        = 20 * time.Microsecond  // an idle server looks at its drained sessions so often, until each has its credit
	unusedLifetimes     = 4                      // packet lifetimes that a server keeps a connection without sessions; its client keeps it for one
)

// def replaces an unset value.
func def[T int | time.Duration](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}

func (c ServeConfig) withDefaults() ServeConfig {
	def(&c.Workers, WorkersDefault)
	def(&c.Parallel, 1)
	def(&c.QueueMax, QueueDefault)
	return c
}

func (c Config) withDefaults() Config {
	def(&c.SlotsMax, 256)
	def(&c.ConnectionsMax, ConnectionsDefault)
	def(&c.SessionsMax, SessionsDefault)
	def(&c.WaitingMax, 4096)
	def(&c.PacketLifetime, time.Second)
	def(&c.IdleTimeout, time.Hour)
	def(&c.RTOInitial, 2*time.Millisecond)
	def(&c.GiveUp, 10*time.Second)
	c.SlotsMax = min(c.SlotsMax, session.SlotsMax)
	c.SessionsMax = min(c.SessionsMax, session.PeersMax)
	return c
}

// Method is one registered method.
type Method struct {
	Name string
	ID   wire.Method
	// Run executes one request on a worker: it reads Payload, appends to Reply and sets Status. It may block.
	Run func(*Request)
	// Admission says what its requests cost and how many may be let in.
	Admission admit.MethodConfig

	admit  admit.Method // with its learnt service time
	parked requestQueue // what waits for the bound of its own on requests in service
}
