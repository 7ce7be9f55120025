//go:build linux

package main

import (
	"math"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// reason is why a point may differ, in a word.
type reason string

// What is otherwise on the machine than in the simulator. Each is given to a point where it was seen there, not where it would explain something.
const (
	cpuAway   reason = "server's CPU away"
	late      reason = "generator late"
	drifted   reason = "capacity changed"
	batched   reason = "packing"
	repeated  reason = "sent again"
	clientOut reason = "client's CPU away"
	counted   reason = "other calls counted"
	unknown   reason = "unknown"
)

// sentences say what they mean. The table has letters for them, in their order.
var sentences = []struct {
	reason
	text string
}{
	{cpuAway, "other processes had the server's CPU for at least 2 % of the time: what was in flight then is past its SLO at once, where the first prediction has the same loss in equal parts in each request"},
	{late, "the generator was late by a tenth of the SLO or more at its 99th percentile: requests came in bursts, and had less of their SLO left, where the simulator's clients cost nothing and are never late"},
	{drifted, "the server's capacity was another by 5 % or more before and after: the load was not the multiple that it should have been"},
	{batched, "the server put answers into packets otherwise than predicted, by a quarter or more: the loop has up to four wait for each other and share a kick, where the simulator sends each at once and its cost is always the same"},
	{repeated, "more than 1 % of the requests came again: those cost a server that is too slow already, and what it costs is not in the costs"},
	{clientOut, "other processes had the client's CPU for at least 2 % of the time: answers waited there, and requests were late"},
	{counted, "without control, above capacity: the machine's p99 is of the calls made in the measured time, whenever they ended; the simulator's is of those that ended in it"},
	{unknown, "nothing of this was seen"},
}

// From where on something is seen.
const (
	differsAt  = 0.10
	awayAt     = 0.02
	driftAt    = 0.05
	batchedAt  = 0.25
	repeatedAt = 0.01
	lateShare  = 0.1  // of the SLO
	nothingAt  = 0.01 // of capacity: less goodput than this is none
)

// difference is how far the real goodput is from a prediction, of that; false where there is none on either side.
func (c *comparison) difference(from figures) (float64, bool) {
	if max(c.Real.GoodputPerS, from.GoodputPerS) < nothingAt*c.CapacityPerS {
		return 0, false
	}
	return c.Real.GoodputPerS/max(from.GoodputPerS, 1) - 1, true
}

// goodputDiffers and tailDiffers say what is marked.
func (c *comparison) goodputDiffers() bool {
	d, ok := c.difference(c.Predicted)
	return ok && math.Abs(d) > differsAt
}

func (c *comparison) tailDiffers() bool {
	return math.Abs(c.Real.LatencyP99/max(c.Predicted.LatencyP99, 1)-1) > differsAt
}

// reasons are what was seen at a point that differs.
func (c *comparison) reasons(slo time.Duration) (all []reason) {
	if !c.goodputDiffers() && !c.tailDiffers() {
		return nil
	}
	for _, seen := range []struct {
		reason
		is bool
	}{
		{cpuAway, c.ServerAway.Share >= awayAt},
		{late, float64(c.Lateness.P99) >= lateShare*float64(slo)},
		{drifted, math.Abs(c.CapacityAfterPerS/c.CapacityPerS-1) >= driftAt},
		{batched, math.Abs(c.Real.PacketsOut/max(c.Predicted.PacketsOut, 1e-3)-1) >= batchedAt},
		{repeated, c.Retransmitted > repeatedAt},
		{clientOut, c.ClientAway.Share >= awayAt},
		{counted, c.Scheme == sw.SchemeNone && (c.Spike || c.Load >= 1)},
	} {
		if seen.is {
			all = append(all, seen.reason)
		}
	}
	if len(all) == 0 {
		all = []reason{unknown}
	}
	return all
}

// letter stands for the sentence at a place.
func letter(at int) string { return string(rune('a' + at)) }
