package simulate

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/hw/report"
)

// What a run comes to hold, in bytes, above what was measured.
const (
	worldBytes   = 32 << 20
	sessionBytes = 1 << 10
	// unansweredBytes is for each call that waits for an answer that does not come: the call, its request at the server, and packets under way. It was 2.4 KB with
	// 1,000 clients at four times the capacity without control, and 1.9 KB of resident memory with 10,000 at 2.4 times.
	unansweredBytes = 3 << 10
)

// holding are the schemes whose clients hold each call until it is answered.
var holding = []string{baseline.None, baseline.CoDel, baseline.Window, baseline.Protego}

// memory is about how much the scenario comes to hold, in bytes.
func (s Scenario) memory() int64 {
	s = s.withDefaults()
	bytes := worldBytes + sessionBytes*float64(s.everybody())
	if s.Budget <= 0 && (s.Law.NoCredits || slices.Contains(holding, s.Scheme)) {
		bytes += unansweredBytes * s.unanswered()
	}
	return int64(min(bytes, math.MaxInt64/2))
}

// unanswered is how many calls wait at the most, if a server that is asked for more than its capacity answers nothing in time, and nobody gives up.
func (s Scenario) unanswered() (most float64) {
	waiting, capacity := 0.0, s.Capacity()
	for i, step := range s.Demand {
		until := s.Measure
		if i+1 < len(s.Demand) {
			until = min(until, s.Demand[i+1].At)
		}
		lasts := until - step.At
		if i == 0 {
			lasts += s.Warmup
		}
		change := step.PerS
		if change <= capacity {
			change -= capacity
		}
		waiting = max(waiting+change*max(time.Duration(lasts).Seconds(), 0), 0)
		most = max(most, waiting)
	}
	return most
}

// room is the memory that runs at the same time share. A server without control that is asked for more than it can serve leaves millions of calls without an answer; as many such
// runs at once as there are CPUs would be more than most machines have.
type room struct {
	free  *semaphore.Weighted
	total int64
}

func newRoom(total int64) *room { return &room{semaphore.NewWeighted(total), total} }

// take waits until there is room for so many bytes, in the order of those who ask; what is more than all there is waits to be alone. give hands them back. The error is ctx's.
func (r *room) take(ctx context.Context, bytes int64) (give func(), err error) {
	bytes = min(bytes, r.total)
	if err := r.free.Acquire(ctx, bytes); err != nil {
		return nil, err
	}
	return func() { r.free.Release(bytes) }, nil
}

// shared is the room of this process: three quarters of what the machine had left when the first run began. The rest is for garbage, and for others.
var shared = sync.OnceValue(func() *room {
	return newRoom(max(available(report.Facts())/4*3, worldBytes))
})

// availableUnknown is assumed where the system does not say.
const availableUnknown = 8 << 30

// available is how much memory runs may have, in bytes: no more than the Go runtime was told to take.
func available(m report.Machine) int64 {
	bytes := int64(m.MemoryAvailableBytes)
	if bytes == 0 {
		bytes = availableUnknown
	}
	return min(bytes, m.GOMEMLIMITBytes)
}
