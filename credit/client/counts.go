package client

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// countsParts is into how many parts a sliding window is cut: it forgets an eighth of itself at a time.
const countsParts = 8

// counts is a sliding window over what happened and how much of it was good. It covers between seven eighths and the whole of its length.
//
// A clock that stalls or is an hour further only empties it. One that jumps back by less than the window has what happens counted in the newest part until
// time is there again; by more, the window begins anew, since nothing in it would grow old for as long as the jump was.
type counts struct {
	part  time.Duration // length of a part
	from  clock.Time    // beginning of the newest part
	at    int           // its index
	parts [countsParts]tally
	sum   tally
}

// tally is a part of a window.
type tally struct{ all, good uint32 }

func newCounts(window time.Duration) counts { return counts{part: max(window/countsParts, 1)} }

// add counts so many, of which some were good.
func (c *counts) add(now clock.Time, all, good uint32) {
	c.advance(now)
	p := &c.parts[c.at]
	p.all, p.good = p.all+all, p.good+good
	c.sum.all, c.sum.good = c.sum.all+all, c.sum.good+good
}

// advance forgets what is older than the window.
func (c *counts) advance(now clock.Time) {
	passed := now.Sub(c.from)
	switch {
	case passed >= 0 && passed < c.part:
	case passed < 0 && passed > -countsParts*c.part:
	case passed < 0 || passed >= countsParts*c.part:
		c.clear()
		c.from = now
	default:
		for ; passed >= c.part; passed -= c.part {
			c.at = (c.at + 1) % countsParts
			old := &c.parts[c.at]
			c.sum.all, c.sum.good = c.sum.all-old.all, c.sum.good-old.good
			*old = tally{}
			c.from = c.from.Add(c.part)
		}
	}
}

func (c *counts) clear() { c.parts, c.sum = [countsParts]tally{}, tally{} }
