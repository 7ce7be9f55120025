package paper

import (
	"fmt"
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/paper/published"
)

// Recovery is how goodput follows the spike of F7.
type Recovery struct {
	// Time is from the spike to the end of the first window that is good again; negative if none is before the demand changes.
	Time time.Duration
	// Dip is the lowest goodput after the demand has fallen from 1.2 M/s to 0.8 M/s, as a share of what that stage settles at; NaN where
	// a stage has no windows.
	Dip float64
}

// recoveredShare is from where on a window is good: this share of what it was before the spike. Windows of 20 ms scatter by 2 %.
const recoveredShare = 0.95

// recoveryWindows is how many windows say what was before, or what a stage settles at.
const recoveryWindows = 25

// recoveryOf reads both from the goodput of all windows, with so many windows to a stage. The same function reads the published curves and
// ours.
func recoveryOf(goodput []float64, perStage int) Recovery {
	r := Recovery{Time: -1, Dip: math.NaN()}
	from, to := spikeStage*perStage, (spikeStage+1)*perStage
	if perStage == 0 || len(goodput) < to {
		return r
	}
	before := mean(goodput[max(from-recoveryWindows, from-perStage):from])
	for i, v := range goodput[from:to] {
		if v >= recoveredShare*before {
			r.Time = time.Duration(i+1) * windowWidth
			break
		}
	}
	if end := to + perStage; len(goodput) >= end {
		settled := mean(goodput[max(end-recoveryWindows, to):end])
		r.Dip = math.Inf(1)
		for _, v := range goodput[to:end] {
			r.Dip = min(r.Dip, v/settled)
		}
	}
	return r
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// publishedRecovery reads the published curve of a scheme.
func publishedRecovery(scheme Scheme) (Recovery, bool) {
	rows, err := published.Rows()
	if err != nil {
		return Recovery{}, false // no plan could have been made
	}
	var goodput []float64
	for _, r := range rows {
		if s, _, found := legend(r.Scheme); found && s == scheme && r.Figure == "F7" && r.Metric == published.Goodput {
			goodput = append(goodput, r.Value)
		}
	}
	return recoveryOf(goodput, int(stagePublished/windowWidth)), len(goodput) > 0
}

// RecoveryPair is a scheme's recovery beside the published one.
type RecoveryPair struct {
	Scheme       Scheme
	Ours         Recovery
	Published    Recovery
	HasPublished bool
	point        int
}

// recoveries reads the runs of F7.
func recoveries(plan *Plan, results []Result) (pairs []RecoveryPair) {
	seen := map[int]bool{}
	for _, c := range plan.Cells {
		if c.Figure != "F7" || c.Point < 0 || seen[c.Point] {
			continue
		}
		seen[c.Point] = true
		var goodput []float64
		for _, w := range results[c.Point].Series {
			goodput = append(goodput, w.GoodputPerS)
		}
		p := RecoveryPair{Scheme: c.Scheme, Ours: recoveryOf(goodput, int(plan.Size.Stage/windowWidth)), point: c.Point}
		p.Published, p.HasPublished = publishedRecovery(c.Scheme)
		pairs = append(pairs, p)
	}
	return pairs
}

// The bounds on the recovery.
const (
	recoveryShareMax = 0.20        // of the published time, either way, for DAGOR and SEDA
	recoverySlack    = windowWidth // for breakwater-artifact, either way
	dipMin           = 0.90        // ours has no dip after the spike
)

// checkRecovery judges what can be judged: a published time longer than the stages that were run cannot be.
func checkRecovery(pairs []RecoveryPair, size Size) (checks []Check) {
	for _, p := range pairs {
		text := fmt.Sprintf("%s recovers from the spike in %s (published: %s)", p.Scheme, recoveryText(p.Ours.Time), recoveryText(p.Published.Time))
		apart := (p.Ours.Time - p.Published.Time).Abs()
		switch {
		case p.Scheme == Stillwater:
			checks = append(checks,
				Check{RecoveryCheck, p.Ours.Time > 0 && p.Ours.Time <= windowWidth,
					fmt.Sprintf("%s recovers from the spike in %s (at most %v)", p.Scheme, recoveryText(p.Ours.Time), windowWidth)},
				Check{RecoveryCheck, p.Ours.Dip >= dipMin,
					fmt.Sprintf("%s keeps %.0f %% of its goodput after the spike (at least %.0f %%)", p.Scheme, 100*p.Ours.Dip, 100*dipMin)})
		case !p.HasPublished || p.Published.Time > size.Stage:
		case p.Scheme == BreakwaterArtifact:
			checks = append(checks, Check{RecoveryCheck, p.Ours.Time > 0 && apart <= recoverySlack, text})
		default:
			met := p.Ours.Time > 0 && float64(apart) <= recoveryShareMax*float64(p.Published.Time)
			checks = append(checks, Check{RecoveryCheck, met, text})
		}
	}
	return checks
}

func recoveryText(d time.Duration) string {
	if d < 0 {
		return "no time within its stage"
	}
	return d.String()
}
