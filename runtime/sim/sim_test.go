package sim

import (
	"math"
	"sort"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/dispatcher"
)

const us = time.Microsecond

func ours(clients int) *credit.Ledger {
	return credit.NewLedger(credit.Config{MaxSessions: clients + 1}, credit.NewBreakwater(credit.BreakwaterConfig{Workers: 10}))
}

func published(clients int) *credit.Ledger {
	return credit.NewLedger(credit.Config{MaxSessions: clients + 1, Slots: 64}, credit.NewBreakwater(credit.BreakwaterConfig{
		Workers: 10, Slots: 64, Headroom: -1, CatchUp: -1, FloorDelay: math.MaxInt64,
	}))
}

type outcome struct {
	good, all, ok int
	lat           []float64
	by            [16]int
}

func cluster(t testing.TB, clients int, rate float64, service Distribution, deadline, slo time.Duration, ledger *credit.Ledger) (*World, *Machine, *outcome) {
	w := NewWorld(1, Network{OneWay: 5 * us})
	m, err := w.AddMachine(dispatcher.Config{TrustedNetwork: true}, MachineConfig{
		CPUs: 10, Costs: Costs{Receive: 800, Send: 960, Reject: 400, Credit: 400}, Ledger: func() *credit.Ledger { return ledger },
		Serve: dispatcher.ServeConfig{Workers: 256, TargetDelay: 80 * us, DropThreshold: 160 * us},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := &outcome{}
	s := w.NewSource(m, SourceConfig{Service: service, Deadline: deadline, Observe: func(x *Observation) {
		if w.Elapsed() < 200*time.Millisecond {
			return
		}
		o.all++
		o.by[x.Call.Outcome]++
		if x.Call.Outcome == dispatcher.OutcomeOK {
			o.ok++
			o.lat = append(o.lat, float64(x.Latency))
			if x.Latency <= slo {
				o.good++
			}
		}
	}})
	for range 10 {
		if err := s.AddClients(w.AddHost(dispatcher.Config{}), clients/10); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetRate(rate); err != nil {
		t.Fatal(err)
	}
	return w, m, o
}

func TestExplore(t *testing.T) {
	for _, scheme := range []string{"ours", "published"} {
		for _, demand := range []float64{4e5, 7e5, 8e5, 9e5, 1e6, 1.2e6, 1.6e6} {
			l := ours(1000)
			dl := 200 * us
			if scheme == "published" {
				l = published(1000)
				dl = 0
			}
			begin := time.Now()
			w, m, o := cluster(t, 1000, demand, Exponential(10*us), dl, 200*us, l)
			w.Run(700 * time.Millisecond)
			sort.Float64s(o.lat)
			p99 := 0.0
			if len(o.lat) > 0 {
				p99 = o.lat[len(o.lat)*99/100] / 1000
			}
			el := time.Since(begin).Seconds()
			st := m.Dispatcher().Snapshot()
			t.Logf("%-10s %.1fM good %.1fk ok %.1fk p99 %.0f us rej %.2f%% by %v pool %d issued %d | %.2fM calls/s, viol %v", scheme, demand/1e6, float64(o.good)/500, float64(o.ok)/500, p99,
				100*float64(st.RejectedAll())/float64(st.Offered), o.by[:8], st.Pool, st.Issued, float64(w.Checks().Calls)/el/1e6, w.Checks().Violations())
		}
	}
}
