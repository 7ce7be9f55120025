package faultsim

import (
	"context"
	"errors"
	"sync"
)

// Swarm is many runs, each of a plan drawn from a seed of its own.
type Swarm struct {
	First    uint64 // seed
	Count    int    // of seeds
	Parallel int    // runs at the same time; 0 = 1
	// Each is told of each run, one at a time, in no order if several run at the same time; false ends the swarm.
	Each func(*Result) bool
}

// Run plays the swarm. It returns ctx's error if that ends first.
func (s Swarm) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var (
		mu   sync.Mutex
		next int
		wait sync.WaitGroup
	)
	take := func() (seed uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == s.Count || ctx.Err() != nil {
			return 0, false
		}
		next++
		return s.First + uint64(next-1), true
	}
	for range max(s.Parallel, 1) {
		wait.Go(func() {
			for seed, ok := take(); ok; seed, ok = take() {
				r, err := Play(ctx, Draw(seed))
				mu.Lock()
				switch {
				case ctx.Err() != nil:
				case err != nil:
					stop(err)
				case !s.Each(r):
					stop(errEnough)
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if err := context.Cause(ctx); err != errEnough {
		return err
	}
	return nil
}

// errEnough ends a swarm whose owner has seen enough.
var errEnough = errors.New("enough")
