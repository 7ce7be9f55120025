package simulate

import (
	"context"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// What a run comes to hold, in bytes, above what was measured.
const (
	worldBytes   = 32 << 20
	sessionBytes = 1 << 10
	// unansweredBytes is for each call that waits for an answer that does not come: the call, its request at the server, and packets under way. It was 2.4 KB with
	// 1,000 clients at four times the capacity without control, and 1.9 KB of resident memory with 10,000 at twice of it.
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
	return newRoom(max(available(os.DirFS("/"), debug.SetMemoryLimit(-1))/4*3, worldBytes))
})

// availableUnknown is assumed where the system does not say.
const availableUnknown = 8 << 30

// available is how much memory may be used, in bytes: what Linux says could be had without swapping (proc(5), MemAvailable), what the control group allows (cgroup-v2, memory.max),
// and what the Go runtime was told, whichever is least.
func available(root fs.FS, limit int64) int64 {
	least := limit // math.MaxInt64 = none
	text, _ := fs.ReadFile(root, "proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "MemAvailable:"); found {
			if kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 54); err == nil {
				least = min(least, kilobytes<<10)
			}
		}
	}
	text, _ = fs.ReadFile(root, "sys/fs/cgroup/memory.max")
	if bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // else it says max
		least = min(least, bytes)
	}
	if least == math.MaxInt64 {
		return availableUnknown
	}
	return least
}
