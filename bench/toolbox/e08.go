package toolbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// e8 is jitter.
func e8() *Experiment {
	return &Experiment{
		ID: "E8", Title: "jitter",
		About: "100 clients change the same value: each reads it, and writes it back if nobody else has meanwhile; whoever comes too late waits, and begins again. A message takes 10 +- 2 ms. The waits\n" +
			"begin with 10 ms and end with 2 s. Calls: writes, until everybody has written once; done: when the last one has. Full is what our client does (credit/client.BackoffConfig). The\n" +
			"mean of 20 runs for each seed; the model is that of M. Brooker, Exponential Backoff And Jitter (2015).",
		Figures: []string{figCalls, figDone},
		Charts:  []chart{{Figure: figCalls, Title: "Calls", Named: true}},
		Jobs:    e8Jobs, Judge: e8Judge,
	}
}

const (
	jitterContenders = 100
	jitterRuns       = 20
	jitterBase       = 10 * time.Millisecond
	jitterMax        = 2 * time.Second
	jitterDelay      = float64(10 * time.Millisecond)
	jitterDeviation  = float64(2 * time.Millisecond)
)

// jitters are what a contender may do after it has failed n times, the last wait being what it was.
var jitters = []struct {
	name string
	wait func(n int, last time.Duration, rng *rand.Rand) time.Duration
}{
	{armNone, func(int, time.Duration, *rand.Rand) time.Duration { return 0 }},
	{"exponential", func(n int, _ time.Duration, _ *rand.Rand) time.Duration { return ceiling(n) }},
	{"equal", func(n int, _ time.Duration, rng *rand.Rand) time.Duration {
		return ceiling(n)/2 + between(0, ceiling(n)/2, rng)
	}},
	{"decorrelated", func(_ int, last time.Duration, rng *rand.Rand) time.Duration {
		return min(between(jitterBase, max(3*last, jitterBase), rng), jitterMax)
	}},
	{"full", func(n int, _ time.Duration, rng *rand.Rand) time.Duration {
		return client.BackoffConfig{Base: jitterBase, Max: jitterMax}.Wait(n, 0, rng.Float64())
	}},
}

// ceiling is the exponential backoff.
func ceiling(n int) time.Duration { return min(jitterBase<<min(n-1, 20), jitterMax) }

func between(low, high time.Duration, rng *rand.Rand) time.Duration {
	return low + time.Duration(rng.Float64()*float64(high-low))
}

func e8Jobs(Size) (all []job) {
	for i, j := range jitters {
		all = append(all, job{At: fmt.Sprintf("%d contenders", jitterContenders), X: float64(i), Arm: j.name, Play: func(ctx context.Context, seed uint64) (Sample, error) {
			var calls, done float64
			for run := range uint64(jitterRuns) {
				c := contention{w: stage(seed), rng: rand.New(rand.NewPCG(seed, run)), wait: j.wait}
				if err := c.play(ctx); err != nil {
					return Sample{}, err
				}
				calls += float64(c.calls) / jitterRuns
				done += float64(c.w.Elapsed()) / jitterRuns
			}
			return Sample{Figures: map[string]float64{figCalls: calls, figDone: done}}, nil
		}})
	}
	return all
}

// contention is everybody's fight for one value.
type contention struct {
	w       *sim.World
	rng     *rand.Rand
	wait    func(n int, last time.Duration, rng *rand.Rand) time.Duration
	version int
	calls   int
	done    int
}

func (c *contention) play(ctx context.Context) error {
	for range jitterContenders {
		c.try(1, 0)
	}
	for c.done < jitterContenders {
		if err := simulate.Advance(ctx, c.w, c.w.Elapsed()+time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// try reads after a wait, and writes; n is the number of the try.
func (c *contention) try(n int, wait time.Duration) {
	c.after(wait+c.trip(), func() { // at the server
		seen := c.version
		c.after(c.trip()+c.trip(), func() { // at the client, and back
			c.calls++
			won := c.version == seen
			if won {
				c.version++
			}
			c.after(c.trip(), func() {
				if won {
					c.done++
					return
				}
				c.try(n+1, c.wait(n, wait, c.rng))
			})
		})
	})
}

func (c *contention) after(d time.Duration, f func()) { c.w.At(c.w.Elapsed()+d, f) }

// trip is the time of one message.
func (c *contention) trip() time.Duration {
	return time.Duration(max(jitterDelay+jitterDeviation*c.rng.NormFloat64(), 0))
}

const (
	jitterGain = 0.5  // calls, of those without a backoff
	jitterNear = 1.05 // of the best
)

func e8Judge(t *Table) []Check {
	best, none := t.Rows[0], t.Of(armNone)[0]
	for _, r := range t.Rows {
		if r.Mean(figCalls) < best.Mean(figCalls) {
			best = r
		}
	}
	return []Check{
		bound("ours: calls, of those without a backoff,", t.Of("full"), figCalls, jitterGain*none.Mean(figCalls), false),
		bound("ours: calls, of the fewest of all kinds ("+best.Arm+"),", t.Of("full"), figCalls, jitterNear*best.Mean(figCalls), false),
		bound("without jitter, backoff alone is of little use: calls", t.Of("exponential"), figCalls, 2*best.Mean(figCalls), true),
		bound("the control arm collapses: calls", t.Of(armNone), figCalls, 2000, true),
	}
}
