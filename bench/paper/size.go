package paper

import (
	"fmt"
	"time"
)

// Size is how long each point runs.
type Size struct {
	Name     string
	Requests int           // that arise in the measured time of a point of constant demand
	Warmup   time.Duration // in simulated time; of schemes that settle fast
	Slow     time.Duration // of SEDA, whose clients begin with a few requests a second
	Stage    time.Duration // of each of the five demands of F7; at most the published 2 s
}

// Full is the size that figures are compared at. The paper's warm-up is 2 s. Goodput after 0.3 s is within 1 % of that after 1.6 s, but for SEDA, which has all of it.
func Full() Size {
	return Size{Name: "full", Requests: 500_000, Warmup: 300 * time.Millisecond, Slow: 2 * time.Second, Stage: stagePublished}
}

// Small is for a quick look and for tests: its figures are rough, and what settles slowly has not settled.
func Small() Size {
	return Size{Name: "small", Requests: 20_000, Warmup: 50 * time.Millisecond, Slow: 200 * time.Millisecond, Stage: 200 * time.Millisecond}
}

// warmup is how long a point runs before it counts.
func (s Size) warmup(p Point) time.Duration {
	if p.Scheme == SEDA {
		return max(s.Slow, s.Warmup)
	}
	return s.Warmup
}

// F7, as published.
const (
	stagePublished = 2 * time.Second
	windowWidth    = 20 * time.Millisecond
	spikeStage     = 2 // the stage of 1.2 M/s, whose start is the spike
)

func (s Size) validate() error {
	switch {
	case s.Requests < 1:
		return fmt.Errorf("%w: size of %d requests: at least 1", ErrOptions, s.Requests)
	case s.Warmup < 0 || s.Slow < 0:
		return fmt.Errorf("%w: warm-ups of %v and %v: not below 0", ErrOptions, s.Warmup, s.Slow)
	case s.Stage < windowWidth || s.Stage > stagePublished || s.Stage%windowWidth != 0:
		return fmt.Errorf("%w: stages of %v: whole windows of %v, up to %v", ErrOptions, s.Stage, windowWidth, stagePublished)
	}
	return nil
}
