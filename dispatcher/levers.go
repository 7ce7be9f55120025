package dispatcher

import (
	"math"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
)

// Door is the server's, for its levers. It belongs to the dispatcher's owner.
func (d *Dispatcher) Door() *admit.Door { return &d.server.door }

// Serving reports whether Serve was called.
func (d *Dispatcher) Serving() bool { return d.server.ledger != nil }

// FreezePool has the credit pool stay as it is, or go on; false = the scheme has none that could.
func (d *Dispatcher) FreezePool(frozen bool) bool {
	g, ok := d.governor()
	if ok {
		g.Freeze(frozen)
	}
	return ok
}

// Ceiling bounds the credit pool from above, by what a downstream server grants for example; 0 = no bound. False = the scheme has no pool that could be.
func (d *Dispatcher) Ceiling(credits uint64) bool {
	g, ok := d.governor()
	if ok {
		g.Ceiling(credits)
	}
	return ok
}

// Pool is the credit pool now, in credits.
func (d *Dispatcher) Pool() uint64 {
	if d.server.ledger == nil {
		return 0
	}
	return d.server.ledger.Controller().Pool()
}

func (d *Dispatcher) governor() (credit.Governor, bool) {
	if d.server.ledger == nil {
		return nil, false
	}
	return credit.As[credit.Governor](d.server.ledger.Controller())
}

// Pressure is how loaded the server was when its pool was last sized: the delay in targets, above 1 overloaded. Any goroutine may ask.
func (d *Dispatcher) Pressure() float64 { return math.Float64frombits(d.server.pressure.Load()) }

// tellPressure is said by the owner, with the delay of now.
func (d *Dispatcher) tellPressure() {
	d.server.pressure.Store(math.Float64bits(d.server.door.Pressure(d.Delay())))
}
