package client

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// BreakerConfig sets a [Breaker]. The zero value is no breaker at all.
type BreakerConfig struct {
	Failures float64       // share of failures in the window that opens it, like 0.5; 0 = never
	Calls    int           // in the window at least, for it to open; 0 = 20
	Window   time.Duration // 0 = 2 s
	Wait     time.Duration // it stays open for half of this to the whole; 0 = 1 s. Twice as long each time that a probe fails
	WaitMax  time.Duration // 0 = 30 s
	Probes   int           // that must succeed in a row for it to close, one at a time; 0 = 3
}

// Defaults of a breaker.
const (
	breakerCallsDefault   = 20
	breakerWindowDefault  = 2 * time.Second
	breakerWaitDefault    = time.Second
	breakerWaitMaxDefault = 30 * time.Second
	breakerProbesDefault  = 3
)

// BreakerState is what a breaker does with calls.
type BreakerState uint8

// The states of a breaker.
const (
	BreakerClosed   BreakerState = iota // calls pass
	BreakerOpen                         // calls are refused
	BreakerHalfOpen                     // one at a time passes, to see whether the server is back
)

var breakerStateNames = [...]string{"closed", "open", "half-open"}

// String names the state.
func (s BreakerState) String() string {
	if int(s) < len(breakerStateNames) {
		return breakerStateNames[s]
	}
	return "unknown"
}

// Permit is a call that a breaker let through. Each is reported once; one that is reported again, or that is older than the breaker's last change of state, changes
// nothing.
type Permit struct {
	epoch uint32
	probe uint32 // number of the probe; 0 = it is none
}

// Report is what became of a call that a breaker let through.
type Report uint8

// The reports.
const (
	ReportNothing Report = iota // never sent, or cancelled: it says nothing of the server
	ReportSuccess
	ReportFailure
)

// Breaker refuses all calls for a while when too many have failed, and then lets a few through, one at a time, to see whether the server is back (M. Nygard, "Release
// It!", 2007). Against overload a [Throttle] is better, since it sheds what is too much and not everything: a breaker is for servers that are gone.
//
// A clock that jumps back while it is open makes it probe at once; a probe of which nobody reports counts as failed after Wait.
type Breaker struct {
	cfg       BreakerConfig
	window    counts // all: calls; good: failures
	state     BreakerState
	epoch     uint32
	probe     uint32     // the one that is under way in this epoch; 0 = none
	probes    uint32     // sent in this epoch
	since     clock.Time // it opened, or sent its probe
	until     clock.Time // it is open, or its probe is waited for
	wait      time.Duration
	succeeded int
}

// NewBreaker makes a closed breaker.
func NewBreaker(cfg BreakerConfig) Breaker {
	def := func(v *time.Duration, value time.Duration) {
		if *v <= 0 {
			*v = value
		}
	}
	def(&cfg.Window, breakerWindowDefault)
	def(&cfg.Wait, breakerWaitDefault)
	def(&cfg.WaitMax, breakerWaitMaxDefault)
	cfg.WaitMax = max(cfg.WaitMax, cfg.Wait)
	if cfg.Calls <= 0 {
		cfg.Calls = breakerCallsDefault
	}
	if cfg.Probes <= 0 {
		cfg.Probes = breakerProbesDefault
	}
	return Breaker{cfg: cfg, window: newCounts(cfg.Window), wait: cfg.Wait}
}

// State is what it does with calls at present. One that is open becomes half-open with the call that probes.
func (b *Breaker) State() BreakerState { return b.state }

// Allow decides about one call. One that may pass has a permit, which is reported when it ends.
func (b *Breaker) Allow(now clock.Time) (p Permit, ok bool) {
	if b.state == BreakerClosed {
		return Permit{epoch: b.epoch}, true
	}
	waits := now >= b.since && now < b.until
	switch {
	case b.state == BreakerOpen && waits:
		return Permit{}, false
	case b.state == BreakerOpen:
		b.change(BreakerHalfOpen)
	case b.probe != 0 && waits:
		return Permit{}, false
	case b.probe != 0: // nobody reported it
		b.open(now, 1)
		return Permit{}, false
	}
	b.probes++
	b.probe, b.since, b.until = b.probes, now, now.Add(b.wait)
	return Permit{epoch: b.epoch, probe: b.probe}, true
}

// Report tells what became of a call, with a random number from [0, 1) that decides how long it stays open, should it open: clients that lost
// the same server must not all come back at once.
func (b *Breaker) Report(now clock.Time, p Permit, r Report, draw float64) {
	if b.cfg.Failures == 0 || p.epoch != b.epoch || b.state == BreakerOpen {
		return
	}
	if b.state == BreakerClosed {
		b.count(now, r, draw)
		return
	}
	if p.probe != b.probe || p.probe == 0 {
		return
	}
	b.probe = 0
	switch r {
	case ReportFailure:
		b.open(now, draw)
	case ReportSuccess:
		if b.succeeded++; b.succeeded >= b.cfg.Probes {
			b.wait = b.cfg.Wait
			b.change(BreakerClosed)
		}
	}
}

// count counts a call of a closed breaker.
func (b *Breaker) count(now clock.Time, r Report, draw float64) {
	switch r {
	case ReportSuccess:
		b.window.add(now, 1, 0)
	case ReportFailure:
		b.window.add(now, 1, 1)
		if calls := b.window.sum.all; int(calls) >= b.cfg.Calls && float64(b.window.sum.good) >= b.cfg.Failures*float64(calls) {
			b.open(now, draw)
		}
	}
}

// open refuses calls from now on: for longer each time, until it has been closed.
func (b *Breaker) open(now clock.Time, draw float64) {
	if b.state == BreakerHalfOpen {
		b.wait = min(2*b.wait, b.cfg.WaitMax)
	}
	b.since, b.until = now, now.Add(time.Duration(float64(b.wait)*(1+draw)/2))
	b.change(BreakerOpen)
}

// change begins another epoch.
func (b *Breaker) change(to BreakerState) {
	b.state, b.succeeded, b.probe, b.probes = to, 0, 0, 0
	b.epoch++
	b.window.clear()
}
