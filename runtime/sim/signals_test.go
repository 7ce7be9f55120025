package sim

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
)

// What a server is bound by, at twice what that can do. Handlers that wait for it empty the queue, so the signal sees nothing; unless the requests in service
// are bounded by what ends too late.
func TestWaitingIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		machine  MachineConfig
		deadline time.Duration
		canDo    float64 // a second
		blind    float64 // of that, if as many are let in as come
	}{
		"a device that serves 8 at once, for 40us each": {MachineConfig{Devices: []int{8}, Plan: func(k Work, steps []Step) []Step {
			return append(steps, Step{For: k.Service}, Step{Kind: StepDevice, For: 40 * us})
		}}, 200 * us, 200_000, 0.75},
		"a lock that one in ten holds for 50us": {MachineConfig{Locks: 1, Plan: func(k Work, steps []Step) []Step {
			if steps = append(steps, Step{For: k.Service}); k.ID%10 != 0 {
				return steps
			}
			return append(steps, Step{Kind: StepLock}, Step{For: 50 * us}, Step{Kind: StepUnlock})
		}}, 600 * us, 200_000, 0.92},
	} {
		for _, adapts := range []bool{false, true} {
			m := c.machine
			m.CPUs, m.Ledger = 10, stillwater
			m.Serve = dispatcher.ServeConfig{AdaptWorkers: adapts, TargetDelay: 80 * us, DropThreshold: 160 * us}
			b := newBench(t, Network{OneWay: 5 * us}, m, SourceConfig{Service: exponential(10 * us), Deadline: c.deadline}, 300)
			b.rate(t, 2*c.canDo)
			b.w.Run(400 * time.Millisecond)
			before := b.calls
			b.w.Run(900 * time.Millisecond)
			if share := float64(b.calls-before) / 0.5 / c.canDo; adapts && share < 0.93 || !adapts && share > c.blind {
				t.Errorf("%s: adapts %v: %.1f %% of what it can do", name, adapts, 100*share)
			}
		}
	}
}
