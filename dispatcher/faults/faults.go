package faults

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Probability is how likely a fault is for one packet: 0 = never, 1 = always.
type Probability float64

// Direction says which packets suffer.
type Direction uint8

// The directions, as the port's owner sees them. The zero value means both.
const (
	Receive Direction = 1 << iota
	Send
	Both = Receive | Send
)

// Config describes a bad network. Faults are drawn apart for each packet and direction, so a packet may suffer several.
type Config struct {
	Seed      uint64
	Loss      Probability
	Duplicate Probability
	Reorder   Probability // of being held back while others overtake it
	// ReorderDelay is the longest time that a packet is held back; how long each is, is drawn evenly. 0 = 200 us.
	ReorderDelay time.Duration
	// Corrupt is the probability that one bit of a packet flips behind the checksums. Plain packets carry no proof of
	// what they say, so with it nothing holds but that nobody crashes.
	Corrupt Probability
	// Directions that suffer; 0 = both.
	Directions Direction
	// HeldMax bounds the packets held back in each direction; beyond it they are not held. 0 = 4096.
	HeldMax int
}

const (
	reorderDelayDefault = 200 * time.Microsecond
	heldMaxDefault      = 4096
)

// Enabled reports whether there is any fault at all.
func (c Config) Enabled() bool {
	return c.Loss > 0 || c.Duplicate > 0 || c.Reorder > 0 || c.Corrupt > 0
}

// Validate reports a probability that is none, or a delay below zero.
func (c Config) Validate() error {
	for _, p := range []struct {
		name string
		p    Probability
	}{{"loss", c.Loss}, {"duplicate", c.Duplicate}, {"reorder", c.Reorder}, {"corrupt", c.Corrupt}} {
		if !(p.p >= 0 && p.p <= 1) {
			return fmt.Errorf("%s probability %v: must be from 0 to 1", p.name, float64(p.p))
		}
	}
	if c.ReorderDelay < 0 {
		return fmt.Errorf("reorder delay %v: must not be below zero", c.ReorderDelay)
	}
	return nil
}

// Stats counts faults since the port was wrapped, both directions together.
type Stats struct {
	Lost       uint64
	Duplicated uint64
	Delayed    uint64
	Corrupted  uint64
}

// Port is a port behind a bad network. It belongs to whoever owns the port.
type Port struct {
	dispatcher.Port
	cfg   Config
	rng   *rand.Rand
	now   clock.Time // of the last Receive
	stats Stats
	fair  atomic.Bool

	in, out   held
	delivered []*packet // handed out by the last Receive: their bytes are valid until the next
	spare     *packet

	lostIn, lostOut, doubledIn uint64
}

// Wrap puts a bad network in front of the port, or returns the port itself if the configuration has no faults.
func Wrap(port dispatcher.Port, cfg Config) dispatcher.Port {
	if !cfg.Enabled() {
		return port
	}
	return New(port, cfg)
}

// New is Wrap for who wants to read the counters.
func New(port dispatcher.Port, cfg Config) *Port {
	if cfg.ReorderDelay == 0 {
		cfg.ReorderDelay = reorderDelayDefault
	}
	if cfg.Directions == 0 {
		cfg.Directions = Both
	}
	if cfg.HeldMax == 0 {
		cfg.HeldMax = heldMaxDefault
	}
	return &Port{Port: port, cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x6661756c7473))}
}

// Name is the port's own, and says that it is not the whole truth.
func (p *Port) Name() string { return p.Port.Name() + "+faults" }

// Faults are the counters.
func (p *Port) Faults() Stats { return p.stats }

// Stats are the port's own, with what was lost and doubled here: they count what reaches the dispatcher and the port.
func (p *Port) Stats() dispatcher.PortStats {
	s := p.Port.Stats()
	s.Received += p.doubledIn - p.lostIn - uint64(p.in.count)
	s.ReceiveDropped += p.lostIn
	s.SendDropped += p.lostOut
	return s
}

// SendRefused is the port's own, with what was lost here: see [dispatcher.SendRefused].
func (p *Port) SendRefused() uint64 { return dispatcher.SendRefused(p.Port) + p.lostOut }

// Heal ends the faults: from here on packets pass as they are, but for those that are held back already. It may be called from any goroutine.
func (p *Port) Heal() { p.fair.Store(true) }

