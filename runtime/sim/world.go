package sim

import (
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// start is when a world begins: zero means "unset" to the cores.
const start clock.Time = 1_000_000_000

// Streams of random numbers. Each is drawn from by one thing only, so that what a scheme does to the network does not change what the clients
// ask for: schemes are compared on the same arrivals.
const (
	streamNetwork = 1 + iota
	streamArrivals
	streamService
	streamKeys
	streamPauses
)

// World is a simulated cluster. Its owner adds hosts and sources, and then lets it Run.
type World struct {
	seed   uint64
	now    clock.Time
	order  uint64
	future future
	net    network
	hosts  []*Host // by the number in their address
	keys   *rand.Rand
	checks Checks
	spare  *packet // packets for reuse
}

// NewWorld makes an empty world. All that is random in it comes from the seed.
func NewWorld(seed uint64, n Network) *World {
	w := &World{seed: seed, now: start, keys: rand.New(rand.NewPCG(seed, streamKeys))}
	w.net = network{Network: n, rng: rand.New(rand.NewPCG(seed, streamNetwork)), cut: make(map[[2]wire.Addr]bool)}
	return w
}

// Now is the virtual time.
func (w *World) Now() clock.Time { return w.now }

// Elapsed is the virtual time since the world began.
func (w *World) Elapsed() time.Duration { return w.now.Sub(start) }

// Instant is the virtual time at which so much has elapsed.
func (w *World) Instant(elapsed time.Duration) clock.Time { return start.Add(elapsed) }

// Checks are what the world has watched.
func (w *World) Checks() *Checks { return &w.checks }

// Events is the number of events that were foreseen: of both ends, packets and timers. It says what a run costs, on any machine the same.
func (w *World) Events() uint64 { return w.order }

// at foresees an event.
func (w *World) at(when clock.Time, who actor) {
	w.order++
	w.future.push(event{max(when, w.now), w.order, who}, false)
}

// inOrder foresees an event of which it is likely that none of its kind comes later.
func (w *World) inOrder(when clock.Time, who actor) {
	w.order++
	w.future.push(event{max(when, w.now), w.order, who}, true)
}

// script is an actor of somebody's own.
type script func()

func (s script) act(*World) { s() }

// At calls f when so much time has elapsed: to change the demand, to cut a link, to restart a host.
func (w *World) At(elapsed time.Duration, f func()) { w.at(start.Add(elapsed), script(f)) }

// Run lets the world go on until so much time has elapsed since its beginning.
func (w *World) Run(elapsed time.Duration) {
	until := start.Add(elapsed)
	for e, ok := w.future.next(until); ok; e, ok = w.future.next(until) {
		w.now = e.at
		e.who.act(w)
	}
	w.now = max(w.now, until)
}
