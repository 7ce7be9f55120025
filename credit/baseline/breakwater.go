package baseline

import "github.com/stillwater-rpc/stillwater/credit"

// makePaper is Breakwater as the paper has it: what package credit changes is set back, and there is no floor, which only the artifact
// has.
func makePaper(p Params, s *Scheme) {
	s.Deadlines = true // its clients expire what has waited for too long
	config := credit.BreakwaterConfig{
		Alpha:         credit.DefaultAlpha, // section 5, as the next three
		Beta:          credit.DefaultBeta,
		TargetDelay:   s.TargetDelay,   // 0.4 SLO
		DropThreshold: s.DropThreshold, // twice the target
		Workers:       p.Workers,
		Slots:         p.Slots,
		Headroom:      -1, // section 3: the pool grows whenever the delay is below the target,
		CatchUp:       -1, // from wherever it fell to
		Recovery:      -1, // by the same small step always
		NoFloor:       true,
		Unfair:        true, // and whoever is answered loses
	}
	s.NewController = func() credit.Controller { return credit.NewBreakwater(config) }
}

// makeStillwater is ours.
func makeStillwater(p Params, s *Scheme) {
	s.Deadlines = true
	config := credit.BreakwaterConfig{
		TargetDelay: s.TargetDelay, DropThreshold: s.DropThreshold, Workers: p.Workers, Slots: p.Slots, NoFloor: p.NoFloor,
	}
	s.NewController = func() credit.Controller { return credit.NewBreakwater(config) }
}
