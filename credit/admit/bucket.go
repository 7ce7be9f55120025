package admit

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Bounds of a bucket: its tokens are kept in billionths, so that integer rates are exact, in 64 bits.
const (
	RateMax  = 1_000_000_000_000 // units a second: a thousand a nanosecond
	BurstMax = 1_000_000_000     // units
	CostMax  = 1_000_000_000     // units of one request: a debt that is paid off at some time

	tokenParts = int64(time.Second) // parts of a token: what a rate of one a second gains in a nanosecond
)

// Bucket is a token bucket (the meter of RFC 2697, section 3, with one color): it fills with Rate units a second up to Burst, a request takes its cost
// out or is refused, and nothing waits. Over any time t it lets in at most Burst + Rate t, and what the last one cost.
//
// A request that costs more than the burst passes when the bucket is full and leaves a debt: it could never pass else, and the rate stays right. After
// any pause it is full and no more. A clock that goes back by so much fills it for that time twice, and takes nothing from it.
//
// The zero Bucket limits nothing.
type Bucket struct {
	rate, burst int64 // units
	parts       int64 // in it, in parts of a token; negative = debt
	at          clock.Time
}

// NewBucket makes a full bucket of so many units a second. A rate of zero or less limits nothing; a burst below one is one. For less than one unit a second,
// have a request cost more units.
func NewBucket(rate, burst int) Bucket {
	b := Bucket{rate: int64(min(max(rate, 0), RateMax)), burst: int64(min(max(burst, 1), BurstMax))}
	b.parts = b.burst * tokenParts
	return b
}

// Limits reports whether it can refuse.
func (b *Bucket) Limits() bool { return b.rate > 0 }

// Take takes the cost of a request, in units, or says how long it will take until there is as much. Costs below one count as one.
func (b *Bucket) Take(now clock.Time, cost int) (ok bool, retryAfter time.Duration) {
	if b.rate == 0 {
		return true, 0
	}
	b.fill(now)
	price := partsOf(cost)
	need := min(price, b.burst*tokenParts)
	if b.parts >= need {
		b.parts -= price
		return true, 0
	}
	return false, time.Duration((need - b.parts + b.rate - 1) / b.rate)
}

// Give puts back what was taken for a request that was refused elsewhere.
func (b *Bucket) Give(cost int) {
	if b.rate != 0 {
		b.parts = min(b.parts+partsOf(cost), b.burst*tokenParts)
	}
}

// partsOf is a cost in parts of a token.
func partsOf(cost int) int64 { return int64(min(max(cost, 1), CostMax)) * tokenParts }

// fill adds what came in since the last time.
func (b *Bucket) fill(now clock.Time) {
	elapsed := int64(now.Sub(b.at))
	b.at = now
	switch full := b.burst * tokenParts; {
	case elapsed <= 0:
	case elapsed > (full-b.parts)/b.rate: // compared by dividing: an hour times a rate does not fit
		b.parts = full
	default:
		b.parts += elapsed * b.rate
	}
}
