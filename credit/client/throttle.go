package client

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// ThrottleConfig sets a [Throttle]. The zero value is no throttle at all.
type ThrottleConfig struct {
	// K is how many calls are let through for each that the server accepts: what reaches a server that accepts C a second is at most K * C. Below 1 is 1; zero
	// = no throttle; 2 is what the book recommends: the server still sees enough refusals to know that there is demand, and recovery shows at once.
	K float64
	// Window is over how much time calls are counted; 0 = 2 s. It is how long an outage is remembered, so a short one.
	Window time.Duration
	// Probe is the longest that nobody is let through while somebody calls; 0 = 100 ms. Without it the last accepted call that leaves the window shuts the door.
	Probe time.Duration
	// Calls in the window below which nobody is refused; 0 = 20. Who calls once a second should not be refused for one failure.
	Calls int
}

// Defaults of a throttle.
const (
	ThrottleKDefault      = 2.0
	throttleWindowDefault = 2 * time.Second
	throttleProbeDefault  = 100 * time.Millisecond
	throttleCallsDefault  = 20
)

// throttleRun is how many calls in a row must be accepted for what was before them to be forgotten: a server that is back is known by it after 16 answers, and not
// after several windows (each window lets K times as many through as the one before it). Of a server that accepts half of what reaches it, as one does
// behind a throttle with K = 2, it happens once in 65,536 calls.
const throttleRun = 16

// Throttle refuses calls at the client, with a probability, when the server refuses or loses most of them: adaptive throttling of the SRE book (Beyer et al., 2016, chapter
// 21, "Client-side throttling"): p = max(0, (calls - K * accepts) / (calls + 1)) over a sliding window, where a call that is refused here counts as well.
//
// Departures from the book: a call is counted when it ends and not when it is made, or a server that is only slow looks as if it accepted nothing; and three
// rules for the ends of the scale (Probe, Calls, and throttleRun).
//
// Who owns credits needs it less: a server that refuses for overload leaves its client without one. It is for servers that cannot grant, and schemes without credits.
type Throttle struct {
	cfg    ThrottleConfig
	window counts     // all: calls that ended or were refused here; good: of these, accepted by the server
	passed clock.Time // when one was last let through
	run    int        // accepted in a row
}

// NewThrottle makes a throttle; one with K = 0 lets everything through.
func NewThrottle(cfg ThrottleConfig) Throttle {
	if cfg.K != 0 {
		cfg.K = max(cfg.K, 1)
	}
	if cfg.Window <= 0 {
		cfg.Window = throttleWindowDefault
	}
	if cfg.Probe <= 0 {
		cfg.Probe = throttleProbeDefault
	}
	if cfg.Calls <= 0 {
		cfg.Calls = throttleCallsDefault
	}
	return Throttle{cfg: cfg, window: newCounts(cfg.Window)}
}

// Refuses is the probability with which a call is refused at now, by the formula alone.
func (t *Throttle) Refuses(now clock.Time) float64 {
	if t.cfg.K == 0 {
		return 0
	}
	t.window.advance(now)
	calls, accepts := float64(t.window.sum.all), float64(t.window.sum.good)
	if int(t.window.sum.all) < t.cfg.Calls {
		return 0
	}
	return max(0, (calls-t.cfg.K*accepts)/(calls+1))
}

// Admit decides about one call, by a random number from [0, 1). One that is refused is counted here; one that is let through is told of by [Throttle.Answered] when
// it ends, or not at all if it says nothing of the server (it was never sent, or its caller cancelled it).
func (t *Throttle) Admit(now clock.Time, draw float64) bool {
	silent := now.Sub(t.passed)
	if p := t.Refuses(now); draw < p && silent >= 0 && silent < t.cfg.Probe {
		t.window.add(now, 1, 0)
		return false
	}
	t.passed = now
	return true
}

// Answered counts a call that ended: accepted if a handler answered it, whatever it said; not if the server refused it for its load, or there was no answer.
func (t *Throttle) Answered(now clock.Time, accepted bool) {
	if t.cfg.K == 0 {
		return
	}
	if !accepted {
		t.run = 0
		t.window.add(now, 1, 0)
		return
	}
	if t.run++; t.run >= throttleRun && t.Refuses(now) > 0 {
		t.window.clear()
	}
	t.window.add(now, 1, 1)
}
