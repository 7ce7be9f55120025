//go:build !race

package baseline

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
)

// TestNoAllocations does with each scheme what a request and an update cost.
func TestNoAllocations(t *testing.T) {
	for _, name := range Names() {
		s := must(t, name, Params{})
		c, now := s.NewController(), at(0)
		c.Resize(100)
		dequeuer, _ := c.(credit.Dequeuer)
		var policy client.Policy
		if s.NewPolicy != nil {
			policy = s.NewPolicy()
		}
		n := testing.AllocsPerRun(1000, func() {
			now = now.Add(20 * us)
			c.Update(now, credit.Signal{Delay: 90 * us, RTT: 10 * us}, credit.Load{Issued: 50, Active: true, Arrivals: 30, Answers: 20})
			c.Admit(credit.Arrival{Now: now, Delay: 90 * us, Priority: 40})
			c.Window(credit.Holding{Issued: 50, Window: 2, Pending: 1})
			if dequeuer != nil {
				dequeuer.Dequeue(now, 100*us, 3)
			}
			if policy != nil {
				policy.Admit(now, 0)
				policy.CanSend(now, 1)
				policy.Sent(now)
				policy.Answered(now, client.Answer{Latency: time.Duration(now.Sub(at(0))) % (300 * us), Level: 50})
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
