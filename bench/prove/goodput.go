//go:build linux

package prove

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/checker"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

const (
	// RecoveredShare of the goodput before counts as recovered.
	RecoveredShare = 0.95
	// It is looked for in steps, over so long at a time: 10 ms hold too few requests to tell 95 % from 93 %.
	recoveryStep   = 10 * time.Millisecond
	recoveryWindow = 100 * time.Millisecond
)

// Goodput is the endings of a run by the time at which their requests arose.
type Goodput struct {
	endings []checker.Ending
	limit   time.Duration // within which an answer is good
}

// NewGoodput sorts a copy. An answer is good that comes within the limit of when its request arose.
func NewGoodput(endings []checker.Ending, limit time.Duration) *Goodput {
	sorted := slices.SortedFunc(slices.Values(endings), func(a, b checker.Ending) int { return cmp.Compare(a.Due, b.Due) })
	return &Goodput{sorted, limit}
}

// at is the place of the first that arose at or after an instant.
func (g *Goodput) at(t clock.Time) int {
	return sort.Search(len(g.endings), func(i int) bool { return g.endings[i].Due >= t })
}

// Share is the part of those that arose in an interval that was answered in time.
func (g *Goodput) Share(from, to clock.Time) float64 {
	all := g.endings[g.at(from):g.at(to)]
	good := 0
	for _, e := range all {
		if e.Outcome == checker.OK && e.Finished.Sub(e.Due) <= g.limit {
			good++
		}
	}
	return float64(good) / float64(max(len(all), 1))
}

// Recovery is how long after an instant a window begins whose share is high enough; false if none does before the load ends.
func (g *Goodput) Recovery(from clock.Time, share float64) (time.Duration, bool) {
	if len(g.endings) == 0 {
		return 0, false
	}
	last := g.endings[len(g.endings)-1].Due
	for after := time.Duration(0); from.Add(after+recoveryWindow) <= last; after += recoveryStep {
		if g.Share(from.Add(after), from.Add(after+recoveryWindow)) >= share {
			return after, true
		}
	}
	return last.Sub(from), false
}

// wholeSecond is what no second may fall below, of the goodput before, for it to be whole: one request is no second.
const wholeSecond = 0.9

// Whole is how long after an instant the goodput is whole for good: a window of 100 ms begins whose share is high enough, all that arises from there to the end of the load has
// that share together, and no second of it is below nine tenths of it. It is false if there is no such window.
func (g *Goodput) Whole(from clock.Time, share float64) (after time.Duration, ok bool) {
	if len(g.endings) == 0 {
		return 0, false
	}
	last := g.endings[len(g.endings)-1].Due
	end := last + 1
	at := from
	for second := from; second.Add(time.Second) <= last; second = second.Add(recoveryStep) {
		if g.Share(second, second.Add(time.Second)) < wholeSecond*share {
			at = second.Add(recoveryStep)
		}
	}
	for ; at.Add(recoveryWindow) <= last; at = at.Add(recoveryStep) {
		if g.Share(at, at.Add(recoveryWindow)) >= share && g.Share(at, end) >= share {
			return at.Sub(from), true
		}
	}
	return last.Sub(from), false
}