// Receive hands out what was held back and is due, and takes packets from the port.
func (p *Port) Receive(now clock.Time, batch []dispatcher.Datagram) int {
	p.now = now
	p.release(now)
	for i, k := range p.delivered {
		p.free(k)
		p.delivered[i] = nil
	}
	p.delivered = p.delivered[:0]
	n := 0
	for n < len(batch) && p.in.due(now) {
		k := p.in.take()
		p.delivered = append(p.delivered, k)
		batch[n] = dispatcher.Datagram{Payload: k.bytes, From: k.peer, Arrival: k.at}
		n++
	}
	fresh := p.Port.Receive(now, batch[n:])
	if p.cfg.Directions&Receive == 0 {
		return n + fresh
	}
	for _, in := range batch[n : n+fresh] {
		if p.arrives(now, in) {
			batch[n] = in
			n++
		}
	}
	return n
}

// arrives decides the fate of one received packet, and reports whether it arrives now.
func (p *Port) arrives(now clock.Time, in dispatcher.Datagram) bool {
	if p.happens(p.cfg.Loss) {
		p.stats.Lost++
		p.lostIn++
		return false
	}
	if p.happens(p.cfg.Corrupt) {
		p.flip(in.Payload)
	}
	if p.happens(p.cfg.Duplicate) && p.hold(&p.in, in.Payload, in.From, now) {
		p.stats.Duplicated++
		p.doubledIn++
	}
	if p.happens(p.cfg.Reorder) && p.hold(&p.in, in.Payload, in.From, now.Add(p.delay())) {
		p.stats.Delayed++
		return false
	}
	return true
}

// Send decides the fate of one packet on its way out.
func (p *Port) Send(b dispatcher.Buffer, to wire.Addr) {
	switch {
	case p.cfg.Directions&Send == 0:
		p.Port.Send(b, to)
		return
	case p.happens(p.cfg.Loss):
		p.stats.Lost++
		p.lostOut++
		p.Port.Drop(b)
		return
	}
	if p.happens(p.cfg.Corrupt) {
		p.flip(b.Bytes)
	}
	if p.happens(p.cfg.Duplicate) && p.copyOut(b.Bytes, to) {
		p.stats.Duplicated++
	}
	if p.happens(p.cfg.Reorder) && p.hold(&p.out, b.Bytes, to, p.now.Add(p.delay())) {
		p.stats.Delayed++
		p.Port.Drop(b)
		return
	}
	p.Port.Send(b, to)
}

// Outstanding counts what is held back on its way out, too: whoever waits for it to become zero keeps calling.
func (p *Port) Outstanding() int { return p.Port.Outstanding() + p.out.count }

// Wait is no longer than until the next held packet is due.
func (p *Port) Wait(timeout time.Duration, wake int) error {
	for _, h := range []*held{&p.in, &p.out} {
		if h.count > 0 {
			timeout = min(timeout, max(h.first.at.Sub(p.now), 0))
		}
	}
	return p.Port.Wait(timeout, wake)
}

// release sends what was held back on its way out and is due.
func (p *Port) release(now clock.Time) {
	if !p.out.due(now) {
		return
	}
	for p.out.due(now) {
		k := p.out.take()
		if !p.copyOut(k.bytes, k.peer) {
			p.stats.Lost++
			p.lostOut++
		}
		p.free(k)
	}
	p.Port.Kick()
}

// copyOut sends a copy, if the port has a buffer for it.
func (p *Port) copyOut(bytes []byte, to wire.Addr) bool {
	b, ok := p.Port.Lend()
	if !ok {
		return false
	}
	b.Bytes = append(b.Bytes[:0], bytes...)
	p.Port.Send(b, to)
	return true
}

func (p *Port) happens(how Probability) bool {
	return how > 0 && p.rng.Float64() < float64(how) && !p.fair.Load()
}

func (p *Port) delay() time.Duration {
	return time.Duration(p.rng.Int64N(int64(p.cfg.ReorderDelay) + 1))
}

// flip turns one bit over.
func (p *Port) flip(bytes []byte) {
	if len(bytes) == 0 {
		return
	}
	bit := p.rng.IntN(8 * len(bytes))
	bytes[bit/8] ^= 1 << (bit % 8)
	p.stats.Corrupted++
}
