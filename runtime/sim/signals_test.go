package sim

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
)

// A device that serves 8 requests at once, for 40 us each, is the bottleneck, at twice what it can do. Handlers that wait for it empty the queue, so
// the signal sees nothing; unless the requests in service are bounded by what their waiting shows.
func TestDeviceIsSeen(t *testing.T) {
	good := make(map[bool]int)
	for _, adapts := range []bool{false, true} {
		b := newBench(t, Network{OneWay: 5 * us}, MachineConfig{
			CPUs: 10, Devices: []int{8}, Ledger: stillwater,
			Plan: func(k Work, steps []Step) []Step {
				return append(steps, Step{For: k.Service}, Step{Kind: StepDevice, For: 40 * us})
			},
			Serve: dispatcher.ServeConfig{AdaptWorkers: adapts, TargetDelay: 80 * us, DropThreshold: 160 * us},
		}, SourceConfig{Service: exponential(10 * us), Deadline: 200 * us}, 300)
		b.rate(t, 400_000)
		b.w.Run(50 * time.Millisecond)
		before := b.calls
		b.w.Run(250 * time.Millisecond)
		good[adapts] = b.calls - before
	}
	if good[true] < 37_000 || good[false] > 30_000 { // the device can do 40,000
		t.Errorf("in 200 ms %d with the bound and %d without", good[true], good[false])
	}
}
