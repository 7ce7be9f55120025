package toolbox

import (
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// The network of these experiments, and who calls.
const (
	roundTrip  = 200 * time.Microsecond
	hostsUsual = 4
	slotsUsual = 128     // of a session, where nothing is controlled: what one connection has outstanding
	forever    = 1 << 40 // longer than any experiment: a caller that never gives up
)

// costs are what a message costs, the same in all experiments of this project.
var costs = sim.Costs{
	Receive: time.Duration(simulate.PaperCosts.Receive), Send: time.Duration(simulate.PaperCosts.Send),
	Reject: time.Duration(simulate.PaperCosts.Reject), Credit: time.Duration(simulate.PaperCosts.Credit),
}

// server describes a machine with a scheme of overload control.
type server struct {
	scheme  string        // of credit/baseline; "" = none
	service time.Duration // on average
	cpus    int           // 0 = 1
	slo     time.Duration
	clients int // that it is to expect; 0 = hostsUsual
	slots   int // of each; 0 = slotsUsual
	serve   dispatcher.ServeConfig
	methods []admit.MethodConfig // nil = one that asks nothing
	plan    sim.Plan
	devices []int
}

func (s server) withDefaults() server {
	if s.scheme == "" {
		s.scheme = baseline.None
	}
	if s.cpus == 0 {
		s.cpus = 1
	}
	if s.clients == 0 {
		s.clients = hostsUsual
	}
	if s.slots == 0 {
		s.slots = slotsUsual
	}
	return s
}

// capacity is what its CPUs could serve, in requests per second.
func (s server) capacity() float64 {
	s = s.withDefaults()
	return float64(s.cpus) / (s.service + costs.Receive + costs.Send).Seconds()
}

// stage is a world with a network as in a building.
func stage(seed uint64) *sim.World { return sim.NewWorld(seed, sim.Network{OneWay: roundTrip / 2}) }

// add puts the server into a world.
func (s server) add(w *sim.World, seed uint64) (*sim.Machine, error) {
	s = s.withDefaults()
	scheme, err := s.lookup(seed)
	if err != nil {
		return nil, err
	}
	s.serve.TargetDelay, s.serve.DropThreshold, s.serve.AdaptWorkers = scheme.TargetDelay, scheme.DropThreshold, scheme.AdaptWorkers
	return w.AddMachine(patient(scheme.Slots), sim.MachineConfig{
		CPUs: s.cpus, Costs: costs, Plan: s.plan, Devices: s.devices, Serve: s.serve, Classes: len(s.methods), Admission: s.methods,
		Ledger: func() *credit.Ledger {
			return credit.NewLedger(credit.Config{Slots: scheme.Slots}, scheme.NewController())
		},
	})
}

func (s server) lookup(seed uint64) (baseline.Scheme, error) {
	return baseline.Lookup(s.scheme, baseline.Params{
		Service: s.service, RTT: roundTrip, SLO: s.slo, Clients: s.clients, Workers: s.cpus, Slots: s.slots, Seed: seed,
	})
}

// patient is the configuration of an endpoint that gives nothing up by itself: what is given up, and when, is the experiment's.
func patient(slots int) dispatcher.Config {
	return dispatcher.Config{TrustedNetwork: true, SlotsMax: slots, WaitingMax: 1 << 20, GiveUp: forever}
}

// callers adds hosts with a session each to a source of calls.
func (s server) callers(w *sim.World, to *sim.Machine, calls sim.SourceConfig, seed uint64) (*sim.Source, error) {
	s = s.withDefaults()
	scheme, err := s.lookup(seed)
	if err != nil {
		return nil, err
	}
	source := w.NewSource(to, calls)
	config := patient(scheme.Slots)
	config.ClientPolicy = scheme.NewPolicy
	for range s.clients {
		if err := source.AddClients(w.AddHost(config), 1); err != nil {
			return nil, err
		}
	}
	return source, nil
}

// exponential and constant are distributions of service times.
func exponential(mean time.Duration) workload.ServiceTime {
	return workload.ServiceTime{Shape: workload.Exponential, Mean: mean}
}

func constant(mean time.Duration) workload.ServiceTime {
	return workload.ServiceTime{Shape: workload.Constant, Mean: mean}
}
