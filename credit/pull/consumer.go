package pull

import (
	"errors"
	"math"
)

// Unbounded is a demand without an end (rule 3.17): whoever asks for as much is sent items as they come.
const Unbounded = math.MaxInt64

// The errors of a consumer.
var (
	// ErrDemand: an item at least must be asked for (rule 3.9).
	ErrDemand = errors.New("pull: demand of less than one item")
	// ErrExcess: the producer sent more than it was asked for, against rule 1.1. None of it is taken.
	ErrExcess = errors.New("pull: more items than were asked for")
)

// Consumer is the consumer's half: what it has asked for and not got yet. The zero value is one that has asked for nothing.
type Consumer struct {
	position uint64 // items that arrived
	wanted   uint64 // and those that were asked for besides; at most Unbounded
	over     bool   // ended, or cancelled
}

// Request asks for n items more. What adds up to Unbounded stays there. After the end, or Cancel, it does nothing (rule 3.6).
func (c *Consumer) Request(n int64) error {
	if n <= 0 {
		return ErrDemand
	}
	if !c.over {
		c.wanted = min(c.wanted+uint64(n), Unbounded)
	}
	return nil
}

// Wanted is how many items were asked for and did not arrive yet.
func (c *Consumer) Wanted() uint64 { return c.wanted }

// Position is how many items have arrived.
func (c *Consumer) Position() uint64 { return c.position }

// Over reports whether no more items will arrive: they have ended, or were cancelled.
func (c *Consumer) Over() bool { return c.over }

// Pull is what to ask the producer for; ok is false when there is nothing to ask for. The same pull may be made any number of times.
func (c *Consumer) Pull() (position, n uint64, ok bool) {
	return c.position, c.wanted, c.wanted > 0 && !c.over
}

// Received takes the answer to the pull from a position: so many items, and whether they were the last. It returns how many of them, from the end, are new: an answer to
// an earlier pull, or to the same once more, has fewer, or none.
func (c *Consumer) Received(position uint64, count int, end bool) (fresh int, err error) {
	if c.over {
		return 0, nil
	}
	known := c.position - position // modulo 2^64: of a position that we never asked from it is huge
	if position > c.position || known > uint64(count) {
		return 0, nil
	}
	fresh = count - int(known)
	if uint64(fresh) > c.wanted {
		return 0, ErrExcess
	}
	c.position += uint64(fresh)
	if c.wanted < Unbounded {
		c.wanted -= uint64(fresh)
	}
	if c.over = end; end {
		c.wanted = 0
	}
	return fresh, nil
}

// Cancel ends it: nothing is asked for any more, and nothing that arrives is taken (rules 3.6, 3.7, 3.12).
func (c *Consumer) Cancel() { c.over, c.wanted = true, 0 }
