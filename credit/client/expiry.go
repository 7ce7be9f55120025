package client

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// ExpiresAt is the instant from which a request that still waits at the client is no longer worth sending: what remains
// until its deadline is less than the round trip, the queueing delay that the server aims at, and the expected service.
// A request without a deadline (zero) never expires, and a negative estimate counts as zero. The result is unset only
// for those: an instant before the beginning of time becomes its first nanosecond.
func ExpiresAt(deadline clock.Time, rtt, target, service time.Duration) clock.Time {
	if deadline == 0 {
		return 0
	}
	left := deadline
	for _, need := range [...]time.Duration{rtt, target, service} {
		if clock.Time(need) >= left {
			return 1
		}
		left = left.Add(-max(need, 0))
	}
	return left
}
