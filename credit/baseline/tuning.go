package baseline

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
)

// Tuning departs from the published settings: an experiment's, for its sweeps and ablations. A zero field is the scheme's own; those of other schemes
// are ignored.
type Tuning struct {
	// Of the laws with credits: stillwater, breakwater-paper and breakwater-artifact.
	Alpha         float64       `json:"alpha,omitempty"`             // increase per client and update
	Beta          float64       `json:"beta,omitempty"`              // decrease per target of excess and update
	Target        time.Duration `json:"target_ns,omitempty"`         // d_t
	DropThreshold time.Duration `json:"drop_threshold_ns,omitempty"` // of the door
	NoCredits     bool          `json:"no_credits,omitempty"`        // all slots for everybody, behind the scheme's door
	NoAQM         bool          `json:"no_aqm,omitempty"`            // the door is never shut
	NoSpeculation bool          `json:"no_speculation,omitempty"`    // C_oc is 0: credits for known demand alone, which clients tell in messages of their own

	// Of breakwater-artifact: clients without a credit say nothing unasked, as the artifact's do over TCP, which loses nothing.
	Quiet bool `json:"quiet,omitempty"`

	DAGOR DAGORTuning `json:"dagor,omitzero"`
	SEDA  SEDATuning  `json:"seda,omitzero"`
}

// DAGORTuning is of DAGOR.
type DAGORTuning struct {
	Threshold time.Duration `json:"threshold_ns,omitempty"` // delay from which a server counts as overloaded
	Alpha     float64       `json:"alpha,omitempty"`        // share of the cut that it loses then
	Beta      float64       `json:"beta,omitempty"`         // share of all priorities that it gains else
}

// SEDATuning is of SEDA.
type SEDATuning struct {
	Target time.Duration `json:"target_ns,omitempty"` // of the p99
	AdjI   float64       `json:"adj_i,omitempty"`     // step up of one client, in requests per second, for as many clients as there are
	AdjD   float64       `json:"adj_d,omitempty"`     // divisor down
	// Cold has clients begin without a token, and with a few requests a second, as the authors' clients did. Their first requests then wait for a quarter of a second.
	Cold bool `json:"cold,omitempty"`
}

// validate refuses what has no meaning.
func (t Tuning) validate() error {
	for name, v := range map[string]float64{
		"alpha": t.Alpha, "beta": t.Beta, "target": float64(t.Target), "drop threshold": float64(t.DropThreshold),
		"DAGOR's threshold": float64(t.DAGOR.Threshold), "DAGOR's alpha": t.DAGOR.Alpha, "DAGOR's beta": t.DAGOR.Beta,
		"SEDA's target": float64(t.SEDA.Target), "SEDA's adj_i": t.SEDA.AdjI, "SEDA's adj_d": t.SEDA.AdjD,
	} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("baseline: %s %v: it must be a number, not below 0", name, v)
		}
	}
	switch {
	case t.DAGOR.Alpha >= 1:
		return fmt.Errorf("baseline: DAGOR's alpha %v: a share below 1", t.DAGOR.Alpha)
	case t.SEDA.AdjD != 0 && t.SEDA.AdjD <= 1:
		return fmt.Errorf("baseline: SEDA's adj_d %v: a divisor above 1", t.SEDA.AdjD)
	case t.NoCredits && t.NoSpeculation:
		return fmt.Errorf("baseline: no credits and no speculation: there is nothing to speculate with")
	}
	return nil
}

// delays sets what of a scheme's delays is tuned. A target alone moves the door along, twice as far.
func (t Tuning) delays(s *Scheme) {
	if t.Target > 0 {
		s.TargetDelay, s.DropThreshold = t.Target, 2*t.Target
	}
	s.DropThreshold = cmp.Or(t.DropThreshold, s.DropThreshold)
}

// parts switches off what is not wanted of a scheme with credits.
func (t Tuning) parts(rtt time.Duration, s *Scheme) {
	law, policy, slots := s.NewController, s.NewPolicy, s.Slots
	if t.NoCredits {
		s.NewController = func() credit.Controller { return doorOnly{credit.NewNone(slots), law()} }
		s.NewPolicy = nil
		return
	}
	if t.NoSpeculation {
		s.Asking = true
		s.NewController = func() credit.Controller { return asking{law()} }
		s.NewPolicy = func() client.Policy {
			if policy == nil {
				return askingClient{freely{}, rtt}
			}
			return askingClient{policy(), rtt}
		}
	}
	if t.NoAQM {
		law := s.NewController
		s.NewController = func() credit.Controller { return doorless{law()} }
	}
}

// doorOnly is what is left of a law without its credits.
type doorOnly struct {
	*credit.None
	door credit.Controller
}

// Target is the law's.
func (d doorOnly) Target() time.Duration { return d.door.Target() }

// Admit is the law's.
func (d doorOnly) Admit(a credit.Arrival) bool { return d.door.Admit(a) }

// doorless is a law without its door.
type doorless struct{ credit.Controller }

// Admit lets everything in.
func (doorless) Admit(credit.Arrival) bool { return true }

// Unwrap is the law.
func (d doorless) Unwrap() credit.Controller { return d.Controller }

// asking is a law that gives credits for known demand alone: C_oc is 0, and there is no floor.
type asking struct{ credit.Controller }

// Window is the law of W' with nothing overcommitted.
func (a asking) Window(h credit.Holding) uint64 {
	wanted, pool := h.Pending+h.Demand, a.Pool()
	switch {
	case h.Issued < pool:
		return min(wanted, h.Window+pool-h.Issued)
	case h.Issued == pool:
		return min(wanted, h.Window)
	case h.Window > 0:
		return min(wanted, h.Window-1)
	}
	return 0
}

// askRoundTrips is how much longer a call may wait that has to ask: every one waits for a round trip, and under load for the server to get to its question.
const askRoundTrips = 3

// askingClient is the client of such a law: each new call without a credit is told at once.
type askingClient struct {
	client.Policy
	rtt time.Duration
}

// Limits are those of the scheme's client, and that it asks.
func (a askingClient) Limits() client.Limits {
	l := a.Policy.Limits()
	l.Ask = true
	if l.Expiry > 0 {
		l.Expiry += askRoundTrips * a.rtt
	}
	return l
}
