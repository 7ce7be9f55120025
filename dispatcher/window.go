package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// window is what descent sees of the requests that ended since it began.
type window struct {
	began           clock.Time
	lasted          time.Duration // once it is over
	first, peak     int           // in service: when it began, and at the most
	completed, late int
	tight           int           // took more than 1/spare of what they had
	took, left      time.Duration // of the late ones, in all: what they took, and what they had
	reached         bool          // the bound was met
}

// Of all that completed, one in so many that are late is
const (
	lateAll  = 1.1 // nearly all,
	lateMost = 20  // more than steps of nearMin will do for,
	lateMany = 50  // too many,
	lateFew  = 100 // few enough for a higher bound
)

// A window is over after so many completions. Where a step leaves the share x of the CPUs idle, these are 164/x^2: a tenth of them, which may be
// bound by a lock, have a noise of x/4, and what decides is x/2. And it lasts so many times what the late ones took: else it sees them only start, or only end.
const (
	windowOf    = 1024
	windowNear  = 164
	windowTimes = 4
	windowMax   = time.Second // where none was late: few may be in service for long, and to let more in should not take as many completions
)

// count adds a request that ended at now.
func (w *window) count(now clock.Time, took, left time.Duration) {
	if w.began == 0 {
		w.began = now
	}
	w.completed++
	if left == 0 || took <= left/spare {
		return
	}
	w.tight++
	if took > left {
		w.late++
		w.took += took
		w.left += left
	}
}

// least is how long it lasts at least. More than no time at all, since goodput is counted by time.
func (w *window) least() time.Duration { return windowTimes * w.took / time.Duration(max(w.late, 1)) }

// calm reports whether it is over without as many completions: it took long enough, and none was late.
func (w *window) calm(now clock.Time) bool { return w.late == 0 && now.Sub(w.began) > windowMax }

// hopeless reports whether nearly all were late.
func (w *window) hopeless() bool { return float64(w.late)*lateAll > float64(w.completed) }

// good is the goodput of a window that is over, per second.
func (w *window) good() float64 { return float64(w.completed-w.late) / w.lasted.Seconds() }

// excess is the share of those in service that is too much for the late ones, if all that these waited was for each other; zero while few are late.
func (w *window) excess() float64 {
	if w.late*lateMany <= w.completed {
		return 0
	}
	return 1 - float64(w.left)/float64(w.took)
}

// near is the share of those in service that a step takes where there is no more than one for every CPU.
func (w *window) near() float64 {
	if w.late*lateMost <= w.completed {
		return nearMin
	}
	return min(max(w.excess(), nearMin), nearMax)
}
