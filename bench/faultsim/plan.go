package faultsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// Duration is a time in a plan's file: "10us".
type Duration = simulate.Duration

// Plan is one run: what stands where, who calls when, and what goes wrong. Times are from its beginning.
type Plan struct {
	Seed   uint64 `json:"seed"`   // of the network's dice, the tokens and the scheme's own chance
	Scheme string `json:"scheme"` // of credit/baseline

	Hosts    int `json:"hosts"`    // that call
	Sessions int `json:"sessions"` // spread over them in turn
	// Trusted: a first contact needs no token. What is repeated of it when the server was killed may run in both boots, and open a connection once more, by
	// which the server keeps sessions that nobody has; neither is a violation.
	Trusted bool `json:"trusted,omitempty"`
	// Checked has the ledger audit itself at each step.
	Checked   bool     `json:"checked,omitempty"`
	NoPacking bool     `json:"no_packing,omitempty"`
	CPUs      int      `json:"cpus"`
	Poller    bool     `json:"poller,omitempty"`
	InService int      `json:"in_service,omitempty"` // most requests in service; 0 = 256
	Slots     int      `json:"slots,omitempty"`      // of a session; 0 = the scheme's
	Waiting   int      `json:"waiting,omitempty"`    // calls that may wait in a session; 0 = 4096
	Ring      int      `json:"ring,omitempty"`       // packets that may wait at the server; 0 = 4096
	Cost      Duration `json:"cost,omitempty"`       // of each message, for the server's CPU
	RTT       Duration `json:"rtt"`
	Jitter    Duration `json:"jitter,omitempty"`
	Service   Duration `json:"service"` // mean, for which the scheme is set
	SLO       Duration `json:"slo"`
	// End is when the faults are over and nobody calls any more.
	End Duration `json:"end"`

	Faults []Fault `json:"faults,omitempty"`
	Closes []Close `json:"closes,omitempty"`
	Calls  []Call  `json:"calls,omitempty"`
}

// Call is one call.
type Call struct {
	At       Duration `json:"at"`
	Session  int      `json:"session,omitempty"`
	Service  Duration `json:"service,omitempty"`
	Deadline Duration `json:"deadline,omitempty"` // 0 = none
	Cancel   Duration `json:"cancel,omitempty"`   // its caller changes its mind so long after; 0 = never
}

// Close closes a session. Its next call opens another.
type Close struct {
	At      Duration `json:"at"`
	Session int      `json:"session,omitempty"`
}

// Fault is one thing that goes wrong for a while.
type Fault struct {
	Kind    Kind     `json:"kind"`
	At      Duration `json:"at"`
	For     Duration `json:"for"`
	Share   float64  `json:"share,omitempty"`   // of the packets, of Loss to Drop
	By      Duration `json:"by,omitempty"`      // of Reorder: held back by up to this
	Message string   `json:"message,omitempty"` // of Drop: packets with one of these are lost
	Host    int      `json:"host,omitempty"`    // that calls, of StallClient, KillClient and the cuts
}

// Kind is a kind of fault.
type Kind string

// The kinds of fault.
const (
	Loss        Kind = "loss"
	Duplicate   Kind = "duplicate"
	Reorder     Kind = "reorder"
	Corrupt     Kind = "corrupt"
	Drop        Kind = "drop"         // of one type of message
	CutTo       Kind = "cut-to"       // nothing gets from the host to the server
	CutFrom     Kind = "cut-from"     // nothing gets from the server to the host
	StallServer Kind = "stall-server" // its CPUs do nothing
	StallClient Kind = "stall-client" // nor does a host that calls
	KillServer  Kind = "kill-server"  // its process ends, and another begins after that time
	KillClient  Kind = "kill-client"  // the same of a host that calls
)

// ErrPlan says that a plan cannot be played.
var ErrPlan = errors.New("bad plan")

// Bounds of a plan: what one machine holds, and what a person waits for.
const (
	hostsMax    = 100
	sessionsMax = 100_000
	timeMax     = Duration(time.Minute)
)

// Validate says what is wrong with a plan, if anything.
func (p *Plan) Validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrPlan}, args...)...)
	}
	switch {
	case p.Hosts < 1 || p.Hosts > hostsMax || p.Sessions < 1 || p.Sessions > sessionsMax:
		return fail("%d hosts, %d sessions: from 1 to %d and %d", p.Hosts, p.Sessions, hostsMax, sessionsMax)
	case p.CPUs < 1 || p.InService < 0 || p.Slots < 0 || p.Waiting < 0 || p.Ring < 0:
		return fail("%d CPUs, %d in service, %d slots, %d waiting, ring %d: at least 1, and none negative", p.CPUs, p.InService, p.Slots, p.Waiting, p.Ring)
	case p.RTT < 1 || p.Jitter < 0 || p.Service < 1 || p.SLO < 1 || p.Cost < 0 || p.End < 0 || p.End > timeMax:
		return fail("a time is missing, negative, or the end after %v", time.Duration(timeMax))
	}
	for i, c := range p.Calls {
		if c.At < 0 || c.At > p.End || c.Session < 0 || c.Session >= p.Sessions || c.Service < 0 || c.Deadline < 0 || c.Cancel < 0 {
			return fail("call %d, %+v: within the time and of a session that there is", i, c)
		}
	}
	for i, c := range p.Closes {
		if c.At < 0 || c.At > p.End || c.Session < 0 || c.Session >= p.Sessions {
			return fail("close %d, %+v: within the time and of a session that there is", i, c)
		}
	}
	for i, f := range p.Faults {
		if err := f.validate(p); err != nil {
			return fail("fault %d: %w", i, err)
		}
	}
	_, err := p.scheme()
	return err
}

func (f *Fault) validate(p *Plan) error {
	switch f.Kind {
	case Loss, Duplicate, Reorder, Corrupt, Drop:
		if !(f.Share >= 0 && f.Share <= 1) || f.By < 0 {
			return fmt.Errorf("share %v: a probability is between 0 and 1", f.Share)
		}
		if _, known := types[f.Message]; f.Kind == Drop && !known {
			return fmt.Errorf("no message is called %q", f.Message)
		}
	case CutTo, CutFrom, StallClient, KillClient:
		if f.Host < 0 || f.Host >= p.Hosts {
			return fmt.Errorf("host %d of %d", f.Host, p.Hosts)
		}
	case StallServer, KillServer:
	default:
		return fmt.Errorf("no fault is called %q", f.Kind)
	}
	if f.At < 0 || f.For < 0 || f.At+f.For > p.End {
		return fmt.Errorf("from %v for %v: it must be over at %v", time.Duration(f.At), time.Duration(f.For), time.Duration(p.End))
	}
	return nil
}

// scheme is the plan's scheme of overload control.
func (p *Plan) scheme() (baseline.Scheme, error) {
	s, err := baseline.Lookup(p.Scheme, baseline.Params{
		Service: time.Duration(p.Service), RTT: time.Duration(p.RTT), SLO: time.Duration(p.SLO),
		Clients: p.Sessions, Workers: p.CPUs, Slots: p.Slots, Seed: p.Seed,
	})
	if err != nil {
		return baseline.Scheme{}, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	return s, nil
}

// Read reads a plan's file. A field that it does not know is an error: it would change nothing, silently.
func Read(r io.Reader) (Plan, error) {
	var p Plan
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Plan{}, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	return p, p.Validate()
}

// Text is the plan's file.
func (p *Plan) Text() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	err := e.Encode(p)
	return b.Bytes(), err
}
