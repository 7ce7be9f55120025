package credit

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Published settings (paper, section 5) and the defaults derived from them.
const (
	DefaultAlpha       = 0.001                 // credits per client and update, while below the target
	DefaultBeta        = 0.02                  // share of the pool per target delay of excess and update
	DefaultTargetDelay = 80 * time.Microsecond // 0.4 SLO, for an SLO of 200 us (10 us of service and 10 us of RTT)
	DefaultSlots       = 256                   // requests that one session may have outstanding
	DefaultHeadroom    = 4.0                   // credits per client that the pool may exceed what is issued
	DefaultCatchUp     = 1.0                   // share of what is issued that the pool resumes its growth from
	DefaultRecovery    = 0.1                   // share of the way back to its peak that the pool goes in an update
	peakForgets        = 0.25                  // share of a decrease that the peak suffers, too
	decreaseFactorMin  = 0.5                   // an update never takes more than half the pool
)

// BreakwaterConfig configures a Breakwater. The zero value is the published law with one worker.
type BreakwaterConfig struct {
	// Alpha is the additive increase per client and update, in credits; the increase is at least Share.
	// Zero means DefaultAlpha.
	Alpha float64
	// Share is this controller's part of the server, where several share it: each of n has 1/n, so that all together increase by at least
	// one credit. Zero means 1.
	Share float64
	// Beta is the multiplicative decrease per update for a delay of twice the target. Zero means DefaultBeta.
	Beta float64
	// TargetDelay is d_t, 0.4 SLO in the paper. Zero means DefaultTargetDelay.
	TargetDelay time.Duration
	// DropThreshold is the delay above which the door is shut. Zero means twice the target.
	DropThreshold time.Duration
	// Workers is the smallest pool, and the first: the number of requests that can be in service at once.
	// Zero or less means 1.
	Workers int
	// Slots is the most that one session can hold, the same as the ledger's. Zero or less means DefaultSlots.
	Slots int
	// Headroom bounds growth: see grow. Zero means DefaultHeadroom; below zero the pool grows whenever the delay
	// is below the target, as published.
	Headroom float64
	// CatchUp is the share of what is issued below which the pool does not start to grow: see grow. Zero means DefaultCatchUp; below
	// zero the pool grows from wherever it fell to, as published.
	CatchUp float64
	// Recovery is the share of what lies between the pool and its peak that an update without any delay gives back, while clients wait
	// for credits: see recover. Zero means DefaultRecovery; below zero the pool grows by the same small step always, as published.
	Recovery float64
	// FloorDelay is the delay from which the floor is off: see Window. Zero means the target delay.
	FloorDelay time.Duration
	// NoFloor switches the artifact's floor off: a session whose window would fall to zero without a rejection
	// then keeps nothing instead of the overcommitment.
	NoFloor bool
	// Unfair takes credits back from whoever is answered, as published, and not only from sessions that have more than their share.
	Unfair bool
}

// Breakwater is the published law of the pool and of the windows.
type Breakwater struct {
	config   BreakwaterConfig
	workers  float64
	slots    float64
	sessions uint64
	// pool keeps its fraction: alpha n_c need not be whole, and a decrease that rounds to nothing must add up.
	pool  float64
	whole uint64 // floor of pool, below the ceiling
	peak  float64
	due   clock.Time
	floor bool // on, by the delay of the last update
	governed
}

// NewBreakwater makes a Breakwater whose pool is the number of workers.
func NewBreakwater(config BreakwaterConfig) *Breakwater {
	if config.Alpha == 0 {
		config.Alpha = DefaultAlpha
	}
	if config.Share == 0 {
		config.Share = 1
	}
	if config.Beta == 0 {
		config.Beta = DefaultBeta
	}
	if config.TargetDelay <= 0 {
		config.TargetDelay = DefaultTargetDelay
	}
	if config.DropThreshold <= 0 {
		config.DropThreshold = 2 * config.TargetDelay
	}
	if config.Headroom == 0 {
		config.Headroom = DefaultHeadroom
	}
	if config.FloorDelay <= 0 {
		config.FloorDelay = config.TargetDelay
	}
	if config.CatchUp == 0 {
		config.CatchUp = DefaultCatchUp
	}
	if config.Recovery == 0 {
		config.Recovery = DefaultRecovery
	}
	b := &Breakwater{
		config:  config,
		workers: float64(max(config.Workers, 1)),
		slots:   float64(slotsOrDefault(config.Slots)),
	}
	b.floor = !config.NoFloor
	b.set(b.workers)
	b.peak = b.pool
	return b
}

// UpdateDue reports whether a round trip has passed since the last update.
func (b *Breakwater) UpdateDue(now clock.Time) bool { return now >= b.due }

// Update is the law of the pool: additive increase below the target delay, multiplicative decrease at or above it
// (at the target the factor is one, and nothing changes).
func (b *Breakwater) Update(now clock.Time, signal Signal, load Load) bool {
	if !b.UpdateDue(now) {
		return false
	}
	b.due = now.Add(period(signal.RTT))
	if b.frozen {
		return true
	}
	delay := max(signal.Delay, 0)
	b.floor = !b.config.NoFloor && delay < b.config.FloorDelay
	excess := float64(delay-b.config.TargetDelay) / float64(b.config.TargetDelay)
	if excess < 0 {
		b.grow(load, -excess)
		return true
	}
	b.peak = max(b.peak*max(1-peakForgets*b.config.Beta*excess, decreaseFactorMin), b.workers)
	b.set(b.pool * max(1-b.config.Beta*excess, decreaseFactorMin))
	return true
}

