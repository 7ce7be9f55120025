//go:build linux

package main

import (
	"context"
	"errors"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/prove"
)

// cancelled is what was seen of calls that their user cancelled while their handlers ran in all three layers.
type cancelled struct {
	Kind    string           `json:"kind"`
	Round   int              `json:"round"`
	Calls   int              `json:"call_count"`
	Stopped [3]int           `json:"stopped_counts"` // handlers of front, middle and leaf that saw it
	Told    [3]uint64        `json:"interrupted_counts"`
	Last    [3]time.Duration `json:"last_stopped_ns"` // after the cancellation
}

// cancel makes calls that hang at the leaf, and cancels them all.
func (s settings) cancel(ctx context.Context, r *prove.Run) (c cancelled, err error) {
	patient := s
	patient.attempt = guardTime // nothing ends by itself
	g, err := start(ctx, r, patient.habits(run{troubleHangs, armOurs}))
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	c.Kind, c.Calls = "cancel", s.cancels
	if err := errors.Join(g.call(ctx, atLeaf, "mood", moodHangs, nil), g.call(ctx, atUser, "hold", c.Calls, nil)); err != nil {
		return c, err
	}
	if err := g.call(ctx, atLeaf, "await", awaited{Entered: c.Calls}, nil); err != nil {
		return c, err
	}
	at, err := g.cancelAll(ctx, c.Calls)
	if err != nil {
		return c, err
	}
	for i := range c.Stopped {
		layer := atFront + i
		if err := g.call(ctx, layer, "await", awaited{Cancelled: c.Calls}, nil); err != nil {
			return c, err
		}
		seen, err := g.seen(ctx, layer)
		if err != nil {
			return c, err
		}
		c.Stopped[i], c.Told[i] = len(seen.Cancelled), seen.Stops
		for _, t := range seen.Cancelled {
			c.Last[i] = max(c.Last[i], t.Sub(at))
		}
	}
	return c, nil
}
