package runtime

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Admission says what else than the scheme of overload control decides about a request at a server. The zero value is safe without reading anything; docs/admission.md
// says what each policy is for. Client rates are of each connection.
type Admission = dispatcher.Admission

// MethodConfig is what a server asks of the requests of one method. The zero value asks nothing.
type MethodConfig struct {
	// Cost is what one request costs, in units: rates, floors and shares are in units, so that cheap critical calls are not refused for expensive
	// batch ones. 0 = 1 for rates; for floors and shares, what the requests of each method were learnt to take, if no method says a cost.
	Cost int
	// Rate and Burst bound the units a second that are let in, of all clients together; rate 0 = any, burst 0 = a tenth of a second of the rate.
	Rate, Burst int
	// InService bounds how many are in their handlers at once, for a method that waits for a device or a database; 0 = any. What waits for it waits by
	// itself, and is refused by how long that will take: it is no load to others.
	InService int
	// Weight is its part of a server that has too much to do, beside those of the other methods; 0 = 1. While no method has a weight there are no parts. What it
	// sends beyond its part is refused as sheddable calls are.
	Weight int
	// Criticality is for requests that say none; unset = Critical.
	Criticality wire.Criticality
}

// check says what is wrong.
func (c *MethodConfig) check() error {
	switch {
	case c.Cost < 0 || c.Cost > admit.CostMax:
		return fmt.Errorf("cost %d: must be 1 to %d units; 0 = 1", c.Cost, admit.CostMax)
	case c.Weight < 0 || c.Weight > admit.WeightMax:
		return fmt.Errorf("weight %d: must be 1 to %d; 0 = 1, beside methods that have one", c.Weight, admit.WeightMax)
	case c.Rate < 0 || c.Burst < 0 || c.InService < 0:
		return fmt.Errorf("rate %d, burst %d, %d in service: none may be negative; 0 = no bound", c.Rate, c.Burst, c.InService)
	case c.Burst > 0 && c.Rate == 0:
		return fmt.Errorf("burst %d without a rate: a bucket that never fills again; set Rate", c.Burst)
	case c.Criticality > wire.CriticalPlus:
		return fmt.Errorf("criticality %d: must be %d (sheddable) to %d (critical plus)", c.Criticality, wire.Sheddable, wire.CriticalPlus)
	}
	return nil
}

// part is what one of several dispatchers has of it.
func (c *MethodConfig) part(i, n int) admit.MethodConfig {
	m := admit.MethodConfig{Cost: c.Cost, Weight: c.Weight, Level: admit.Level(c.Criticality)}
	if c.Rate > 0 {
		m.Rate = share(c.Rate, i, n)
	}
	if c.Burst > 0 {
		m.Burst = share(c.Burst, i, n)
	}
	if c.InService > 0 {
		m.InService = share(c.InService, i, n)
	}
	return m
}

// checkAdmission says what is wrong.
func checkAdmission(a *Admission) error {
	switch {
	case a.ClientRate < 0 || a.ClientBurst < 0:
		return fmt.Errorf("client rate %d, burst %d: neither may be negative; 0 = no bound", a.ClientRate, a.ClientBurst)
	case a.Warmup < 0 || a.Order.NewestFirst < 0 || a.Order.Expire < 0 || a.CoDelTarget < 0 || a.CoDelInterval < 0:
		return fmt.Errorf("warm-up %v, newest first %v, expiry %v, CoDel %v and %v: none may be negative; 0 = off",
			a.Warmup, a.Order.NewestFirst, a.Order.Expire, a.CoDelTarget, a.CoDelInterval)
	case a.Levels.Floor > 1:
		return fmt.Errorf("floor %v: it is a share of what is admitted, at most 1; 0 = %v, negative = none", a.Levels.Floor, admit.FloorDefault)
	}
	return checkShare("headroom", a.Headroom)
}

// checkShare says whether a share is one.
func checkShare(name string, share float64) error {
	if !(share >= 0 && share <= 1) {
		return fmt.Errorf("%s %v: it is a share, 0 to 1; 0 = none", name, share)
	}
	return nil
}

// admission is the server's, with a seed of its own where it has none: nobody shall know who will be refused.
func (s *Server) admission() Admission {
	a := s.cfg.Admission
	if a.Seed == 0 {
		a.Seed = rand.Uint64()
	}
	return a
}

// Pressure is how loaded the dispatcher is that has this request: its queueing delay, in target delays. Above 1 the server is overloaded, and a handler that has a
// cheaper answer should give that. It is at most an update of the credit pool old, and costs a load from memory.
func (r *Request) Pressure() float64 { return r.server.ep.cores[r.inner.Owner()].d.Pressure() }

// Pressure is how loaded the server is, of several dispatchers the most loaded: see [Request.Pressure]. Any goroutine may ask, at any time.
func (s *Server) Pressure() (most float64) {
	for _, c := range s.ep.cores {
		most = max(most, c.d.Pressure())
	}
	return most
}

// HandleWith is [Server.Handle] for a method that costs more than others, has a rate, or may have so many requests in service.
func (s *Server) HandleWith(method string, c MethodConfig, h Handler) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("registering method %s: %w", method, err)
	}
	if h == nil {
		return fmt.Errorf("registering method %s: no handler", method)
	}
	run := func(inner *dispatcher.Request) { s.run(method, h, inner) }
	var err error
	i := 0
	stopped := s.ep.each(func(of *core, _ clock.Time) {
		if err == nil { // what the first one refuses, none gets
			m := &dispatcher.Method{Name: method, ID: wire.MethodOf(method), Run: run, Admission: c.part(i, len(s.ep.cores))}
			err = of.d.Register(m)
		}
		i++
	})
	if stopped != nil {
		return stopped
	}
	if err != nil {
		return fmt.Errorf("registering a method: %w", err)
	}
	return nil
}

// warmupMax bounds a lever's length, so that a slip of the unit does not close a server for good.
const warmupMax = 24 * time.Hour
