package baseline

import "github.com/stillwater-rpc/stillwater/credit"

// makePaper is Breakwater as the paper has it: what package credit changes is set back, and there is no floor, which only the artifact
// has.
func makePaper(p Params, s *Scheme) {
	s.Deadlines = true // its clients expire what has waited for too long
	config := credit.BreakwaterConfig{
		Alpha:         p.Alpha, // section 5, as the next three; zero is what was published
		Beta:          p.Beta,
		TargetDelay:   s.TargetDelay,   // 0.4 SLO
		DropThreshold: s.DropThreshold, // twice the target
		Workers:       p.Workers,
		Slots:         p.Slots,
		Headroom:      -1, // section 3: the pool grows whenever the delay is below the target,
		CatchUp:       -1, // from wherever it fell to
		NoFloor:       true,
	}
	s.NewController = func() credit.Controller { return credit.NewBreakwater(config) }
}

// makeStillwater is ours.
func makeStillwater(p Params, s *Scheme) {
	s.Deadlines = true
	config := credit.BreakwaterConfig{
		Alpha: p.Alpha, Beta: p.Beta, TargetDelay: s.TargetDelay, DropThreshold: s.DropThreshold, Workers: p.Workers, Slots: p.Slots, NoFloor: p.NoFloor,
	}
	s.NewController = func() credit.Controller { return credit.NewBreakwater(config) }
}
