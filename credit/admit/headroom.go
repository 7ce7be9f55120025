package admit

import (
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

const (
	headroomUnit  = 100 * time.Nanosecond // of work: a token of the bucket
	headroomBurst = 10 * time.Millisecond // work that may come at once, for each CPU
)

// Headroom keeps a share of the CPUs free: it admits no more expected work than the others can do. A server that runs near its capacity is where a trigger
// that goes away leaves an overload that stays (the vulnerable region: Bronson et al., "Metastable Failures in Distributed Systems", HotOS 2021); the
// margin is what it recovers with. The zero Headroom refuses nothing.
type Headroom struct {
	share  float64
	bucket Bucket
}

// NewHeadroom keeps a share of so many CPUs free, 0 to 1.
func NewHeadroom(share float64, cpus int) Headroom {
	share = min(max(share, 0), 1)
	if !(share > 0) {
		return Headroom{}
	}
	rate := (1 - share) * float64(max(cpus, 1)) * float64(time.Second/headroomUnit)
	return Headroom{share: share, bucket: NewBucket(int(max(rate, 1)), int(int64(max(cpus, 1))*int64(headroomBurst/headroomUnit)))}
}

// Share is what is kept free.
func (h *Headroom) Share() float64 { return h.share }

// Admit takes the expected work of a request, or says when there is room for it.
func (h *Headroom) Admit(now clock.Time, work time.Duration) (ok bool, retryAfter time.Duration) {
	return h.bucket.Take(now, workUnits(work))
}

// Return gives back what was taken for a request that was refused elsewhere.
func (h *Headroom) Return(work time.Duration) { h.bucket.Give(workUnits(work)) }

func workUnits(work time.Duration) int {
	return int(min((work+headroomUnit-1)/headroomUnit, math.MaxInt32))
}
