package toolbox

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// gated is a server that is nothing but an admit.Gate with workers behind it: for experiments that are about one policy of the gate.
type gated struct {
	w       *sim.World
	gate    *admit.Gate
	service func() time.Duration
	budget  time.Duration // deadline of each request from when it arrives; 0 = none
	refused int
}

// visit is one request at a gated server.
type visit struct {
	admit.Ticket
	ended func(ok bool) // told once; nil = nobody wants to know
}

// open is a gate that refuses nothing: what a policy is to do is set on top of it.
func open(permits int) admit.GateConfig {
	return admit.GateConfig{
		Door: admit.DoorConfig{Target: never, Threshold: never, NoAge: true}, Permits: permits, MaxWait: never, Waiting: 1 << 30,
	}
}

// never is a time that no queue reaches.
const never = 1000 * time.Hour

// arrive brings a request to the gate.
func (g *gated) arrive(ended func(ok bool)) *visit {
	v := &visit{ended: ended}
	v.Value = v
	arrival := admit.Arrival{}
	if g.budget > 0 {
		arrival.Deadline = g.w.Now().Add(g.budget)
	}
	switch step, _ := g.gate.Arrive(g.w.Now(), &v.Ticket, arrival); step {
	case admit.Run:
		g.run(v)
	case admit.Refused:
		g.end(v, false)
	}
	return v
}

func (g *gated) run(v *visit) {
	g.w.At(g.w.Elapsed()+g.service(), func() {
		g.gate.Done(g.w.Now(), &v.Ticket, true)
		g.end(v, true)
		g.next()
	})
}

// next starts what may run now, and ends what waited in vain.
func (g *gated) next() {
	for {
		t, step, _ := g.gate.Next(g.w.Now())
		if t == nil {
			return
		}
		if v := t.Value.(*visit); step == admit.Run {
			g.run(v)
		} else {
			g.end(v, false)
		}
	}
}

func (g *gated) end(v *visit, ok bool) {
	if !ok {
		g.refused++
	}
	if v.ended != nil {
		v.ended(ok)
	}
}
