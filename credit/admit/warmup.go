package admit

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

const (
	warmupFirst = 0.1 // the share at the start: Envoy's slow start has the same least weight
	warmupStep  = 16  // two arrivals warm by this part of the whole at most, however far apart
)

// Warmup admits a growing share of what arrives, from a tenth, until the server has been at it for a given time: a server whose caches are cold does less,
// and one that gets its full share at once is slow, is taken for dead, restarts, and is cold again (experiment E19).
//
// Only time with arrivals warms: a pause counts as a sixteenth of the whole at most, whether the server was idle for an hour or stood still; a clock that
// goes back takes nothing away. The zero Warmup is warm.
type Warmup struct {
	length, done time.Duration
	last         clock.Time
	coin         coin
}

// NewWarmup makes one that takes so long; zero or less is warm at once. The seed decides who is refused.
func NewWarmup(length time.Duration, seed uint64) Warmup {
	return Warmup{length: max(length, 0), coin: coin(seed)}
}

// Warm reports whether it is over.
func (w *Warmup) Warm() bool { return w.done >= w.length }

// Share is the part of the arrivals that is admitted now.
func (w *Warmup) Share() float64 {
	if w.Warm() {
		return 1
	}
	return warmupFirst + (1-warmupFirst)*float64(w.done)/float64(w.length)
}

// Admit decides about one arrival.
func (w *Warmup) Admit(now clock.Time) bool {
	if w.Warm() {
		return true
	}
	if w.last != 0 {
		w.done += min(max(now.Sub(w.last), 0), max(w.length/warmupStep, 1))
	}
	w.last = now
	return w.coin.within(w.Share())
}

// Left is how long it still takes at least.
func (w *Warmup) Left() time.Duration { return max(w.length-w.done, 0) }
