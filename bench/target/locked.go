package target

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/middleware"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// MethodLocked holds a lock for as long as the payload says, in some of its requests, and echoes. The CPU is free meanwhile. See [Locked].
const MethodLocked = "locked"

// Locked is a lock that one request in Every needs.
type Locked struct {
	Every int           `json:"every"`   // at least 1
	Gate  time.Duration `json:"gate_ns"` // the SLO of a gate in front of it, which refuses who could not have it in time; 0 = none: a mutex that all wait for
}

// Register adds the method to a server.
func (l Locked) Register(srv *sw.Server) error {
	var lock sync.Mutex
	var count atomic.Uint64
	var gate *middleware.Control // for as long as the process
	if l.Gate > 0 {
		gate = middleware.New(middleware.Config{SLO: l.Gate, Permits: 1})
	}
	return srv.Handle(MethodLocked, func(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		d, err := workload.DecodeWork(req.Payload)
		if err != nil {
			return reply, err
		}
		if count.Add(1)%uint64(l.Every) == 0 {
			if gate != nil {
				p, err := gate.Enter(ctx)
				if err != nil {
					return reply, err
				}
				defer p.Done(true)
			}
			lock.Lock()
			defer lock.Unlock()
			workload.Sleep(d)
		}
		return append(reply, req.Payload...), nil
	})
}
