package paper

import (
	"fmt"
	"math"

	"github.com/stillwater-rpc/stillwater/bench/paper/published"
)

// CheckKind is what a check is about.
type CheckKind string

// The kinds.
const (
	OrderCheck    CheckKind = "order" // Breakwater against DAGOR and SEDA, as published
	BestCheck     CheckKind = "ours against the best"
	RecoveryCheck CheckKind = "recovery" // after F7's spike
	CollapseCheck CheckKind = "collapse" // of the control arms: without it the harness is wrong
)

// checkKinds lists them in the order in which they are shown.
var checkKinds = []CheckKind{OrderCheck, BestCheck, RecoveryCheck, CollapseCheck}

// Check is a statement about several points that holds or does not.
type Check struct {
	Kind CheckKind
	Met  bool
	Text string
}

// The paper's own repetitions of a point differ by this much, so published differences below it say nothing about the order.
const (
	rateSpread = 0.015
	p99Spread  = 0.15
)

// bestSlack is how far ours may be below the best of the others.
const bestSlack = 0.005

// spread returns how far two published values must be apart to have an order; 0 where order is not asked.
func spread(figure string, m Metric) float64 {
	switch figure {
	case "F3", "F4", "F5", "F6", "F12":
		switch m {
		case Goodput:
			return rateSpread
		case P99Latency:
			return p99Spread
		}
	}
	return 0
}

// site is one place with the values of all whole schemes there.
type site struct {
	figure string
	place
	label           string
	ours, published map[Scheme]float64
}

// sites gathers the places whose order matters.
func sites(all []Comparison) (order []*site) {
	type id struct {
		figure string
		place
	}
	known := map[id]*site{}
	for _, c := range all {
		if c.Point < 0 || spread(c.Figure, c.Metric) == 0 || c.Parts != (Parts{}) && c.Parts != whole {
			continue
		}
		at := id{c.Figure, c.place()}
		s := known[at]
		if s == nil {
			s = &site{c.Figure, c.place(), fmt.Sprintf("%s %s at %s", c.Figure, c.Panel, c.xLabel()), map[Scheme]float64{}, map[Scheme]float64{}}
			known[at] = s
			order = append(order, s)
		}
		s.ours[c.Scheme] = c.Ours
		if c.Row != nil {
			s.published[c.Scheme] = c.Published
		}
	}
	return order
}

// checkOrder holds the order of breakwater-artifact and its rivals against the published order, where that is clear.
func checkOrder(all []Comparison) (checks []Check) {
	for _, s := range sites(all) {
		for _, rival := range []Scheme{DAGOR, SEDA} {
			mine, mineFound := s.published[BreakwaterArtifact]
			theirs, theirsFound := s.published[rival]
			if !mineFound || !theirsFound || math.Abs(mine-theirs) <= spread(s.figure, s.metric)*theirs {
				continue
			}
			word, met := "above", s.ours[BreakwaterArtifact] > s.ours[rival]
			if mine < theirs {
				word, met = "below", s.ours[BreakwaterArtifact] < s.ours[rival]
			}
			checks = append(checks, Check{OrderCheck, met, fmt.Sprintf("%s, %v of %s %s that of %s: %s and %s (published: %s and %s)", s.label, s.metric,
				BreakwaterArtifact, word, rival, s.metric.text(s.ours[BreakwaterArtifact]), s.metric.text(s.ours[rival]), s.metric.text(mine), s.metric.text(theirs))})
		}
	}
	return checks
}

// checkBest holds our goodput against the best of the others that were run.
func checkBest(all []Comparison) (checks []Check) {
	for _, s := range sites(all) {
		ours, found := s.ours[Stillwater]
		if !found || s.metric != Goodput {
			continue
		}
		var best Scheme
		for _, other := range []Scheme{BreakwaterArtifact, BreakwaterPaper, DAGOR, SEDA, None} {
			if v, found := s.ours[other]; found && (best == "" || v > s.ours[best]) {
				best = other
			}
		}
		if best != "" {
			checks = append(checks, Check{BestCheck, ours >= (1-bestSlack)*s.ours[best], fmt.Sprintf("%s, %v of %s at least that of %s: %s and %s",
				s.label, s.metric, Stillwater, best, s.metric.text(ours), s.metric.text(s.ours[best]))})
		}
	}
	return checks
}

// collapseShare is how much of the published loss a control arm must show. How deep it falls depends on its slots and on how long it
// runs, of which the paper says nothing; that it falls does not.
const collapseShare = 0.5

// unboundedTail is from how many SLOs on the p99 of a server without control counts as unbounded.
const unboundedTail = 10

// arm is a curve that must fall.
type arm struct {
	figure, panel string
	scheme        Scheme
	metric        Metric
}

// arms are the control arms.
var arms = []arm{
	{"F1", "a", CoDel, Goodput}, {"F1", "a", Window, Goodput},
	{"F1", "b", CoDel, Goodput}, {"F1", "b", Window, Goodput},
	{"F9", "a", None, Throughput},
}

// checkCollapse looks at the control arms: from its peak to its last point each must lose what it was published to lose, or half of it.
func checkCollapse(all []Comparison, plan *Plan) (checks []Check) {
	for _, a := range arms {
		ours, theirs, found := lossOf(all, a)
		if found {
			checks = append(checks, Check{CollapseCheck, ours >= collapseShare*theirs, fmt.Sprintf(
				"%s %s, %v of %s: %.0f %% of its peak lost at the last point (published: %.0f %%)", a.figure, a.panel, a.metric, a.scheme, 100*ours, 100*theirs)})
		}
	}
	var last *Comparison
	for i, c := range all {
		if c.Row != nil && c.AtLeast() && c.Point >= 0 && (last == nil || c.X > last.X) {
			last = &all[i]
		}
	}
	if last != nil {
		slo := float64(plan.Points[last.Point].SLO)
		checks = append(checks, Check{CollapseCheck, last.Ours >= unboundedTail*slo, fmt.Sprintf("%s %s at %s, p99 of %s: %s, %.1f SLOs (at least %d)",
			last.Figure, last.drawnPanel(), last.xLabel(), last.Scheme, last.Metric.text(last.Ours), last.Ours/slo, unboundedTail)})
	}
	return checks
}

// lossOf returns which share of its peak a curve has lost at its last X, ours and the published one.
func lossOf(all []Comparison, a arm) (ours, theirs float64, found bool) {
	var peak, peakPublished, last, lastPublished float64
	x := math.Inf(-1)
	for _, c := range all {
		if c.Row == nil || c.Figure != a.figure || c.drawnPanel() != a.panel || c.Scheme != a.scheme || c.Metric != a.metric ||
			c.XName == published.NoX {
			continue
		}
		found = true
		peak, peakPublished = max(peak, c.Ours), max(peakPublished, c.Published)
		if c.X > x {
			x, last, lastPublished = c.X, c.Ours, c.Published
		}
	}
	return lost(peak, last), lost(peakPublished, lastPublished), found
}

// lost is the part of a peak that is not left at the last point. What was nothing everywhere has lost all of it.
func lost(peak, last float64) float64 {
	if peak == 0 {
		return 1
	}
	return 1 - last/peak
}
