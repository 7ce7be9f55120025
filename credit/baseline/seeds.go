package baseline

import (
	"math/rand/v2"
	"sync/atomic"
)

// seeds gives each policy of a scheme a generator of its own, all out of one seed.
type seeds struct {
	seed  uint64
	given *atomic.Uint64
}

func newSeeds(seed uint64) seeds { return seeds{seed, new(atomic.Uint64)} }

func (s seeds) next() rand.PCG { return *rand.NewPCG(s.seed, s.given.Add(1)) }

// uniform draws from [0, 1).
func uniform(rng *rand.PCG) float64 { return float64(rng.Uint64()>>11) / (1 << 53) }
