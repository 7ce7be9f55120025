package baseline

import (
	"cmp"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Breakwater's settings (OSDI 2020, section 5), which its artifact has too.
const (
	breakwaterAlpha   = 0.001 // credits per client and update
	breakwaterBeta    = 0.02  // share of the pool per target delay of excess
	breakwaterStepMin = 1.0   // the increase is at least this many credits
	decreaseFactorMin = 0.5   // an update never takes more than half the pool
)

// paper is Breakwater as its paper has it, and nothing else. It stands apart from credit.Breakwater, so that what that one learns does not
// come in here.
type paper struct {
	alpha, beta       float64
	target, threshold time.Duration
	workers, slots    float64
	sessions          uint64
	pool              float64
	due               clock.Time
}

func makePaper(p Params, s *Scheme) {
	s.Deadlines = true // its clients expire what has waited for too long
	p.Tuning.delays(s)
	// Section 5: the target is 0.4 SLO, and the door shuts at twice of it.
	target, threshold, workers, slots := s.TargetDelay, s.DropThreshold, float64(p.Workers), float64(p.Slots)
	alpha, beta := cmp.Or(p.Tuning.Alpha, breakwaterAlpha), cmp.Or(p.Tuning.Beta, breakwaterBeta)
	s.NewController = func() credit.Controller {
		return &paper{alpha: alpha, beta: beta, target: target, threshold: threshold, workers: workers, slots: slots, pool: workers}
	}
}

// UpdateDue reports whether a round trip has passed since the last update.
func (p *paper) UpdateDue(now clock.Time) bool { return now >= p.due }

// Update is the law of section 3: max(alpha n_c, 1) more below the target, and less in proportion to the excess at or above it.
func (p *paper) Update(now clock.Time, signal credit.Signal, _ credit.Load) bool {
	if !p.UpdateDue(now) {
		return false
	}
	p.due = now.Add(roundTrip(signal.RTT))
	if signal.Delay < p.target {
		p.set(p.pool + max(p.alpha*float64(p.sessions), breakwaterStepMin))
		return true
	}
	excess := float64(signal.Delay-p.target) / float64(p.target)
	p.set(p.pool * max(1-p.beta*excess, decreaseFactorMin))
	return true
}

// set stores the pool within the workers and all slots, since no more can be held; the lower bound wins.
func (p *paper) set(pool float64) {
	p.pool = max(min(pool, p.slots*float64(p.sessions)), p.workers)
}

// Resize notes the number of sessions.
func (p *paper) Resize(sessions uint64) {
	p.sessions = sessions
	p.set(p.pool)
}

// Window is the law of package credit without the floor, which only the artifact has.
func (p *paper) Window(h credit.Holding) uint64 {
	return credit.NextWindow(h, p.Pool(), p.sessions, false)
}

// Pool is C, rounded down.
func (p *paper) Pool() uint64 { return uint64(p.pool) }

// Target is d_t.
func (p *paper) Target() time.Duration { return p.target }

// Admit rejects above the drop threshold.
func (p *paper) Admit(a credit.Arrival) bool { return a.Delay <= p.threshold }

// makeStillwater is ours.
func makeStillwater(p Params, s *Scheme) {
	s.Deadlines, s.AdaptWorkers = true, true
	p.Tuning.delays(s)
	config := credit.BreakwaterConfig{
		Alpha: p.Tuning.Alpha, Beta: p.Tuning.Beta,
		TargetDelay: s.TargetDelay, DropThreshold: s.DropThreshold, Workers: p.Workers, Slots: p.Slots, NoFloor: p.NoFloor, Share: p.Share,
		Uninvited: p.Tuning.NoSpeculation, // its clients ask
	}
	s.NewController = func() credit.Controller { return credit.NewBreakwater(config) }
}

// roundTrip is the measured round trip as a period: not below 10 us, the artifact's, nor above a second, which no honest one is.
func roundTrip(rtt time.Duration) time.Duration {
	return min(max(rtt, 10*time.Microsecond), time.Second)
}
