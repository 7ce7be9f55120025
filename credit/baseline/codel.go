package baseline

import (
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// CoDel's settings. Those of figure 1 of Breakwater's paper are not known; these are ours, as parts of the SLO. The interval, by the RFC a usual
// round trip, is service + RTT, a tenth of the SLO: callers that do not slow down are dropped fast enough only with one as short as
// that. The target is what served most within the SLO, in a model without costs of packets (1,000 clients, 10 workers, 10 us, at 1, 1.6 and 2 times
// capacity: 99, 100 and 98 %; with 0.4 for the target 99, 100 and 90 %, with an interval of half the SLO 99, 5 and 3 %).
const (
	codelTargetShare   = 0.2
	codelIntervalShare = 0.1
	codelRecent        = 16 // intervals after which the drop rate of the last time is forgotten (RFC 8289, section 5.5)
)

// codel is RFC 8289 at the server's request queue. The RFC takes packets off until one may go; here each is one call of Dequeue, so what its
// loops keep in variables stands in advance and deliver.
type codel struct {
	*credit.None
	target, interval time.Duration

	firstAbove clock.Time // first_above_time_: when the delay will have been above the target for an interval; zero = it is not
	dropNext   clock.Time // drop_next_
	count      uint32     // count_: drops since dropping began
	lastCount  uint32     // lastcount_
	dropping   bool       // dropping_
	advance    bool       // the last one was dropped: the next drop is to be timed if this one's delay is too long as well
	deliver    bool       // dropping has just begun: the next one goes whatever its delay is
}

func makeCoDel(p Params, s *Scheme) {
	target, interval := p.share(codelTargetShare), p.share(codelIntervalShare)
	s.NewController = func() credit.Controller {
		return &codel{None: credit.NewNone(p.Slots), target: target, interval: interval}
	}
}

// Target is the sojourn time below which all is well.
func (c *codel) Target() time.Duration { return c.target }

// Dequeue is section 5.5 of the RFC.
func (c *codel) Dequeue(now clock.Time, sojourn time.Duration, queued int) bool {
	tooLong := c.tooLong(now, sojourn, queued)
	switch {
	case c.deliver:
		c.deliver = false
	case !c.dropping:
		if tooLong {
			c.begin(now)
			return false
		}
	case !tooLong:
		c.dropping, c.advance = false, false
	default:
		if c.advance {
			c.advance = false
			c.dropNext = c.law(c.dropNext)
		}
		if now >= c.dropNext {
			c.count++
			c.advance = true
			return false
		}
	}
	return true
}

// tooLong is dodequeue of section 5.6: whether the sojourn time has been above the target for an interval. The last of a queue is never
// too late: "no more than a packet's worth" is none behind it.
func (c *codel) tooLong(now clock.Time, sojourn time.Duration, queued int) bool {
	switch {
	case sojourn < c.target || queued == 0:
		c.firstAbove = 0
	case c.firstAbove == 0:
		c.firstAbove = now.Add(c.interval)
	default:
		return now >= c.firstAbove
	}
	return false
}

// begin starts dropping, at the rate of the last time if that is not long ago.
func (c *codel) begin(now clock.Time) {
	c.dropping, c.deliver = true, true
	delta := c.count - c.lastCount
	c.count = 1
	if delta > 1 && now.Sub(c.dropNext) < codelRecent*c.interval {
		c.count = delta
	}
	c.dropNext = c.law(now)
	c.lastCount = c.count
}

// law is control_law: interval / sqrt(count) after the last one.
func (c *codel) law(t clock.Time) clock.Time {
	return t.Add(time.Duration(float64(c.interval) / math.Sqrt(float64(c.count))))
}
