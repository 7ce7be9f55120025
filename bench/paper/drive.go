package paper

import (
	"context"
	"fmt"
	"sync"
)

// drive runs all points, so many at once, and returns their results in the order of the points. Whenever more of the beginning of that
// order is done, it calls ready from this goroutine with the number of results that are there without a gap, and the number that is done
// in all. The first failure, of the runner or of ready, ends the rest and is the error; runs under way are waited for.
func drive(ctx context.Context, r Runner, points []Point, seed uint64, parallel int, ready func(results []Result, prefix, done int) error) ([]Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range points {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	finished := make(chan run)
	var workers sync.WaitGroup
	for range min(parallel, len(points)) {
		workers.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					return // the choice between the two above is free once ctx is over
				}
				result, err := r.Run(ctx, points[i], points[i].seed(seed))
				finished <- run{i, result, err}
			}
		})
	}
	go func() {
		workers.Wait()
		close(finished)
	}()

	results, have := make([]Result, len(points)), make([]bool, len(points))
	prefix, done := 0, 0
	for f := range finished {
		if f.err != nil {
			cancel(fmt.Errorf("simulate %s: %w", points[f.index].Name(), f.err))
			continue
		}
		if ctx.Err() != nil {
			continue // drained, so that the workers end
		}
		results[f.index], have[f.index] = f.result, true
		done++
		for prefix < len(points) && have[prefix] {
			prefix++
		}
		if err := ready(results, prefix, done); err != nil {
			cancel(err)
		}
	}
	return results, context.Cause(ctx)
}

// run is a point that is done.
type run struct {
	index  int
	result Result
	err    error
}
