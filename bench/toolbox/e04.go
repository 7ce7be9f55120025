package toolbox

import (
	"context"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/credit/admit"
)

// e4 is CoDel.
func e4() *Experiment {
	return &Experiment{
		ID: "E4", Title: "CoDel: a burst and a standing queue",
		About: "One worker, 1 ms each. A burst of 100 to 500 at once; a queue of 20 that stays, since one more comes each ms; and 1,500 a second of callers that do not slow down, for 60 s. CoDel: target\n" +
			"5 ms, interval 100 ms (RFC 8289). Capped: the same, and nobody waits for longer than 500 ms. The peak of what does not slow down is the square of its excess times the interval.\n" +
			"Queue: what waits at the end of 10 s.",
		Figures: []string{figRefusals, figQueueMax, figQueueEnd},
		Jobs:    e4Jobs, Judge: e4Judge,
	}
}

const (
	codelService  = time.Millisecond
	codelTarget   = 5 * time.Millisecond
	codelInterval = 100 * time.Millisecond
	codelCap      = 500 * time.Millisecond
	codelStanding = 20
	codelLength   = 10 * time.Second
	codelLong     = time.Minute
	codelExcess   = 1500
	armCoDel      = "CoDel"
	armCapped     = "CoDel, capped"
	standing      = "standing queue of 20"
	stubborn      = "1,500/s"
)

func codelGate(arm string) admit.GateConfig {
	c := open(1)
	if arm != armNone {
		c.CoDelTarget, c.CoDelInterval = codelTarget, codelInterval
	}
	if arm == armCapped {
		c.MaxWait = codelCap
	}
	return c
}

func e4Jobs(Size) (all []job) {
	add := func(at, arm string, burst int, gap, length time.Duration) {
		all = append(all, job{At: at, Arm: arm, Seeds: 1, Play: func(ctx context.Context, seed uint64) (Sample, error) {
			return playCoDel(ctx, arm, burst, gap, length, seed)
		}})
	}
	for _, burst := range []int{100, 106, 200, 500} {
		add(fmt.Sprintf("burst of %d", burst), armCoDel, burst, 0, codelLength)
	}
	for _, arm := range []string{armNone, armCoDel} {
		add(standing, arm, codelStanding, codelService, codelLength)
	}
	for _, arm := range []string{armNone, armCoDel, armCapped} {
		add(stubborn, arm, 0, time.Second/codelExcess, codelLong)
	}
	return all
}

func playCoDel(ctx context.Context, arm string, burst int, gap, length time.Duration, seed uint64) (Sample, error) {
	w := stage(seed)
	g := &gated{w: w, gate: admit.NewGate(codelGate(arm)), service: func() time.Duration { return codelService }}
	w.At(0, func() {
		for range burst {
			g.arrive(nil)
		}
	})
	most := 0
	var arrive func()
	arrive = func() {
		g.arrive(nil)
		most = max(most, g.gate.Waiting())
		w.At(w.Elapsed()+gap, arrive)
	}
	if gap > 0 {
		w.At(gap, arrive)
	} else {
		most = burst - 1
	}
	if err := simulate.Advance(ctx, w, length); err != nil {
		return Sample{}, err
	}
	return Sample{Figures: map[string]float64{
		figRefusals: float64(g.refused), figQueueMax: float64(most), figQueueEnd: float64(g.gate.Waiting()),
	}}, g.gate.Audit()
}

func e4Judge(t *Table) []Check {
	row := func(at, arm string) []*Row { return []*Row{t.Row(at, arm)} }
	excess := codelExcess - 1/codelService.Seconds()
	peak := excess * excess * codelInterval.Seconds() * codelInterval.Seconds()
	return []Check{
		bound("a burst of 106: refused", row("burst of 106", armCoDel), figRefusals, 0, false),
		bound("a burst of 200: refused", row("burst of 200", armCoDel), figRefusals, 1, false),
		bound("a burst of 500: refused", row("burst of 500", armCoDel), figRefusals, 7, false),
		bound("a standing queue is drained: at the end", row(standing, armCoDel), figQueueEnd, 5, false),
		bound("who does not slow down, capped: queue", row(stubborn, armCapped), figQueueMax, codelExcess*codelCap.Seconds()+1, false),
		bound("CoDel alone is too slow for who does not slow down: queue", row(stubborn, armCoDel), figQueueMax, 0.8*peak, true),
		bound("the control arm keeps its standing queue: at the end", row(standing, armNone), figQueueEnd, codelStanding-1, true),
		bound("the control arm collapses: queue at the end", row(stubborn, armNone), figQueueEnd, 0.9*excess*codelLong.Seconds(), true),
	}
}
