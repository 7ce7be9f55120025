package simulate

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// What a server may take for its load. The law is the same with each, and so is what it steers to.
const (
	SignalAge    = ""       // the age of the oldest that waits: what the server has
	SignalLoad   = "load"   // how busy handlers keep the CPUs: loadFull of them is the target delay
	SignalLength = "length" // how much waits, each worth lengthWorth on one of the CPUs
)

var signals = []string{SignalAge, SignalLoad, SignalLength}

const (
	loadFull    = 0.80
	loadWeight  = 0.1 // of the newest measurement, one a round trip
	lengthWorth = 10 * time.Microsecond
)

// listen puts another signal in the place of the age, where one is asked for.
func (p *play) listen(scheme baseline.Scheme, config *sim.MachineConfig) {
	if p.Server.Signal == SignalAge {
		return
	}
	config.Ledger = func() *credit.Ledger {
		var law credit.Controller = &misled{Controller: scheme.NewController(), play: p}
		if config.Law != nil {
			law = config.Law.Of(law)
		}
		return credit.NewLedger(credit.Config{Slots: scheme.Slots, MaxSessions: sessionsFor * p.everybody(), Asking: scheme.Asking}, law)
	}
}

// misled is a credit law that is told something else than the age.
type misled struct {
	credit.Controller
	play     *play
	load     float64
	computed time.Duration
	at       clock.Time
	delay    time.Duration
}

// Update measures, once a period.
func (m *misled) Update(now clock.Time, signal credit.Signal, load credit.Load) bool {
	if !m.UpdateDue(now) {
		return false
	}
	signal.Delay = m.measure(now)
	m.delay = signal.Delay
	return m.Controller.Update(now, signal, load)
}

func (m *misled) measure(now clock.Time) time.Duration {
	machine, cpus := m.play.machine, m.play.Server.CPUs
	if machine == nil {
		return 0 // it boots
	}
	if m.play.Server.Signal == SignalLength {
		return lengthWorth * time.Duration(machine.Waiting()) / time.Duration(cpus)
	}
	if span := now.Sub(m.at); m.at != 0 && span > 0 {
		busy := float64(machine.Computed()-m.computed) / float64(span) / float64(cpus)
		m.load += loadWeight * (busy - m.load)
	}
	m.at, m.computed = now, machine.Computed()
	return time.Duration(m.load / loadFull * float64(m.Target()))
}

// Invited knows no other delay either.
func (m *misled) Invited(time.Duration) uint8 {
	if law, ok := m.Controller.(credit.Inviter); ok {
		return law.Invited(m.delay)
	}
	return 0
}

// Admit knows no other delay than that of the last measurement.
func (m *misled) Admit(a credit.Arrival) bool {
	a.Delay = m.delay
	return m.Controller.Admit(a)
}
