package baseline

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// SEDA's settings, as evaluated in the artifact of Breakwater.
const (
	sedaBatch     = 100                    // replies that are looked at together,
	sedaTimeout   = time.Millisecond       // or as many as there are after this long
	sedaKept      = 0.7                    // of the smoothed p99; the rest is the new one
	sedaErrLow    = -0.5                   // the rate grows when the error is below this,
	sedaErrOffset = 0.1                    // by -(err + this) adj_i
	sedaRateMin   = 2.0                    // per second
	sedaRateFirst = 4.0                    // per second, at most, that a client begins with
	sedaRateMax   = 1e9                    // per second: more than one a nanosecond is no rate
	sedaBucket    = 4.0                    // tokens
	sedaExpiry    = 100 * time.Microsecond // how long a request may wait for one
)

// SEDA's settings for 1, 10 and 100 us of service: the p99 that is aimed at, in us, the steps up, in requests per second for 1,000 clients,
// and the factors down.
var (
	sedaTarget   = published[float64]{50, 80, 720}
	sedaIncrease = published[float64]{120, 40, 10}
	sedaDecrease = published[float64]{1.04, 1.04, 1.3}
)

// seda is the client's half, and the whole of the scheme: a token bucket whose rate follows the 99th percentile of the response times.
type seda struct {
	freely
	target             float64 // ns
	increase, decrease float64
	rate               float64 // tokens per second
	tokens             float64
	filled             clock.Time // when they were counted; zero = never
	smoothed           float64    // p99 in ns
	batch              [sedaBatch]time.Duration
	count              int
	began              clock.Time // when the batch did; zero = at the first reply
}

func makeSEDA(p Params, s *Scheme) {
	s.NewController = openDoor(p)
	seeds := newSeeds(p.Seed)
	target := float64(cmp.Or(p.Tuning.SEDA.Target, p.delay(sedaTarget)))
	increase := cmp.Or(p.Tuning.SEDA.AdjI, sedaIncrease.at(p.Service)*publishedClients/float64(p.Clients))
	decrease := cmp.Or(p.Tuning.SEDA.AdjD, sedaDecrease.at(p.Service))
	begin := newSEDA
	if p.Tuning.SEDA.Cold {
		begin = newColdSEDA
	}
	s.NewPolicy = func() client.Policy { return begin(target, increase, decrease, seeds.next()) }
}

// newSEDA starts with a full bucket at a low rate, drawn between the least and one step above it, so that clients do not move together.
func newSEDA(target, increase, decrease float64, rng rand.PCG) *seda {
	return &seda{
		target: target, increase: increase, decrease: decrease, rate: sedaRateMin + increase*uniform(&rng), tokens: sedaBucket,
	}
}

// newColdSEDA starts without a token, at a rate drawn between the least and twice of it: the first tokens of 10,000 clients, or first rates as large as a step up, would be an
// overload by themselves, which small steps do not get out of.
func newColdSEDA(target, increase, decrease float64, rng rand.PCG) *seda {
	s := newSEDA(target, increase, decrease, rng)
	s.rate, s.tokens = sedaRateMin+(sedaRateFirst-sedaRateMin)*uniform(&rng), 0
	return s
}

// CanSend reports whether there is a token, or when there will be.
func (s *seda) CanSend(now clock.Time, _ int) (bool, clock.Time) {
	s.fill(now)
	if s.tokens >= 1 {
		return true, 0
	}
	// One nanosecond more than computed, or rounding could leave the token short of whole then.
	return false, now.Add(time.Duration((1-s.tokens)/s.rate*float64(time.Second)) + 1)
}

// fill counts the tokens that have come since they were counted last.
func (s *seda) fill(now clock.Time) {
	if s.filled != 0 {
		s.tokens = min(s.tokens+s.rate*now.Sub(s.filled).Seconds(), sedaBucket)
	}
	s.filled = now
}

// Sent takes a token.
func (s *seda) Sent(clock.Time) { s.tokens-- }

// Answered takes a response time into the batch, that of a lost request too; a rejection has none.
func (s *seda) Answered(now clock.Time, a client.Answer) {
	if a.Rejected {
		return
	}
	if s.began == 0 {
		s.began = now
	}
	s.batch[s.count] = a.Latency
	s.count++
	if s.count == sedaBatch || now.Sub(s.began) >= sedaTimeout {
		s.fill(now) // what has come so far came at the rate so far
		s.adapt()
		s.count, s.began = 0, now
	}
}

// adapt moves the rate by the error of the smoothed p99 of the batch.
func (s *seda) adapt() {
	batch := s.batch[:s.count]
	slices.Sort(batch)
	sample := batch[(99*len(batch)+99)/100-1]
	s.smoothed = sedaKept*s.smoothed + (1-sedaKept)*float64(sample)
	switch err := (s.smoothed - s.target) / s.target; {
	case err > 0:
		s.rate /= s.decrease
	case err < sedaErrLow:
		s.rate += -(err + sedaErrOffset) * s.increase
	}
	s.rate = max(min(s.rate, sedaRateMax), sedaRateMin)
}

// Limits let none wait for longer than 100 us.
func (s *seda) Limits() client.Limits { return client.Limits{Expiry: sedaExpiry} }
