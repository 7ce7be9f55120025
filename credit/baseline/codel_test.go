package baseline

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/credit"
)

// TestCoDel has the settings that are ours, and its two doors: none on arrival, and CoDel's where a request is taken.
func TestCoDel(t *testing.T) {
	c := must(t, CoDel, Params{}).NewController().(*codel)
	if c.Target() != 40*us || c.Interval() != 20*us {
		t.Fatalf("target %v, interval %v, for an SLO of 200 us", c.Target(), c.Interval())
	}
	if !c.Admit(credit.Arrival{Now: at(0), Delay: 1000 * us}) {
		t.Error("refused on arrival")
	}
	var dequeuer credit.Dequeuer = c
	if !dequeuer.Dequeue(at(0), 41*us, 5) || dequeuer.Dequeue(at(20*us), 41*us, 5) {
		t.Error("not refused after an interval above the target, or before")
	}
}
