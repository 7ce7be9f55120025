package simulate

import (
	"context"
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// sliceOfTime is how long a world goes on before somebody looks whether it is still wanted.
const sliceOfTime = time.Millisecond

// Run plays a scenario. It returns ctx's error soon after ctx ends. Several may run at the same time; those that together would hold more than the memory that the
// machine has left wait for each other.
func Run(ctx context.Context, s Scenario) (*Result, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s = s.withDefaults()
	giveBack, err := shared().take(ctx, s.memory())
	if err != nil {
		return nil, err
	}
	defer giveBack()
	p, err := prepare(s)
	if err != nil {
		return nil, err
	}
	end := s.begin() + time.Duration(s.Measure+s.Drain)
	if err := Advance(ctx, p.world, end); err != nil {
		return nil, err
	}
	return p.recorder.result(p), p.world.Audit()
}

// Advance lets a world go on until so much time has elapsed since its beginning. It returns ctx's error soon after ctx ends.
func Advance(ctx context.Context, w *sim.World, elapsed time.Duration) error {
	for at := w.Elapsed(); at < elapsed; {
		at = min(at+sliceOfTime, elapsed)
		w.Run(at)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// play is a scenario on the stage.
type play struct {
	Scenario
	world    *sim.World
	machine  *sim.Machine
	source   *sim.Source
	recorder *recorder
}

func prepare(s Scenario) (*play, error) {
	n := s.Network
	p := &play{Scenario: s, world: sim.NewWorld(s.Seed, sim.Network{
		OneWay: time.Duration(n.RTT / 2), Jitter: time.Duration(n.Jitter),
		Loss: n.Loss, Duplicate: n.Duplicate, Reorder: n.Reorder, Corrupt: n.Corrupt,
	})}
	scheme, err := s.scheme()
	if err != nil {
		return nil, err
	}
	server := dispatcher.Config{TrustedNetwork: true, SlotsMax: scheme.Slots, SessionsMax: sessionsFor * s.everybody()}
	config := s.Server.machine(scheme, server.SessionsMax)
	config.Classes = mix(s.Mix).methods()
	if w := s.Server.Wait; w != nil && w.Gate {
		config.Gate = &admit.GateConfig{Door: admit.DoorConfig{Target: time.Duration(s.SLO) / gateTarget, Seed: s.Seed}}
	}
	p.listen(scheme, &config)
	if p.machine, err = p.world.AddMachine(server, config); err != nil {
		return nil, err
	}
	p.recorder = newRecorder(p)
	budget := time.Duration(s.Budget)
	if budget == 0 && scheme.Deadlines {
		budget = time.Duration(s.SLO)
	}
	calls := sim.SourceConfig{Service: s.service(), Deadline: max(budget, 0), Together: s.Together, Burst: s.Burst, Observe: p.recorder.observe}
	if len(s.Mix) > 0 {
		calls.Mix = mix(s.Mix).draw
	}
	p.source = p.world.NewSource(p.machine, calls)
	client := dispatcher.Config{SlotsMax: scheme.Slots, SessionsMax: s.everybody() + 1, ClientPolicy: scheme.NewPolicy}
	hosts := make([]*sim.Host, s.Hosts)
	for i := range hosts {
		hosts[i] = p.world.AddHost(client)
	}
	if err := spread(p.source, hosts, s.Clients); err != nil {
		return nil, err
	}
	p.direct()
	return p, p.gather(hosts, calls)
}

// service is what the handlers take.
func (s Scenario) service() sim.Distribution {
	if len(s.Samples) > 0 {
		return samples(s.Samples)
	}
	return s.Service
}

// sessionsFor is the room for sessions, for each client: one connection may have half of all, and there may be one host.
const sessionsFor = 2

// gateTarget is the part of the SLO that a gate in front of a lock has for its target delay, as package middleware has it.
const gateTarget = 8

// machine is the server for the simulator.
func (s Server) machine(scheme baseline.Scheme, sessions int) sim.MachineConfig {
	m := sim.MachineConfig{
		CPUs: s.CPUs, Poller: s.Poller, Steered: s.Steered, Ring: s.Ring, Threads: s.Threads,
		Pause: sim.Pause{Every: time.Duration(s.Pause.Every), For: time.Duration(s.Pause.For)},
		Costs: sim.Costs{
			Receive: time.Duration(s.Costs.Receive), Send: time.Duration(s.Costs.Send),
			Reject: time.Duration(s.Costs.Reject), Credit: time.Duration(s.Costs.Credit),
		},
		Serve: dispatcher.ServeConfig{
			Workers: s.InService, AdaptWorkers: scheme.AdaptWorkers && !s.FixedWorkers, TargetDelay: scheme.TargetDelay, DropThreshold: scheme.DropThreshold,
		},
	}
	if s.Threads && !s.Poller {
		m.Law = &sim.LawThread{}
	}
	m.Ledger = func() *credit.Ledger {
		law := scheme.NewController()
		if m.Law != nil {
			law = m.Law.Of(law)
		}
		return credit.NewLedger(credit.Config{Slots: scheme.Slots, MaxSessions: sessions, Asking: scheme.Asking}, law)
	}
	if s.Wait != nil {
		m.Locks, m.Devices, m.Plan = 1, []int{s.Wait.Depth}, s.Wait.plan
	}
	return m
}

// direct foresees the demand, and the beginning of what is measured.
func (p *play) direct() {
	begin := p.begin()
	for i, step := range p.Demand {
		at := begin + time.Duration(step.At)
		if i == 0 {
			at = time.Duration(p.Greet)
		}
		p.world.At(at, func() { _ = p.source.SetRate(step.PerS) }) // there are clients: Validate has seen to it
	}
	p.world.At(begin, p.recorder.begin)
	if p.Drain > 0 {
		p.world.At(begin+time.Duration(p.Measure), func() { _ = p.source.SetRate(0) })
	}
}

// Capacity is what the server could serve, in requests per second, with nothing refused and nothing else to do.
func (s Scenario) Capacity() float64 {
	s = s.withDefaults()
	costs := time.Duration(s.Server.Costs.Receive + s.Server.Costs.Send)
	if s.Server.Poller {
		return min(float64(s.Server.CPUs)/s.Service.Mean.Seconds(), 1/costs.Seconds())
	}
	capacity := float64(s.Server.CPUs) / (s.Service.Mean + costs).Seconds()
	if w := s.Server.Wait; w != nil {
		lanes := float64(w.Depth)
		if w.Lock {
			lanes = 1
		}
		capacity = math.Min(capacity, lanes/(w.Share*time.Duration(w.For).Seconds()))
	}
	return capacity
}

// plan has part of the handlers wait. Which ones depends on the call and not on the order in which they are run, so that every scheme meets the same.
func (w *Wait) plan(k sim.Work, steps []sim.Step) []sim.Step {
	steps = append(steps, sim.Step{For: k.Service})
	const golden = 0x9e3779b97f4a7c15 // spreads consecutive numbers evenly (Knuth, volume 3, section 6.4)
	if float64(k.ID*golden>>11)/(1<<53) >= w.Share {
		return steps
	}
	if w.Lock {
		return append(steps, sim.Step{Kind: sim.StepLock}, sim.Step{For: time.Duration(w.For)}, sim.Step{Kind: sim.StepUnlock})
	}
	return append(steps, sim.Step{Kind: sim.StepDevice, For: time.Duration(w.For)})
}
