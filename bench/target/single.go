package target

import (
	"context"
	"sync"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// MethodSingle does the work in the payload one request at a time, and echoes. The CPU is free meanwhile. See [Single].
const MethodSingle = "single"

// Slow is a time in which everything takes longer.
type Slow struct {
	From, To clock.Time
	Times    int // as long
}

// Single is a server's one machine: it does one request after the other, in the order in which handlers ask it. A request begins when the one before it has
// ended, or when it arrived if that was later; and not when its handler got the CPU. So what an experiment calls the capacity is what the service times say, although the timers
// of a busy host come late. Handlers may ask it from any goroutine.
type Single struct {
	mu   sync.Mutex
	free clock.Time // when what was begun so far ends
	slow Slow
}

// NewSingle makes one.
func NewSingle(slow Slow) *Single { return &Single{slow: slow} }

// Register adds the method to a server, which is to have one worker.
func (s *Single) Register(srv *sw.Server) error {
	return srv.Handle(MethodSingle, func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		d, err := workload.DecodeWork(req.Payload)
		if err != nil {
			return reply, err
		}
		now := clock.Now()
		packetQueue, requestQueue := req.Waited()
		workload.Sleep(s.take(now.Add(-packetQueue-requestQueue), d).Sub(now))
		return append(reply, req.Payload...), nil
	})
}

// take is when a request that arrived then ends, which takes so long.
func (s *Single) take(arrived clock.Time, d time.Duration) clock.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	begin := max(s.free, arrived)
	if begin >= s.slow.From && begin < s.slow.To {
		d *= time.Duration(s.slow.Times)
	}
	s.free = begin.Add(d)
	return s.free
}
