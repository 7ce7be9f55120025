package credit

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Signal is what the server measures of itself.
type Signal struct {
	// Delay is the queueing delay: packet queue plus request queue, each the larger of the age of its oldest
	// element and queued work / workers. Below zero counts as zero.
	Delay time.Duration
	// RTT is the smoothed network round trip to the clients, without queueing at the server. Zero when unknown.
	RTT time.Duration
	// Service is the mean time that requests spend in their handlers. Zero when unknown.
	Service time.Duration
}

// Load is what the ledger tells a controller at each update.
type Load struct {
	Issued uint64 // C_issued: the sum of the windows
	// Pending is the part of it that is at work: requests that were received and are not answered.
	Pending uint64
	// Active: since the last update a request arrived, was answered or is pending, or a session waits for a credit.
	Active bool
	// Drained is the number of sessions that wait for a credit, known demand or not.
	Drained uint64
	// Since the last update: requests that arrived at the door, and those of them and of earlier ones that were answered, rejections
	// apart. A request that is cancelled or expires at the server counts as answered.
	Arrivals, Answers, Rejections uint64
}

// Arrival is a request at the door.
type Arrival struct {
	Now clock.Time
	// Delay is the queueing delay that it meets: its own in the packet queue, and that of the request queue.
	Delay time.Duration
	// Priority is its rank where a scheme sheds by rank: 1 is shed last, 128 first; 0 = it does not say.
	Priority uint8
}

// Holding is the state of one session at the moment when one of its requests is answered, before that is closed.
type Holding struct {
	Issued   uint64 // C_issued
	Window   uint64 // W, with the request that is being answered
	Pending  uint64 // p', without it
	Demand   uint64 // d, clamped to the session's slots
	Rejected bool   // the answer is a rejection
	// Weight is the session's own, and Weights the sum over those that count: Pool Weight / Weights is its fair share.
	Weight, Weights uint64
	Scarce          bool // others wait for credits, with known demand
	Weighted        bool // not all weights are the same
}

// Controller is an overload-control scheme at the server: it sizes the pool, says how much of it a session may hold,
// and guards the door. All its methods are called by one owner, and allocate nothing.
type Controller interface {
	// UpdateDue reports whether Update would do something at now, so that a caller need not measure in vain.
	UpdateDue(now clock.Time) bool
	// Update adapts the pool, at most once per period and without catching up, and reports whether it was due.
	Update(now clock.Time, signal Signal, load Load) bool
	// Resize says that n_c, the number of sessions that count, has changed.
	Resize(sessions uint64)
	// Window is the law of W'. The ledger clamps the result to [p', slots].
	Window(h Holding) uint64
	// Pool is C, in credits.
	Pool() uint64
	// Target is the queueing delay that the scheme steers to; zero when it steers to none.
	Target() time.Duration
	// Admit decides at the door: false means that the request is to be rejected.
	Admit(a Arrival) bool
}

// Wrapper is a Controller around another one, which it changes in some way. What else that is, it is too, unless it has methods of its own for it: see As.
type Wrapper interface {
	Controller
	Unwrap() Controller
}

// As finds what a scheme is beside a Controller, an Inviter for one, in it or in what it wraps.
func As[T any](c Controller) (t T, ok bool) {
	for {
		if t, ok = c.(T); ok {
			return t, true
		}
		w, wraps := c.(Wrapper)
		if !wraps {
			return t, false
		}
		c = w.Unwrap()
	}
}

// Dequeuer is a Controller that decides a second time, when a request is taken from the queue. Who has no such method is not asked.
type Dequeuer interface {
	// Dequeue is told how long the request waited, and how many still wait behind it. False means that it is to be rejected, unstarted.
	Dequeue(now clock.Time, sojourn time.Duration, queued int) bool
}

// Leveler is a Controller that tells the clients which priorities it lets in, so that they need not send the others.
type Leveler interface {
	// Level is the highest priority that is let in; zero when the door does not ask for priorities.
	Level() uint8
}

// periodMin is the shortest time between two updates of a pool (the artifact's RTT). Below it a measured delay is
// still the effect of the credits before last.
const periodMin = 10 * time.Microsecond

// periodMax bounds what a wrong RTT can do to the period. An echo held for longer than a second is not sent, so no
// honest RTT is longer.
const periodMax = time.Second

// period is the time from one update to the next.
func period(rtt time.Duration) time.Duration { return min(max(rtt, periodMin), periodMax) }

// None is the scheme without control: each session may fill its slots, whatever the delay. It is the control arm.
type None struct {
	slots    uint64
	sessions uint64
	due      clock.Time
}

// NewNone makes a None with this many slots per session; zero or less means DefaultSlots.
func NewNone(slots int) *None { return &None{slots: slotsOrDefault(slots)} }

// UpdateDue reports whether a period has passed; an update only renews the number of drained sessions to be woken up.
func (n *None) UpdateDue(now clock.Time) bool { return now >= n.due }

// Update starts the next period.
func (n *None) Update(now clock.Time, signal Signal, _ Load) bool {
	if !n.UpdateDue(now) {
		return false
	}
	n.due = now.Add(period(signal.RTT))
	return true
}

// Resize notes the number of sessions.
func (n *None) Resize(sessions uint64) { n.sessions = sessions }

// Window is always all slots.
func (n *None) Window(Holding) uint64 { return n.slots }

// Pool is what all sessions together could hold.
func (n *None) Pool() uint64 { return n.slots * n.sessions }

// Target is zero: None steers to nothing.
func (n *None) Target() time.Duration { return 0 }

// Admit always opens the door.
func (n *None) Admit(Arrival) bool { return true }
