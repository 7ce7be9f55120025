package sim

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Three clients' hosts ask for three times what the server can do: what each gets goes by its weight, with few sessions that have several credits
// each and with many that have none.
func TestSharesGoByWeight(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine and millions of events: run without the race detector, by scripts/test too")
	}
	weights := []uint8{1, 2, 4}
	for _, sessions := range []int{2, 10, 100} {
		w := NewWorld(seedtest.Seed(t), Network{OneWay: 5 * us})
		weight := make(map[wire.Addr]uint8)
		m, err := w.AddMachine(dispatcher.Config{TrustedNetwork: true}, MachineConfig{
			CPUs: 10, Costs: Costs{Receive: 880, Send: 880, Reject: 440, Credit: 440},
			Ledger: func() *credit.Ledger {
				return credit.NewLedger(credit.Config{}, credit.NewBreakwater(credit.BreakwaterConfig{Workers: 10}))
			},
			Serve: dispatcher.ServeConfig{
				TargetDelay: 80 * us, DropThreshold: 160 * us, Weight: func(client wire.Addr) uint8 { return weight[client] },
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		served := make([]float64, len(weights))
		s := w.NewSource(m, SourceConfig{Service: exponential(10 * us), Deadline: 20 * time.Millisecond, Observe: func(o *Observation) {
			if o.Call.Outcome == dispatcher.OutcomeOK && w.Elapsed() > 50*time.Millisecond {
				served[o.Client/sessions]++
			}
		}})
		for _, n := range weights {
			h := w.AddHost(dispatcher.Config{})
			weight[h.Addr()] = n
			if err := s.AddClients(h, sessions); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.SetRate(2.55e6); err != nil {
			t.Fatal(err)
		}
		w.Run(250 * time.Millisecond)
		all := served[0] + served[1] + served[2]
		for i, n := range served {
			if want := float64(weights[i]) / 7; math.Abs(n/all/want-1) > 0.1 {
				t.Errorf("%d sessions each: weight %d got %.3f of what was served, want %.3f", sessions, weights[i], n/all, want)
			}
		}
		if all < 0.93*850e3/5 {
			t.Errorf("%d sessions each: %.0f/s were served", sessions, 5*all)
		}
	}
}
