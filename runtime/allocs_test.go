//go:build linux && !portable && !race

package runtime_test

import (
	"context"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// objects is the number of heap objects that the process ever allocated.
func objects() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() + sample[1].Value.Uint64()
}

// TestCallsAllocateNothing counts the heap objects of both ends, in one process, over 200,000 calls whose handler builds each reply anew.
func TestCallsAllocateNothing(t *testing.T) {
	const callers, calls, perCallMax = 8, 25_000, 0.001
	const perSecondMax = 200 // what looks after the interfaces meanwhile, some 80 objects a second, however long a busy machine takes for the calls
	everywhere(t, func(t *testing.T, p place) {
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{
			"reverse": func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
				for i := range req.Payload {
					reply = append(reply, req.Payload[len(req.Payload)-1-i])
				}
				return reply, nil
			},
		})
		run := func(rounds int) {
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					payload, buf := make([]byte, 64), make([]byte, 0, 64)
					for range rounds {
						reply, err := cli.Call(context.Background(), "reverse", payload, buf)
						if err != nil || len(reply) != len(payload) {
							t.Errorf("%d bytes, %v", len(reply), err)
							return
						}
					}
				})
			}
			group.Wait()
		}
		run(2000) // every slot, buffer and goroutine there will be, or nearly
		perCall := 1.0
		for range 3 { // a stall of the host may still make a pool grow, once; what each call allocates shows each time
			before, began := objects(), time.Now()
			run(calls)
			perCall = max(float64(objects()-before)-perSecondMax*time.Since(began).Seconds(), 0) / (callers * calls)
			t.Logf("%.6f objects per call", perCall)
			if perCall < perCallMax {
				break
			}
		}
		if perCall >= perCallMax {
			t.Errorf("%.6f objects per call; at most %v", perCall, perCallMax)
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}
