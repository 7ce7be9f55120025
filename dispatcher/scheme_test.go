package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

// TestSchemes has each scheme through an overload and bad weather: every call has one outcome, the books are whole, and afterwards every session
// is served.
func TestSchemes(t *testing.T) {
	for _, name := range baseline.Names() {
		t.Run(name, func(t *testing.T) {
			k := newSoak(t, seedtest.Seed(t), weather{
				scheme: name, loss: 0.02, duplicate: 0.05, reorder: 0.1, load: 2, length: 10 * time.Millisecond, deadline: time.Millisecond,
			})
			k.run()
			k.check(t)
			k.served(t)
			k.check(t)
			k.collapse(t)
			var all Stats
			for _, n := range k.clients {
				for o, count := range n.d.stats.Outcomes {
					all.Outcomes[o] += count
				}
			}
			if all.Outcomes[OutcomeOK] == 0 {
				t.Error("nobody was served in the overload")
			}
			if throttled := all.Outcomes[OutcomeThrottled] > 0; throttled != (name == baseline.DAGOR) {
				t.Errorf("%d calls were refused at the client", all.Outcomes[OutcomeThrottled])
			}
			t.Logf("outcomes %v", all.Outcomes)
		})
	}
}

// served makes calls on each session in fair weather until one is answered: after a pause that is long enough for SEDA's least rate, of a rank that
// DAGOR always lets in, and again where the first of a session only brings it a credit, as in the artifact, whose clients do not wait for one.
func (k *soak) served(t *testing.T) {
	t.Helper()
	k.w.run(k.w.now.Add(600 * time.Millisecond))
	for i, s := range k.sessions {
		ok := false
		for try := 0; try < 5 && !ok; try++ {
			k.marks++
			c := &call{}
			c.Session, c.Method, c.Payload, c.Priority = s, wire.MethodOf("work"), marked(k.marks), 1
			c.Done = func(*Call) {
				c.done++
				c.at = k.w.now
			}
			k.calls = append(k.calls, c)
			k.owner[i].d.Submit(k.w.now, &c.Call)
			k.owner[i].turn()
			k.w.run(k.w.now.Add(2 * time.Millisecond))
			ok = c.Outcome == OutcomeOK
		}
		if !ok {
			t.Errorf("session %d is not served any more", i)
		}
	}
}
