package simulate

import (
	"context"
	"fmt"
	"sync"
)

// All does count things that know nothing of each other, so many at once, and hands their results on in their order: whatever the machine does, what
// is printed is the same. ready is called from this goroutine. The first error, of either, ends the rest and is returned; what is under way is
// waited for.
func All[R any](ctx context.Context, count, parallel int, do func(ctx context.Context, i int) (R, error), ready func(i int, r R) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type done struct {
		i int
		r R
	}
	next, finished := make(chan int), make(chan done)
	go func() {
		defer close(next)
		for i := range count {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	var workers sync.WaitGroup
	for range min(max(parallel, 1), count) {
		workers.Go(func() {
			for i := range next {
				r, err := do(ctx, i)
				if err != nil {
					cancel(err)
					return
				}
				finished <- done{i, r}
			}
		})
	}
	go func() {
		workers.Wait()
		close(finished)
	}()

	early := make(map[int]R)
	at := 0
	for d := range finished {
		early[d.i] = d.r
		for r, here := early[at]; here && ctx.Err() == nil; r, here = early[at] {
			delete(early, at)
			if err := ready(at, r); err != nil {
				cancel(err)
			}
			at++
		}
	}
	return context.Cause(ctx)
}

// RunAll plays scenarios, so many at once, and hands their results on in their order. See [All].
func RunAll(ctx context.Context, scenarios []Scenario, parallel int, ready func(i int, r *Result) error) error {
	return All(ctx, len(scenarios), parallel, func(ctx context.Context, i int) (*Result, error) {
		r, err := Run(ctx, scenarios[i])
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("simulate %s: %w", scenarios[i].describe(), err)
		}
		return r, err
	}, ready)
}

// describe says in a few words which run it is.
func (s Scenario) describe() string {
	s = s.withDefaults()
	text := s.Scheme
	if s.Name != "" {
		text = s.Name + ", " + text
	}
	if len(s.Demand) > 0 {
		text += fmt.Sprintf(", %.0f/s", s.Demand[0].PerS)
	}
	return text
}
