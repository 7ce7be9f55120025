//go:build !race

package dispatcher

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/credit/client"
)

// From the client's call to its answer, through both dispatchers, nothing is allocated.
func TestCallsAllocateNothing(t *testing.T) {
	m := newMemoryPair(t, 10, 4)
	turns := 5000
	if small() {
		turns = 500
	}
	for range 4 * turns {
		m.turn()
	}
	before := m.ended
	allocs := testing.AllocsPerRun(turns, m.turn)
	calls := m.ended - before
	t.Logf("%d calls in %d turns, outcomes %v", calls, turns, m.outcomes)
	if allocs != 0 {
		t.Errorf("%v allocations a turn", allocs)
	}
	if calls < 5*turns || m.outcomes[OutcomeOK] != m.ended {
		t.Errorf("%d calls, %d ok of %d", calls, m.outcomes[OutcomeOK], m.ended)
	}
	for _, d := range []*Dispatcher{m.server, m.client} {
		if err := d.Audit(); err != nil {
			t.Error(err)
		}
	}
}

// TestSchemesAllocateNothing is the same under each scheme, with its half at the client, whatever becomes of the calls.
func TestSchemesAllocateNothing(t *testing.T) {
	for _, name := range baseline.Names() {
		m := newSchemePair(t, name, 10, 4)
		for range 4000 {
			m.turn()
		}
		before := m.outcomes[OutcomeOK]
		if allocs := testing.AllocsPerRun(2000, m.turn); allocs != 0 {
			t.Errorf("%s: %v allocations a turn", name, allocs)
		}
		if m.outcomes[OutcomeOK] == before {
			t.Errorf("%s: no call was answered meanwhile; outcomes %v", name, m.outcomes)
		}
	}
}

// From the call to its answer nothing is allocated with everything switched on, nor by retries and hedges.
func TestGuardedCallsAllocateNothing(t *testing.T) {
	m := newMemoryPair(t, 10, 4)
	g := client.NewGuard(client.GuardConfig{
		Hedge: client.HedgeConfig{Percentile: 0.01, Min: 1}, Throttle: client.ThrottleConfig{K: 1e9}, Breaker: client.BreakerConfig{Failures: 2}, // or calls that are refused at once would recurse
		Retry: client.RetryConfig{Budget: client.BudgetConfig{Ratio: 1}, Timeout: 1},
	})
	for range 100 { // until each call was outstanding once
		for _, s := range m.client.caller.sessions {
			if s != nil {
				m.client.SetGuard(s, g)
				s.out.Each(func(c *Call) { c.Repeatable = true })
			}
		}
		m.turn()
	}
	for range 4000 {
		m.turn()
	}
	before := m.client.stats
	allocs := testing.AllocsPerRun(1000, m.turn)
	if now := m.client.stats; allocs != 0 || now.Hedges+now.AttemptCounts.Retries == before.Hedges+before.AttemptCounts.Retries || m.ended == 0 {
		t.Errorf("%v allocations a turn, %+v", allocs, now.AttemptCounts)
	}
}
