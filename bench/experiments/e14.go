package experiments

import (
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// e14 is the lossy fabric.
func e14() *Experiment {
	return &Experiment{
		ID: "E14", Title: "a lossy fabric",
		About: "100 clients, exponential 10us at 0.8x, calls without a deadline. Packets are lost, doubled or held back at random, whatever they carry. Afterwards the demand ends, and\n" +
			"every call must come to its one outcome: a stalled one is a client that waits for ever, a violation a call with two outcomes or a handler that ran twice.",
		Figures: []string{figOffered, figThroughput, figP50, figP99, figPackets, figPending, figViolations},
		Jobs:    e14Jobs, Judge: e14Judge,
	}
}

const (
	lossyDrain = 5 * time.Second // longer than every timer that repairs something
	lossyMin   = 0.9             // of the calls are answered at 1 % of loss
)

func e14Jobs(size Size) (all []job) {
	faults := []struct {
		name    string
		network simulate.Network
	}{
		{"nothing", simulate.Network{}},
		{"1 % lost", simulate.Network{Loss: 0.01}},
		{"10 % lost", simulate.Network{Loss: 0.10}},
		{"10 % doubled", simulate.Network{Duplicate: 0.10}},
		{"10 % held back", simulate.Network{Reorder: 0.10}},
		{"5 % of each", simulate.Network{Loss: 0.05, Duplicate: 0.05, Reorder: 0.05, Corrupt: 0.05}},
	}
	for i, f := range faults {
		for _, scheme := range []string{baseline.Stillwater, baseline.None} {
			s := simulate.Scenario{
				Scheme: scheme, Clients: 100, Network: f.network, Service: service(workload.Exponential, 10*time.Microsecond),
				Budget: -1, Drain: simulate.Duration(lossyDrain),
			}
			all = append(all, job{At: f.name, X: float64(i), Arm: scheme, Seeds: min(size.Seeds, 3), Play: playing(atLoad(size, s, 0.8))})
		}
	}
	return all
}

func e14Judge(t *Table) []Check {
	checks := []Check{
		bound("stalled calls of any scheme", t.Rows, figPending, 0, false),
		bound("violations of any scheme", t.Rows, figViolations, 0, false),
	}
	clean, lossy := t.Row("nothing", baseline.Stillwater), t.Row("1 % lost", baseline.Stillwater)
	share := lossy.Mean(figThroughput) / clean.Mean(figThroughput)
	return append(checks, Check{Met: share >= lossyMin, Text: fmt.Sprintf("ours answers with 1 %% lost at least %.0f %% of what it does without: %.1f %%", 100*lossyMin, 100*share)})
}
