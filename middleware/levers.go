package middleware

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
)

// Levers, for an incident. Each can be pulled at any time and set back, holds for all routes that are not exempt, and is logged.

// Shed refuses a share of what arrives, 0 to 1, the lowest level first; 0 = none.
func (c *Control) Shed(share float64) {
	c.pull("shed", share, func(l *queue) { l.gate.Door().ShedShare(share) })
}

// RetriesOff refuses all but first attempts, and has every refusal say "do not retry".
func (c *Control) RetriesOff(off bool) {
	c.pull("retries off", off, func(l *queue) { l.gate.Door().RetriesOff(off) })
}

// Drain refuses all.
func (c *Control) Drain(on bool) { c.pull("drain", on, func(l *queue) { l.gate.Door().Drain(on) }) }

// Warmup lets in a growing share of what arrives, from the next request on, for so long; 0 = the server is warm.
func (c *Control) Warmup(length time.Duration) {
	c.pull("warm up", length, func(l *queue) { l.gate.Door().Warmup(length) })
}

// Headroom keeps a share of the CPUs free, 0 to 1; 0 = none.
func (c *Control) Headroom(share float64) {
	c.pull("headroom", share, func(l *queue) { l.gate.Door().Headroom(share) })
}

// SetPermits changes Config.Permits; routes with a bound of their own keep it. Those that run, run on.
func (c *Control) SetPermits(permits int) {
	c.pull("permits", permits, func(l *queue) {
		if l == c.queues[0] {
			l.gate.SetPermits(permits)
		}
	})
}

func (c *Control) pull(lever string, to any, set func(*queue)) {
	c.mu.Lock()
	now := c.now()
	for _, l := range c.queues {
		set(l)
		l.drain(now)
	}
	c.mu.Unlock()
	c.config.Log.Info("lever pulled", "lever", lever, "to", to)
}

// Pressure is the queueing delay in targets: above 1 the server is overloaded, and a handler that has a cheaper answer should give that. It is that of the routes that
// share permits.
func (c *Control) Pressure() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queues[0].gate.Pressure(c.now())
}

// Stats counts since the control was made, over all routes that are not exempt.
type Stats struct {
	Gate    admit.GateCounters `json:"gate"`
	Door    admit.Counters     `json:"door"`
	Running int                `json:"running_count"`
	Waiting int                `json:"waiting_count"`
	Levers  admit.Levers       `json:"levers"`
}

// Stats reads the counters.
func (c *Control) Stats() (s Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Levers = c.queues[0].gate.Door().Levers()
	for _, l := range c.queues {
		s.add(l.gate)
	}
	return s
}

func (s *Stats) add(g *admit.Gate) {
	from, to := g.Counters(), &s.Gate
	to.Arrived += from.Arrived
	to.RefusedDoor += from.RefusedDoor
	to.RefusedLate += from.RefusedLate
	to.Left += from.Left
	to.Done += from.Done
	door := g.Door().Counters()
	s.Door.Arrivals += door.Arrivals
	s.Door.Repeated += door.Repeated
	s.Door.Admitted += door.Admitted
	s.Door.Returned += door.Returned
	s.Door.Storms += door.Storms
	for reason, n := range door.Refused {
		s.Door.Refused[reason] += n
	}
	s.Running += g.Running()
	s.Waiting += g.Waiting()
}
