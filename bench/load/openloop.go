package load

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Step changes the rate of an open loop.
type Step struct {
	At       time.Duration `json:"at_ns"` // from the start of the window
	RatePerS float64       `json:"rate_per_s"`
}

// OpenLoop issues requests at the instants of an arrival process, whether or not earlier ones were answered.
type OpenLoop struct {
	Plan
	Rate     float64          // requests per second
	Arrivals workload.Process // default Poisson
	Steps    []Step           // changes of the rate, in order

	// MaxOutstanding bounds the requests in flight, and so the memory. A request that comes due when all of them are
	// out is counted as unissued, and fails the run. Default 131,072.
	MaxOutstanding int
	// LatenessLimit is the p99 of the generator's own lateness above which the run fails. Default 20 % of the SLO;
	// without an SLO there is none.
	LatenessLimit time.Duration

	time timeSource
}

const (
	// defaultOutstanding is above 1,000 clients times 64 slots, the load with no control at all.
	defaultOutstanding = 1 << 17
	// latenessShare of the SLO is how late a generator may be and still be believed.
	latenessShare = 0.2
)

// Run generates the load and returns what was measured. A run that could not keep its schedule is a Result with
// Failures, not an error: its numbers are still worth looking at. The error is a bad plan or a cancelled ctx.
//
// The calling goroutine spins, and yields on every turn.
func (l OpenLoop) Run(ctx context.Context, issuer Issuer) (*Result, error) {
	plan, err := l.resolved()
	if err != nil {
		return nil, err
	}
	if l.MaxOutstanding == 0 {
		l.MaxOutstanding = defaultOutstanding
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	if l.LatenessLimit == 0 {
		l.LatenessLimit = time.Duration(latenessShare * float64(plan.SLO))
	}
	g := newGenerator(plan, l.time.orReal(), issuer, l.MaxOutstanding)
	schedule := newSchedule(g, l)
	if err := g.run(ctx, schedule.issueDue); err != nil {
		return nil, err
	}
	r := g.result(KindOpenLoop)
	r.Arrivals = l.Arrivals.String()
	r.RatePerS = l.Rate
	r.Steps = l.Steps
	r.LatenessLimit = l.LatenessLimit
	r.summarize()
	return r, nil
}

// check refuses what only an open loop can get wrong.
func (l *OpenLoop) check() error {
	if l.Rate < 0 || l.MaxOutstanding < 0 || l.LatenessLimit < 0 {
		return fmt.Errorf("plan open loop: rate %v/s, at most %d outstanding, lateness limit %v: none may be negative", l.Rate, l.MaxOutstanding, l.LatenessLimit)
	}
	inOrder := slices.IsSortedFunc(l.Steps, func(a, b Step) int { return int(a.At - b.At) })
	for _, s := range l.Steps {
		if s.At < 0 || s.RatePerS < 0 || !inOrder {
			return fmt.Errorf("plan open loop: step to %v/s at %v: give steps in order of time, from 0 on, with rates of at least 0", s.RatePerS, s.At)
		}
	}
	return nil
}

// schedule walks the arrivals and the steps of an open loop.
type schedule struct {
	g        *generator
	arrivals *workload.Arrivals
	steps    []Step
	from     clock.Time
}

// newSchedule begins at the generator's start.
func newSchedule(g *generator, l OpenLoop) *schedule {
	return &schedule{
		g:        g,
		arrivals: workload.NewArrivals(l.Arrivals, g.start, l.Rate, l.Seed),
		steps:    l.Steps,
		from:     g.recorder.from,
	}
}

// issueDue issues what is due by now, at most turnLimit requests. It returns true when nothing more is due.
func (s *schedule) issueDue(now clock.Time) bool {
	for range turnLimit {
		due := s.due()
		if due > now || due >= s.g.loadEnds {
			return true
		}
		s.arrivals.Advance()
		s.g.issue(due, now)
	}
	return false
}

// due returns the next due instant, with every step before it taken.
func (s *schedule) due() clock.Time {
	for {
		due := s.arrivals.Due()
		if len(s.steps) == 0 || s.from.Add(s.steps[0].At) > due {
			return due
		}
		s.arrivals.SetRate(s.from.Add(s.steps[0].At), s.steps[0].RatePerS)
		s.steps = s.steps[1:]
	}
}
