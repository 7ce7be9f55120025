package baseline

import (
	"cmp"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// The artifact's own settings, as it made the published figures.
const (
	artifactPeriod = 10 * time.Microsecond // of the pool: fixed, not the measured round trip
	artifactSlots  = 64                    // the most that a client may have outstanding
	artifactQueue  = 16                    // requests that wait at a client
	artifactExpiry = 10 * time.Microsecond // how long they may
)

// Target and drop threshold, for 1, 10 and 100 us of service.
var (
	artifactTarget    = published[float64]{45, 80, 500}
	artifactThreshold = published[float64]{90, 160, 1000}
)

// artifact is the server's half of Breakwater as its authors ran it. The pool is whole; what an increase leaves over is carried, and a decrease
// forgets it.
type artifact struct {
	target, threshold time.Duration
	alpha, beta       float64
	cores             uint64
	sessions          uint64
	pool              uint64
	carry             float64
	due               clock.Time
}

func makeArtifact(p Params, s *Scheme) {
	s.Slots = artifactSlots
	s.TargetDelay, s.DropThreshold = p.delay(artifactTarget), p.delay(artifactThreshold)
	p.Tuning.delays(s)
	law := artifact{
		target: s.TargetDelay, threshold: s.DropThreshold, cores: uint64(p.Workers), pool: uint64(p.Workers),
		alpha: cmp.Or(p.Tuning.Alpha, breakwaterAlpha), beta: cmp.Or(p.Tuning.Beta, breakwaterBeta),
	}
	s.NewController = func() credit.Controller {
		a := law
		return &a
	}
	quiet := p.Tuning.Quiet
	s.NewPolicy = func() client.Policy { return artifactClient{quiet: quiet} }
}

// UpdateDue reports whether 10 us have passed since the last update.
func (a *artifact) UpdateDue(now clock.Time) bool { return now >= a.due }

// Update is the law of the pool, without the paper's max(..., 1) in the increase.
func (a *artifact) Update(now clock.Time, signal credit.Signal, _ credit.Load) bool {
	if !a.UpdateDue(now) {
		return false
	}
	a.due = now.Add(artifactPeriod)
	if signal.Delay < a.target {
		a.carry += a.alpha * float64(a.sessions)
		whole := uint64(a.carry)
		a.carry -= float64(whole)
		a.pool += whole
	} else {
		a.carry = 0
		excess := float64(signal.Delay-a.target) / float64(a.target)
		a.pool = uint64(float64(a.pool) * max(1-a.beta*excess, decreaseFactorMin))
	}
	a.clamp()
	return true
}

// clamp keeps the pool between the cores and all slots; the lower bound wins.
func (a *artifact) clamp() { a.pool = max(min(a.pool, artifactSlots*a.sessions), a.cores) }

// Resize notes the number of sessions.
func (a *artifact) Resize(sessions uint64) {
	a.sessions = sessions
	a.clamp()
}

// Window is the law of package credit with the floor, whatever the delay: a session that would fall to nothing without a rejection keeps the
// overcommitment.
func (a *artifact) Window(h credit.Holding) uint64 {
	return credit.NextWindow(h, a.pool, a.sessions, true)
}

// Pool is C.
func (a *artifact) Pool() uint64 { return a.pool }

// Target is d_t.
func (a *artifact) Target() time.Duration { return a.target }

// Admit rejects above the drop threshold.
func (a *artifact) Admit(at credit.Arrival) bool { return at.Delay <= a.threshold }

// artifactClient is the client's half: a short queue that drops its oldest, and lets none grow old.
type artifactClient struct {
	freely
	quiet bool
}

// Limits are those of the artifact's client.
func (a artifactClient) Limits() client.Limits {
	return client.Limits{Waiting: artifactQueue, DropOldest: true, Expiry: artifactExpiry, Quiet: a.quiet}
}
