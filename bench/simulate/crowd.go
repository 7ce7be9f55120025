package simulate

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// Crowd says how clients behave that do not call independently of each other.
type Crowd struct {
	Together int      `json:"together,omitempty"` // so many of the clients wake up at the same instant; 0 = one by one
	Burst    int      `json:"burst,omitempty"`    // and each makes so many calls then; 0 = one
	Greet    Duration `json:"greet,omitempty"`    // time before the warm-up, in which every client calls once, one after the other
	Idle     int      `json:"idle,omitempty"`     // further clients, which say nothing after that; without a time for it they greet in the warm-up
	Dial     int      `json:"dial,omitempty"`     // further clients, which are not known before they all call at once at the end of the warm-up
	Again    bool     `json:"again,omitempty"`    // of these, who is refused calls again at once
}

// begin is when the measured time begins.
func (s Scenario) begin() time.Duration { return time.Duration(s.Greet + s.Warmup) }

// everybody is the number of clients of all kinds.
func (s Scenario) everybody() int { return s.Clients + s.Idle + s.Dial }

// The streams of random numbers of the sources.
const (
	streamIdle = 1 + iota
	streamDial
)

// spread puts so many clients on the hosts.
func spread(s *sim.Source, hosts []*sim.Host, clients int) error {
	for i, h := range hosts {
		if err := s.AddClients(h, clients*(i+1)/len(hosts)-clients*i/len(hosts)); err != nil {
			return err
		}
	}
	return nil
}

// greet has each client call once, evenly over a time.
func (p *play) greet(s *sim.Source, over Duration) {
	for i := range s.Clients() {
		p.world.At(time.Duration(float64(over)*float64(i)/float64(s.Clients())), func() { s.Call(i) })
	}
}

// gather foresees what clients do that do not call independently of each other.
func (p *play) gather(hosts []*sim.Host, calls sim.SourceConfig) error {
	if p.Greet > 0 {
		p.greet(p.source, p.Greet)
	}
	if p.Idle > 0 {
		config := calls
		config.Stream, config.Observe, config.Deadline = streamIdle, nil, 0
		idle := p.world.NewSource(p.machine, config)
		if err := spread(idle, hosts, p.Idle); err != nil {
			return err
		}
		over := p.Greet
		if over == 0 {
			over = p.Warmup
		}
		p.greet(idle, over)
	}
	if p.Dial > 0 {
		calls.Stream = streamDial
		var dial *sim.Source
		calls.Observe = func(o *sim.Observation) {
			p.recorder.observe(o)
			if client := o.Client; o.Call.Outcome == dispatcher.OutcomeRejected && p.Again {
				p.world.At(p.world.Elapsed(), func() { dial.Call(client) })
			}
		}
		dial = p.world.NewSource(p.machine, calls)
		if err := spread(dial, hosts, p.Dial); err != nil {
			return err
		}
		p.world.At(p.begin(), func() {
			for i := range p.Dial {
				dial.Call(i)
			}
		})
	}
	return nil
}

// Part is one kind of calls.
type Part struct {
	Share   float64              `json:"share"` // of the calls; shares need not add up to 1
	Service workload.ServiceTime `json:"service"`
	Method  int                  `json:"method,omitempty"` // each method has a learnt service time of its own
}

// mix is all kinds.
type mix []Part

// methodMax is generous.
const methodMax = 1000

func (m mix) valid() bool {
	for _, p := range m {
		if !(p.Share > 0) || math.IsInf(p.Share, 1) || p.Method < 0 || p.Method > methodMax {
			return false
		}
	}
	return true
}

// methods is how many there are.
func (m mix) methods() (n int) {
	for _, p := range m {
		n = max(n, p.Method+1)
	}
	return n
}

func (m mix) total() (sum float64) {
	for _, p := range m {
		sum += p.Share
	}
	return sum
}

// draw is one call.
func (m mix) draw(rng *rand.Rand) (method int, service time.Duration) {
	at := rng.Float64() * m.total()
	for _, p := range m[:len(m)-1] {
		if at -= p.Share; at < 0 {
			return p.Method, p.Service.Sample(rng)
		}
	}
	last := m[len(m)-1]
	return last.Method, last.Service.Sample(rng)
}

// nearest is for looking up published settings, as that of samples: a mix counts as bimodal.
func (m mix) nearest() workload.ServiceTime {
	if len(m) == 1 {
		return m[0].Service
	}
	var mean float64
	for _, p := range m {
		mean += p.Share / m.total() * float64(p.Service.Mean)
	}
	return workload.ServiceTime{Shape: workload.Bimodal, Mean: time.Duration(math.Round(mean))}
}
