package baseline

import (
	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
)

// CoDel's settings. Those of figure 1 of Breakwater's paper are not known; these are ours, as parts of the SLO. The interval, by the RFC a usual
// round trip, is service + RTT, a tenth of the SLO: callers that do not slow down are dropped fast enough only with one as short as
// that. The target is what served most within the SLO, in a model without costs of packets (1,000 clients, 10 workers, 10 us, at 1, 1.6 and 2 times
// capacity: 99, 100 and 98 %; with 0.4 for the target 99, 100 and 90 %, with an interval of half the SLO 99, 5 and 3 %).
const (
	codelTargetShare   = 0.2
	codelIntervalShare = 0.1
)

// codel is RFC 8289 at the server's request queue, without any other control. Its Target is CoDel's.
type codel struct {
	uncontrolled
	admit.CoDel
}

// uncontrolled is a None whose Target gives way to CoDel's, which is nearer to the surface.
type uncontrolled struct{ *credit.None }

func makeCoDel(p Params, s *Scheme) {
	target, interval := p.share(codelTargetShare), p.share(codelIntervalShare)
	s.NewController = func() credit.Controller {
		return &codel{uncontrolled: uncontrolled{credit.NewNone(p.Slots)}, CoDel: admit.NewCoDel(target, interval)}
	}
}
