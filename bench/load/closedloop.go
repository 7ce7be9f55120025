package load

import (
	"context"
	"fmt"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// ClosedLoop keeps a fixed number of requests outstanding: each outcome starts the next request. It measures echo rates
// and capacity. Its latencies say nothing about an open load, since a slow server slows the generator down with it.
//
// A refusal starts the next request at once, so against a server that refuses it is a storm; that is the point of it.
type ClosedLoop struct {
	Plan
	Outstanding int // default 1

	time timeSource
}

// Run generates the load and returns what was measured; see OpenLoop.Run.
func (l ClosedLoop) Run(ctx context.Context, issuer Issuer) (*Result, error) {
	plan, err := l.resolved()
	if err != nil {
		return nil, err
	}
	if l.Outstanding == 0 {
		l.Outstanding = 1
	}
	if l.Outstanding < 0 {
		return nil, fmt.Errorf("plan closed loop: %d outstanding: give at least 1", l.Outstanding)
	}
	g := newGenerator(plan, l.time.orReal(), issuer, l.Outstanding)
	if err := g.run(ctx, g.refill); err != nil {
		return nil, err
	}
	r := g.result(KindClosedLoop)
	r.Outstanding = l.Outstanding
	r.summarize()
	return r, nil
}

// refill issues a request for every one that is not outstanding. It ends, since a request that comes back meanwhile
// is free only after the next collect.
func (g *generator) refill(now clock.Time) bool {
	for now < g.loadEnds && g.pool.free != nil {
		g.issue(now, now)
	}
	return true
}
