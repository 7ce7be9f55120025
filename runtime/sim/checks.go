package sim

import (
	"fmt"

	"github.com/stillwater-rpc/stillwater/dispatcher"
)

// Checks watch the world from outside of the cores: a request runs at most once, unless its call is repeatable, a call has exactly one outcome, and whoever is told that his call was
// answered, or that it did not run, is told the truth, whichever comes first.
type Checks struct {
	Calls  uint64 // calls that were made
	Ended  uint64 // that have their outcome
	Ran    uint64 // requests that started
	Killed uint64 // calls of hosts that were killed: they have no outcome

	violations []string
	begun      []uint64 // a bit per call
	recent     []uint64 // begun, and may not begin again
	over       []uint64
	repeatable []uint64 // may begin several times
	denied     []uint64 // ended in a way that says that it has not run, and never will
}

// violationsKept bounds the list: the first ones say what is wrong.
const violationsKept = 16

// Violations are the first things that must not happen, and did.
func (c *Checks) Violations() []string { return c.violations }

func (c *Checks) violate(format string, args ...any) {
	if len(c.violations) < violationsKept {
		c.violations = append(c.violations, fmt.Sprintf(format, args...))
	}
}

// call gives a new call its number.
func (c *Checks) call(repeatable bool) (id uint64) {
	id = c.Calls
	c.Calls++
	if id/64 == uint64(len(c.begun)) {
		c.begun, c.recent, c.over, c.denied = append(c.begun, 0), append(c.recent, 0), append(c.over, 0), append(c.denied, 0)
		c.repeatable = append(c.repeatable, 0)
	}
	if repeatable {
		set(c.repeatable, id)
	}
	return id
}

// set sets the call's bit, and reports whether it was set before.
func set(bits []uint64, id uint64) bool {
	before := bits[id/64]>>(id%64)&1 == 1
	bits[id/64] |= 1 << (id % 64)
	return before
}

// isSet reports whether the call's bit is set.
func isSet(bits []uint64, id uint64) bool { return bits[id/64]>>(id%64)&1 == 1 }

func (c *Checks) ran(id uint64) {
	c.Ran++
	switch {
	case id >= c.Calls:
		c.violate("a request ran that nobody made: %d", id)
	case set(c.recent, id) && !isSet(c.repeatable, id):
		c.violate("request %d ran twice", id)
	case isSet(c.denied, id):
		c.violate("request %d ran after its caller was told that it does not", id)
	default:
		set(c.begun, id)
	}
}

// forgive allows what has run, or was refused, to run again: a server on a trusted network has died, and nothing in a first contact says which boot it is for.
func (c *Checks) forgive() {
	clear(c.recent)
	clear(c.denied)
}

// ended notes an outcome.
func (c *Checks) ended(id uint64, o dispatcher.Outcome) {
	c.Ended++
	if set(c.over, id) {
		c.violate("call %d has two outcomes", id)
	}
	switch o {
	case dispatcher.OutcomeOK, dispatcher.OutcomeHandlerError, dispatcher.OutcomePanic, dispatcher.OutcomeReplyTooLarge, dispatcher.OutcomeUnavailable:
		if !isSet(c.begun, id) {
			c.violate("call %d was answered and never ran", id)
		}
	case dispatcher.OutcomeRejected, dispatcher.OutcomeExpired, dispatcher.OutcomeQueueFull, dispatcher.OutcomeThrottled, dispatcher.OutcomeBreakerOpen,
		dispatcher.OutcomeTooLarge:
		set(c.denied, id)
		if isSet(c.recent, id) {
			c.violate("call %d is %v, and ran", id, o)
		}
	}
}

// answer notes what came back with an answer: the number of the call that it is for.
func (c *Checks) answer(id uint64, reply []byte) {
	if len(reply) != idBytes || decodeID(reply) != id {
		c.violate("call %d was given the answer %x", id, reply)
	}
}
