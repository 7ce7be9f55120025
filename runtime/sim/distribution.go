package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Distribution is of service times.
type Distribution interface {
	Draw(rng *rand.Rand) time.Duration
	Mean() time.Duration
}

// Constant takes always the same.
type Constant time.Duration

// Draw is the constant.
func (c Constant) Draw(*rand.Rand) time.Duration { return time.Duration(c) }

// Mean is the constant.
func (c Constant) Mean() time.Duration { return time.Duration(c) }

// Exponential is the exponential distribution with this mean.
type Exponential time.Duration

// Draw draws.
func (e Exponential) Draw(rng *rand.Rand) time.Duration {
	return time.Duration(rng.ExpFloat64() * float64(e))
}

// Mean is the mean.
func (e Exponential) Mean() time.Duration { return time.Duration(e) }

// Bimodal is Long with probability P, else Short.
type Bimodal struct {
	P           float64
	Short, Long time.Duration
}

// PaperBimodal is Breakwater's (section 5.1): 20 % take four times the mean, the others a quarter of it.
func PaperBimodal(mean time.Duration) Bimodal {
	return Bimodal{P: 0.2, Short: mean / 4, Long: 4 * mean}
}

// Draw draws.
func (b Bimodal) Draw(rng *rand.Rand) time.Duration {
	if rng.Float64() < b.P {
		return b.Long
	}
	return b.Short
}

// Mean is the mean.
func (b Bimodal) Mean() time.Duration {
	return time.Duration(b.P*float64(b.Long) + (1-b.P)*float64(b.Short))
}

// Lognormal is the lognormal distribution with this mean, whose logarithm has the standard deviation Sigma.
type Lognormal struct {
	Average time.Duration
	Sigma   float64
}

// Draw draws.
func (l Lognormal) Draw(rng *rand.Rand) time.Duration {
	return time.Duration(float64(l.Average) * math.Exp(l.Sigma*rng.NormFloat64()-l.Sigma*l.Sigma/2))
}

// Mean is the mean.
func (l Lognormal) Mean() time.Duration { return l.Average }

// Samples draws from measured service times, each as likely as any other.
type Samples []time.Duration

// Draw draws.
func (s Samples) Draw(rng *rand.Rand) time.Duration { return s[rng.IntN(len(s))] }

// Mean is the mean of the samples.
func (s Samples) Mean() time.Duration {
	var sum float64
	for _, d := range s {
		sum += float64(d)
	}
	return time.Duration(sum / float64(len(s)))
}

// Quantile is the smallest sample that so large a part of all does not exceed.
func (s Samples) Quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
