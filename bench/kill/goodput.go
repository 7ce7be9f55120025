//go:build linux

package main

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/checker"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

const (
	// recoveredShare of the goodput before counts as recovered.
	recoveredShare = 0.95
	// It is looked for in steps, over so long at a time: 10 ms hold too few requests to tell 95 % from 93 %.
	recoveryStep   = 10 * time.Millisecond
	recoveryWindow = 100 * time.Millisecond
)

// goodput is the endings of a run by the time at which their requests arose.
type goodput struct {
	endings []checker.Ending
	limit   time.Duration // within which an answer is good
}

func newGoodput(endings []checker.Ending, limit time.Duration) *goodput {
	sorted := slices.SortedFunc(slices.Values(endings), func(a, b checker.Ending) int { return cmp.Compare(a.Due, b.Due) })
	return &goodput{sorted, limit}
}

// at is the place of the first that arose at or after an instant.
func (g *goodput) at(t clock.Time) int {
	return sort.Search(len(g.endings), func(i int) bool { return g.endings[i].Due >= t })
}

// share is the part of those that arose in an interval that was answered in time.
func (g *goodput) share(from, to clock.Time) float64 {
	all := g.endings[g.at(from):g.at(to)]
	good := 0
	for _, e := range all {
		if e.Outcome == checker.OK && e.Finished.Sub(e.Due) <= g.limit {
			good++
		}
	}
	return float64(good) / float64(max(len(all), 1))
}

// recovery is how long after an instant a window begins whose share is high enough; false if none does before the load ends.
func (g *goodput) recovery(from clock.Time, share float64) (time.Duration, bool) {
	if len(g.endings) == 0 {
		return 0, false
	}
	last := g.endings[len(g.endings)-1].Due
	for after := time.Duration(0); from.Add(after+recoveryWindow) <= last; after += recoveryStep {
		if g.share(from.Add(after), from.Add(after+recoveryWindow)) >= share {
			return after, true
		}
	}
	return last.Sub(from), false
}
