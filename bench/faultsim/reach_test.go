//go:build !race

package faultsim

import "testing"

// A swarm that does not do what it is drawn to do finds nothing.
func TestFaultsReachEverything(t *testing.T) {
	outcomes, dropped, kinds := map[string]uint64{}, map[string]uint64{}, map[Kind]int{}
	killed := uint64(0)
	err := Swarm{First: 1, Count: 800, Parallel: 2, Each: func(r *Result) bool {
		for name, n := range r.Outcomes {
			outcomes[name] += n
		}
		for name, n := range r.Dropped {
			dropped[name] += n
		}
		for _, f := range Draw(r.Seed).Faults {
			kinds[f.Kind]++
		}
		killed += r.Killed
		return true
	}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"ok", "rejected", "expired", "deadline", "peer lost", "cancelled", "queue full", "closed", "throttled",
	} {
		if outcomes[name] == 0 {
			t.Errorf("no call was %s: %v", name, outcomes)
		}
	}
	for name := range types {
		if dropped[name] == 0 {
			t.Errorf("no %s was dropped: %v", name, dropped)
		}
	}
	if len(kinds) != 11 || killed == 0 {
		t.Errorf("faults %v, %d calls of hosts that were killed", kinds, killed)
	}
}
