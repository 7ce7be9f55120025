package baseline

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// The names of the schemes.
const (
	None               = "none"
	BreakwaterPaper    = "breakwater-paper"
	BreakwaterArtifact = "breakwater-artifact"
	Stillwater         = "stillwater"
	DAGOR              = "dagor"
	SEDA               = "seda"
	CoDel              = "codel"
	Window             = "window"
	Protego            = "protego"
)

// Scheme is a scheme of overload control with its settings.
type Scheme struct {
	Name string
	// NewController makes the server's half, for one ledger.
	NewController func() credit.Controller
	// NewPolicy makes the client's half, for one session; nil = there is none. It may be called from several goroutines.
	NewPolicy func() client.Policy
	// Slots is the most that a session may have outstanding at the server.
	Slots int
	// TargetDelay and DropThreshold are what a server tells its clients: what it steers to, and what it rejects above. They time the
	// client's expiry and retransmission, also where the scheme itself has neither.
	TargetDelay, DropThreshold time.Duration
	// Deadlines: the scheme makes use of a call's deadline, so that an experiment should set one. Published schemes of other kinds
	// know none.
	Deadlines bool
	// Asking: clients tell their demand in messages of their own, and get credits for nothing else; of credit.Config.
	Asking bool
	// AdaptWorkers: the server bounds the requests in service by those that are late; of dispatcher.ServeConfig.
	AdaptWorkers bool
}

// makers make the schemes, in the order in which they are listed. Each is given complete parameters, and a scheme with what most have in common.
var makers = []struct {
	name    string
	make    func(Params, *Scheme)
	credits bool // it is one of Breakwater's laws, whose parts can be switched off
}{
	{Stillwater, makeStillwater, true},
	{BreakwaterPaper, makePaper, true},
	{BreakwaterArtifact, makeArtifact, true},
	{DAGOR, makeDAGOR, false},
	{SEDA, makeSEDA, false},
	{CoDel, makeCoDel, false},
	{Window, makeWindow, false},
	{Protego, makeProtego, false},
	{None, makeNone, false},
}

// ErrUnknown is returned by Lookup for a name that no scheme has.
var ErrUnknown = errors.New("no scheme of overload control is called")

// Names lists the schemes.
func Names() []string {
	names := make([]string, len(makers))
	for i, m := range makers {
		names[i] = m.name
	}
	return names
}

// Lookup makes the scheme of a name with the settings that were published for these parameters. "" is Stillwater.
func Lookup(name string, p Params) (Scheme, error) {
	if err := p.validate(); err != nil {
		return Scheme{}, err
	}
	if name == "" {
		name = Stillwater
	}
	p = p.withDefaults()
	for _, m := range makers {
		if m.name != name {
			continue
		}
		s := Scheme{Name: name, Slots: p.Slots, TargetDelay: p.share(targetShare), DropThreshold: p.share(thresholdShare)}
		m.make(p, &s)
		if m.credits {
			p.Tuning.parts(p.RTT, &s)
		}
		return s, nil
	}
	return Scheme{}, fmt.Errorf("%w %q: it must be %s", ErrUnknown, name, strings.Join(Names(), ", "))
}

// openDoor is the server's half of a scheme whose clients do the work: all slots for everybody, and an open door.
func openDoor(p Params) func() credit.Controller {
	return func() credit.Controller { return credit.NewNone(p.Slots) }
}

func makeNone(p Params, s *Scheme) { s.NewController = openDoor(p) }

// freely is what a policy says that has no objection.
type freely struct{}

func (freely) Admit(_ clock.Time, priority uint8) (uint8, bool) { return priority, true }
func (freely) CanSend(clock.Time, int) (bool, clock.Time)       { return true, 0 }
func (freely) Sent(clock.Time)                                  {}
func (freely) Answered(clock.Time, client.Answer)               {}
func (freely) Limits() client.Limits                            { return client.Limits{} }
