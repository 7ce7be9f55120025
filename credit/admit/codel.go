package admit

import (
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

const (
	codelRecent = 16          // intervals after which the drop rate of the last time is forgotten (RFC 8289, section 5.5)
	codelStall  = time.Second // without a request, while more waited: the process stood still
)

// CoDel is RFC 8289 at a request queue: once the sojourn time has been above the target for an interval, requests are refused as they are taken from the queue,
// the next one interval / sqrt(count) after the last. A burst that is gone within an interval loses nothing.
//
// The RFC takes packets off until one may go; here each is one call of Dequeue, so what its loops keep in variables stands in advance and deliver. Two
// things are ours: a clock that went back makes nothing wait for longer than an interval, and when nothing was taken from the queue for a second, since the
// process stood still, the schedule of drops goes on from now instead of making up for all that it missed.
//
// The zero CoDel refuses nothing.
type CoDel struct {
	target, interval time.Duration

	firstAbove clock.Time // first_above_time_: when the delay will have been above the target for an interval; zero = it is not
	dropNext   clock.Time // drop_next_
	last       clock.Time // the last Dequeue
	count      uint32     // count_: drops since dropping began
	lastCount  uint32     // lastcount_
	dropping   bool       // dropping_
	advance    bool       // the last one was dropped: the next drop is to be timed if this one's delay is too long as well
	deliver    bool       // dropping has just begun: the next one goes whatever its delay is
}

// NewCoDel makes one. An interval of zero or less is one that refuses nothing.
func NewCoDel(target, interval time.Duration) CoDel {
	return CoDel{target: target, interval: max(interval, 0)}
}

// Target is the sojourn time below which all is well.
func (c *CoDel) Target() time.Duration { return c.target }

// Interval is how long the sojourn time may be above the target.
func (c *CoDel) Interval() time.Duration { return c.interval }

// Dequeue is section 5.5 of the RFC: it is told how long a request waited and how many still wait behind it. False means that it is to be refused.
func (c *CoDel) Dequeue(now clock.Time, sojourn time.Duration, queued int) bool {
	if c.interval == 0 {
		return true
	}
	tooLong := c.tooLong(now, sojourn, queued)
	if c.dropNext.Sub(now) > c.interval || c.dropping && now.Sub(c.last) > codelStall {
		c.dropNext = now
	}
	c.last = now
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
func (c *CoDel) tooLong(now clock.Time, sojourn time.Duration, queued int) bool {
	switch {
	case sojourn < c.target || queued == 0:
		c.firstAbove = 0
	case c.firstAbove == 0 || c.firstAbove.Sub(now) > c.interval:
		c.firstAbove = now.Add(c.interval)
	default:
		return now >= c.firstAbove
	}
	return false
}

// begin starts dropping, at the rate of the last time if that is not long ago.
func (c *CoDel) begin(now clock.Time) {
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
func (c *CoDel) law(t clock.Time) clock.Time {
	return t.Add(time.Duration(float64(c.interval) / math.Sqrt(float64(c.count))))
}
