package sim

import "fmt"

// Checks watch the world from outside of the cores: a request runs at most once, and a call has exactly one outcome.
type Checks struct {
	Calls  uint64 // calls that were made
	Ended  uint64 // that have their outcome
	Ran    uint64 // requests that started
	Killed uint64 // calls of hosts that were killed: they have no outcome

	violations []string
	begun      []uint64 // a bit per call
	over       []uint64
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
func (c *Checks) call() (id uint64) {
	id = c.Calls
	c.Calls++
	if id/64 == uint64(len(c.begun)) {
		c.begun, c.over = append(c.begun, 0), append(c.over, 0)
	}
	return id
}

// set sets the call's bit, and reports whether it was set before.
func set(bits []uint64, id uint64) bool {
	before := bits[id/64]>>(id%64)&1 == 1
	bits[id/64] |= 1 << (id % 64)
	return before
}

func (c *Checks) ran(id uint64) {
	c.Ran++
	if id >= c.Calls {
		c.violate("a request ran that nobody made: %d", id)
	} else if set(c.begun, id) {
		c.violate("request %d ran twice", id)
	}
}

// ended notes an outcome. Of one that says the handler answered, it must have run.
func (c *Checks) ended(id uint64, answered bool) {
	c.Ended++
	if set(c.over, id) {
		c.violate("call %d has two outcomes", id)
	}
	if answered && c.begun[id/64]>>(id%64)&1 == 0 {
		c.violate("call %d was answered and never ran", id)
	}
}