// grow adds one increase, if a larger pool could change anything.
//
// A pool that grows while nobody uses it is worth nothing now, and later it is a burst: the delay must first bring it
// down to what is issued before a single credit is revoked, at 2 % a round trip. So it does not grow while no client
// is active, nor while the surplus C - C_issued is larger than this increase and the headroom. The headroom is four
// overcommitted credits per client, counting no more clients than a session has slots: a session rarely takes more at once (one that calls again
// as it is answered says nothing of that before, and with one or two it would never get beyond them; a burst of ten calls is through in three
// round trips), so with that much left the pool limits nobody, however many clients are idle. Where it
// does limit (10 busy clients among 10,000 idle ones that hold all of it; one client with all the demand) the
// surplus is nil, and growth goes on as published.
//
// And it grows from where the credits are. A decrease is felt only as answers carry it, one credit each, so a pool that
// was cut for a millisecond lies far below what is issued, and what is issued hardly moved. If the delay is below the target all the
// same, that debt says nothing any more, but nobody is granted anything until one credit a round trip has paid it off, while the
// server idles. So it is written off (goodput of 1,000 clients at capacity and at twice of it, in a model without other costs: 0.912
// and 0.944 as published, 0.965 and 0.996 so; what that costs in rejections, FloorDelay takes back).
//
// How far the delay lies below the target, in targets, is slack.
func (b *Breakwater) grow(load Load, slack float64) {
	if load.Active {
		b.set(max(b.pool, b.config.CatchUp*float64(load.Issued)))
	}
	clients := float64(b.sessions)
	step := max(b.config.Alpha*clients, b.config.Share)
	if b.config.Headroom >= 0 {
		surplus := b.pool - float64(load.Issued)
		if !load.Active || surplus > step+b.config.Headroom*min(clients, b.slots) {
			return
		}
	}
	b.set(b.pool + max(step, b.recover(load, slack)))
	b.peak = max(b.peak, b.pool)
}

// recover is how much of its last decrease the pool gets back at once.
//
// The pool adds up what the delay says, and the queue adds up what the pool lets in; two sums in a loop swing. A pool of 1,000 that was right is cut to
// 600 before the last of the surplus is served, and at one credit an update the server then idles for 4 ms with 400 clients waiting. So the pool
// remembers where it came from, as CUBIC does its window before the last loss (RFC 9438, section 4.2), and while clients wait and the queue is
// shorter than it may be it goes back there fast: less so the nearer the delay is to its target. A peak that is too high for what the server can do is
// forgotten within milliseconds, at a quarter of the pool's own decrease. (1,000 clients in the simulator, goodput at capacity and at
// twice of it: 0.974 and 0.985 of the capacity without, 0.994 and 0.997 with it; and the 4 ms after a spike are 2.)
func (b *Breakwater) recover(load Load, slack float64) float64 {
	if b.config.Recovery < 0 || load.Drained == 0 {
		return 0
	}
	return b.config.Recovery * slack * (b.peak - b.pool)
}

// Resize notes n_c. A pool larger than all the slots of those that are left shrinks at once; with nobody left it is
// the number of workers, so that the first client to come back finds one.
func (b *Breakwater) Resize(sessions uint64) {
	b.sessions = sessions
	b.set(b.pool)
	b.peak = max(min(b.peak, b.slots*float64(sessions)), b.workers)
}

// set stores the pool within [workers, slots n_c]; the lower bound wins.
func (b *Breakwater) set(pool float64) {
	b.pool = max(min(pool, b.slots*float64(b.sessions)), b.workers)
	b.whole = b.bound(uint64(b.pool))
}

// Window is the law of W', as in the package comment.
//
// The artifact's floor, a credit for every session that was just served, keeps many sparse clients going without a word between
// them and the server; but with it only rejections can take a credit back. So it is off while the delay is at or above the
// target: then answers take credits back as well, before the door has to.
func (b *Breakwater) Window(h Holding) uint64 {
	if b.config.Unfair || h.Weights == 0 { // or nobody says what is fair
		return NextWindow(h, b.whole, b.sessions, b.keepsFloor(h))
	}
	return fairWindow(h, b.whole, b.sessions, b.keepsFloor(h))
}

// Pool is C, rounded down.
func (b *Breakwater) Pool() uint64 { return b.whole }

// Target is d_t.
func (b *Breakwater) Target() time.Duration { return b.config.TargetDelay }

// DropThreshold is the delay above which the door is shut.
func (b *Breakwater) DropThreshold() time.Duration { return b.config.DropThreshold }

// Admit rejects above the drop threshold: the wager of overcommitment was lost, and the credits will follow later.
func (b *Breakwater) Admit(a Arrival) bool { return a.Delay <= b.config.DropThreshold }
