package sim

import (
	"errors"
	"fmt"
)

// Audit looks at the books: those of every dispatcher, the violations seen so far, and where the packets are. It may be called at any time between
// two events; it takes time in proportion to everything.
func (w *World) Audit() error {
	var errs []error
	for _, v := range w.checks.violations {
		errs = append(errs, errors.New(v))
	}
	if n := w.checks.Ended + w.checks.Killed; n > w.checks.Calls {
		errs = append(errs, fmt.Errorf("%d calls, and %d outcomes", w.checks.Calls, n))
	}
	for i, h := range w.hosts {
		if h.down {
			continue
		}
		if err := h.d.Audit(); err != nil {
			errs = append(errs, fmt.Errorf("host %d: %w", i, err))
		}
		if held := len(h.lent) - len(h.spare); held > 0 { // each turn ends with a flush
			errs = append(errs, fmt.Errorf("host %d: its dispatcher holds %d packets that it does not send", i, held))
		}
	}
	if found := w.packets(); found != w.net.made {
		errs = append(errs, fmt.Errorf("%d packets were made, and %d are somewhere", w.net.made, found))
	}
	return errors.Join(errs...)
}

// packets counts them, wherever they are: each must have exactly one owner.
func (w *World) packets() (n int) {
	for p := w.spare; p != nil; p = p.next {
		n++
	}
	w.future.each(func(e event) {
		switch who := e.who.(type) {
		case *packet:
			n++
		case *cpu:
			if who.in != nil {
				n++
			}
		}
	})
	for _, h := range w.hosts {
		n += h.inbox.count + h.outbox.count
		if h.taken != nil {
			n++
		}
		for _, p := range h.lent {
			if p != nil {
				n++
			}
		}
		if h.machine != nil {
			n += h.machine.packets()
		}
	}
	return n
}

// Pending is the number of calls that have no outcome yet. When the faults are over and nobody makes new ones, it must come to zero.
func (c *Checks) Pending() uint64 { return c.Calls - c.Ended - c.Killed }
