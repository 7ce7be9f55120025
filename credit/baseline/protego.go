package baseline

import (
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Protego's settings (Cho et al., NSDI 2023).
const (
	protegoRoundTrips     = 4     // between two changes of the pool
	protegoEfficiency     = 0.1   // t_e: more throughput for more load than this is worth more credits
	protegoDrops          = 1.0   // t_d: drops per arrival above which the pool shrinks
	protegoIncrease       = 0.001 // a, per session; one for 1,000
	protegoDecrease       = 0.02  // d
	protegoStepMin        = 1.0   // the increase is at least one credit, as in Breakwater's law
	protegoThresholdShare = thresholdShare
)

// protego sizes the pool by what more load brings: as long as it brings throughput, there are more credits, and else fewer. It has no target
// delay; that makes it fit for work that waits for locks, where a queue says nothing.
type protego struct {
	threshold time.Duration
	service   time.Duration
	workers   float64
	slots     float64
	sessions  uint64
	pool      float64
	due       clock.Time // of the next update

	began           clock.Time // when the present interval did; zero = before the first
	ends            clock.Time // and when it is over
	load            credit.Load
	known           bool    // in and out are those of an interval
	lastIn, lastOut float64 // rates of the last interval, per second
}

func makeProtego(p Params, s *Scheme) {
	s.DropThreshold = p.share(protegoThresholdShare)
	threshold := s.DropThreshold
	s.NewController = func() credit.Controller {
		c := &protego{threshold: threshold, service: p.Service, workers: float64(p.Workers), slots: float64(p.Slots)}
		c.set(c.workers)
		return c
	}
}

// UpdateDue reports whether a round trip has passed since the last update.
func (p *protego) UpdateDue(now clock.Time) bool { return now >= p.due }

// Update counts, and changes the pool every fourth end-to-end round trip: the network's, the delay here and the service.
func (p *protego) Update(now clock.Time, signal credit.Signal, load credit.Load) bool {
	if !p.UpdateDue(now) {
		return false
	}
	network := roundTrip(signal.RTT)
	p.due = now.Add(network)
	p.load.Arrivals += load.Arrivals
	p.load.Answers += load.Answers
	p.load.Rejections += load.Rejections
	p.load.Active = p.load.Active || load.Active
	if p.began != 0 && now < p.ends {
		return true
	}
	if p.began != 0 {
		p.adapt(now.Sub(p.began).Seconds())
	}
	p.began, p.load = now, credit.Load{}
	endToEnd := network + min(max(signal.Delay, 0), time.Second) + p.service
	p.ends = now.Add(protegoRoundTrips * endToEnd)
	return true
}

// adapt is the law, after an interval of so many seconds.
//
// An interval without a request is not in it: it would shrink the pool for want of load. Here it changes nothing, or, if sessions wait for a
// credit all the same, lets the pool grow, since that is why nothing arrives: those that hold all there is need not use it, before their leases
// run out.
func (p *protego) adapt(seconds float64) {
	in, out := float64(p.load.Arrivals)/seconds, float64(p.load.Answers)/seconds
	more, brought := in-p.lastIn, out-p.lastOut
	known := p.known
	p.lastIn, p.lastOut, p.known = in, out, true
	switch {
	case p.load.Arrivals == 0 && p.load.Answers == 0:
		if p.load.Active {
			p.grow()
		}
	case float64(p.load.Rejections) > protegoDrops*float64(p.load.Arrivals):
		p.set(p.pool * (1 - protegoDecrease))
	case !known: // nothing to compare with
	case more*brought > 0 && math.Abs(brought) > protegoEfficiency*math.Abs(more):
		p.grow()
	default:
		p.set(p.pool * (1 - protegoDecrease))
	}
}

// grow is the increase: a.
func (p *protego) grow() {
	p.set(p.pool + max(protegoIncrease*float64(p.sessions), protegoStepMin))
}

// set stores the pool within the workers and all slots; the lower bound wins.
func (p *protego) set(pool float64) {
	p.pool = max(min(pool, p.slots*float64(p.sessions)), p.workers)
}

// Resize notes the number of sessions.
func (p *protego) Resize(sessions uint64) {
	p.sessions = sessions
	p.set(p.pool)
}

// Window is Breakwater's law with the artifact's floor, on which Protego is built.
func (p *protego) Window(h credit.Holding) uint64 {
	return credit.NextWindow(h, p.Pool(), p.sessions, true)
}

// Pool is C, rounded down.
func (p *protego) Pool() uint64 { return uint64(p.pool) }

// Target is zero: the pool does not follow the delay.
func (p *protego) Target() time.Duration { return 0 }

// Admit rejects above the drop threshold.
func (p *protego) Admit(a credit.Arrival) bool { return a.Delay <= p.threshold }
