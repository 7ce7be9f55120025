package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// The levers are for an incident: each takes effect at once, on all dispatchers, stays until it is set back, and is written to slog's default logger with what it
// was set to. Any goroutine may pull them. Recovery means breaking the loop that keeps an overload up, not removing what set it off: see docs/admission.md.

// ErrNotServing says that a lever was pulled before Serve: what is to stand from the start is in ServerConfig.Admission.
var ErrNotServing = errors.New("the server does not serve yet: what is to stand from the start is in ServerConfig.Admission")

// ErrNoPool says that the scheme of overload control has no credit pool that could be frozen.
var ErrNoPool = errors.New("this scheme has no credit pool to freeze")

// ShedShare refuses a share of the requests that arrive, 0 to 1, by their cost, the least critical first; 0 = none.
func (s *Server) ShedShare(share float64) error {
	if err := checkShare("share to shed", share); err != nil {
		return err
	}
	return s.lever("shed share", share, func(d *admit.Door) { d.ShedShare(share) })
}

// RetriesOff refuses every attempt but first ones, and has every refusal say "do not retry".
func (s *Server) RetriesOff(off bool) error {
	return s.lever("retries off", off, func(d *admit.Door) { d.RetriesOff(off) })
}

// Drain refuses all new requests, which tells clients to go elsewhere, and answers those that were admitted; Drain(false) opens the door again. The end of Serve's
// context drains for good.
func (s *Server) Drain(on bool) error {
	return s.lever("drain", on, func(d *admit.Door) { d.Drain(on) })
}

// Warmup admits a growing share of the requests from now on, from a tenth, until it has done so for the given time; 0 = the server is warm. At most a day.
func (s *Server) Warmup(length time.Duration) error {
	if length < 0 || length > warmupMax {
		return fmt.Errorf("warm-up %v: must be 0 to %v", length, warmupMax)
	}
	return s.lever("warmup", length, func(d *admit.Door) { d.Warmup(length) })
}

// Headroom keeps a share of the CPUs free, 0 to 1: no more expected work is admitted than the others can do; 0 = none.
func (s *Server) Headroom(share float64) error {
	if err := checkShare("headroom", share); err != nil {
		return err
	}
	return s.lever("headroom", share, func(d *admit.Door) { d.Headroom(share) })
}

// FreezePool keeps the credit pool at what it is, whatever the delay, or lets it go on. It is ErrNoPool with schemes that have none.
func (s *Server) FreezePool(frozen bool) error {
	return s.pull("freeze pool", frozen, func(d *dispatcher.Dispatcher) error {
		if !d.FreezePool(frozen) {
			return ErrNoPool
		}
		return nil
	})
}

// Levers is how the levers stand; those of the first dispatcher, since all stand alike.
func (s *Server) Levers() (l admit.Levers, err error) {
	err = s.ep.cores[0].do(func(d *dispatcher.Dispatcher, _ clock.Time) { l = d.Door().Levers() })
	return l, err
}

// lever pulls one that is at the door.
func (s *Server) lever(name string, to any, pull func(*admit.Door)) error {
	return s.pull(name, to, func(d *dispatcher.Dispatcher) error {
		pull(d.Door())
		return nil
	})
}

// pull pulls a lever of every dispatcher, and writes it down.
func (s *Server) pull(name string, to any, pull func(*dispatcher.Dispatcher) error) error {
	var errs []error
	stopped := s.ep.each(func(c *core, _ clock.Time) {
		if !c.d.Serving() {
			errs = append(errs, ErrNotServing)
			return
		}
		errs = append(errs, pull(c.d))
	})
	err := errors.Join(append(errs, stopped)...)
	if err != nil {
		return fmt.Errorf("lever %s: %w", name, err)
	}
	slog.Warn("lever pulled", "lever", name, "to", to, "server", s.Addr())
	return nil
}
