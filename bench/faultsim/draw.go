package faultsim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/wire"
)

// streamPlan keeps the drawing of plans apart from all else that is random.
const streamPlan = 1 << 33

// artist draws plans.
type artist struct{ *rand.Rand }

// Draw makes the plan of a seed. Each plan has some kinds of fault and lacks others, rather than a little of everything: what one fault would hide, another
// plan shows.
func Draw(seed uint64) Plan {
	a := artist{rand.New(rand.NewPCG(seed, streamPlan))}
	names := baseline.Names()
	p := Plan{
		Seed: seed, Scheme: names[a.IntN(len(names))],
		Hosts: 1 + a.IntN(3), Sessions: int(a.between(1, 100)), CPUs: 1 + a.IntN(4), Poller: a.oneIn(3), NoPacking: a.oneIn(8),
		RTT: a.time(4*time.Microsecond, 200*time.Microsecond), Service: a.time(time.Microsecond, 100*time.Microsecond),
	}
	p.Hosts = min(p.Hosts, p.Sessions)
	p.Checked = p.Sessions <= 8
	p.SLO = 10 * (p.Service + p.RTT)
	if a.oneIn(2) {
		p.Scheme = baseline.Stillwater // which is what most will use
	}
	if a.oneIn(2) {
		p.Cost = a.time(100*time.Nanosecond, 5*time.Microsecond)
	}
	if a.oneIn(2) {
		p.Jitter = a.time(time.Microsecond, 50*time.Microsecond)
	}
	if a.oneIn(4) {
		p.InService = 1 + a.IntN(8)
	}
	if a.oneIn(4) {
		p.Slots = 1 + a.IntN(16)
	}
	if a.oneIn(4) {
		p.Waiting = 1 + a.IntN(8)
	}
	if a.oneIn(4) {
		p.Ring = 128 << a.IntN(4) // at least one packet of each session: clients that ask again do so at the same time
	}
	p.Trusted = a.oneIn(4)
	a.demand(&p)
	a.faults(&p)
	return p
}

func (a artist) oneIn(n int) bool { return a.IntN(n) == 0 }

// between draws a number of which the magnitude is evenly distributed.
func (a artist) between(low, high float64) float64 {
	return low * math.Exp(a.Float64()*math.Log(high/low))
}

func (a artist) time(low, high time.Duration) Duration {
	return Duration(a.between(float64(low), float64(high)))
}

// demand draws the calls: a crowd for some milliseconds, or a few in seconds, between which leases run out.
func (a artist) demand(p *Plan) {
	load := a.between(0.1, 4)
	rate := load * float64(p.CPUs) / time.Duration(p.Service+2*p.Cost).Seconds()
	length, count := a.time(2*time.Millisecond, 60*time.Millisecond), a.between(10, 1500)
	if a.oneIn(6) {
		length, count = a.time(500*time.Millisecond, 4*time.Second), a.between(10, 200)
	}
	rate = min(rate, count/time.Duration(length).Seconds())
	p.End = length
	deadlines := a.IntN(3) // none, some, all
	deadline := a.between(0.5, 20) * float64(p.SLO)
	cancels := a.IntN(3) * a.IntN(20)
	for at := time.Duration(0); ; {
		at += time.Duration(a.ExpFloat64() / rate * float64(time.Second))
		if Duration(at) >= p.End {
			break
		}
		c := Call{At: Duration(at), Session: a.IntN(p.Sessions), Service: Duration(a.ExpFloat64() * float64(p.Service))}
		if deadlines == 2 || deadlines == 1 && a.oneIn(2) {
			c.Deadline = Duration(deadline * (0.5 + a.Float64()))
		}
		if cancels > 0 && a.oneIn(100/cancels+1) {
			c.Cancel = a.time(time.Microsecond, 20*time.Duration(p.SLO))
		}
		p.Calls = append(p.Calls, c)
	}
	if a.oneIn(2) {
		for range a.IntN(20) {
			p.Closes = append(p.Closes, Close{At: Duration(a.Int64N(int64(p.End))), Session: a.IntN(p.Sessions)})
		}
	}
}

// faults draws what goes wrong.
func (a artist) faults(p *Plan) {
	for _, kind := range []Kind{Loss, Duplicate, Reorder, Corrupt, Drop, Drop, Drop, CutTo, CutFrom, StallServer, StallClient, KillServer, KillClient} {
		if !a.oneIn(3) {
			continue
		}
		for range 1 + a.IntN(3) {
			p.Faults = append(p.Faults, a.fault(p, kind))
		}
	}
	slices.SortStableFunc(p.Faults, func(f, g Fault) int { return int(f.At - g.At) })
}

func (a artist) fault(p *Plan, kind Kind) Fault {
	f := Fault{Kind: kind, At: Duration(a.Int64N(int64(p.End)))}
	f.For = min(a.time(20*time.Microsecond, time.Duration(p.End)), p.End-f.At)
	switch kind {
	case Loss, Duplicate, Corrupt:
		f.Share = a.between(0.002, 0.3)
	case Reorder:
		f.Share, f.By = a.between(0.01, 1), a.time(time.Duration(p.RTT), 20*time.Millisecond)
	case Drop:
		f.Share, f.Message = a.between(0.1, 1), (wire.TypeRequest + wire.Type(a.IntN(int(wire.TypeGone)))).String()
		if a.oneIn(3) {
			f.Share = 1
		}
	case StallServer, StallClient:
		f.For = min(a.time(100*time.Microsecond, 50*time.Millisecond), p.End-f.At)
	}
	switch kind {
	case CutTo, CutFrom, StallClient, KillClient:
		f.Host = a.IntN(p.Hosts)
	}
	return f
}
