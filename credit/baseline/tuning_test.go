package baseline

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

func TestTuningIsRefused(t *testing.T) {
	for _, bad := range []Tuning{
		{Alpha: -1}, {Beta: math.NaN()}, {Alpha: math.Inf(1)}, {Target: -1}, {DropThreshold: -1}, {NoCredits: true, NoSpeculation: true},
		{DAGOR: DAGORTuning{Alpha: 1}}, {DAGOR: DAGORTuning{Threshold: -1}}, {SEDA: SEDATuning{AdjD: 1}}, {SEDA: SEDATuning{AdjI: -1}},
	} {
		if _, err := Lookup(BreakwaterArtifact, Params{Tuning: bad}); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// steps updates a pool with these delays, one period apart.
func steps(c credit.Controller, delays ...time.Duration) uint64 {
	c.Resize(1000)
	now := clock.Time(1)
	for _, d := range delays {
		now = now.Add(time.Second)
		c.Update(now, credit.Signal{Delay: d}, credit.Load{Issued: 1 << 40, Active: true})
	}
	return c.Pool()
}

func TestTuningOfTheLaws(t *testing.T) {
	up := make([]time.Duration, 99) // from 10 workers by ten a step
	tuning := Tuning{Alpha: 0.01, Beta: 0.1, Target: 50 * us}
	for name, afterwards := range map[string]uint64{BreakwaterArtifact: 900, BreakwaterPaper: 900} {
		s := must(t, name, Params{Workers: 10, Tuning: tuning})
		if s.TargetDelay != 50*us || s.DropThreshold != 100*us || s.NewController().Target() != 50*us {
			t.Errorf("%s: target %v, door %v", name, s.TargetDelay, s.DropThreshold)
		}
		c := s.NewController()
		if got := steps(c, up...); got != 1000 {
			t.Errorf("%s grew to %d, want 1000", name, got)
		}
		if got := steps(s.NewController(), append(up, 100*us)...); got != afterwards {
			t.Errorf("%s fell to %d, want %d", name, got, afterwards)
		}
		if !c.Admit(credit.Arrival{Delay: 100 * us}) || c.Admit(credit.Arrival{Delay: 100*us + 1}) {
			t.Errorf("%s: the door", name)
		}
	}
	if s := must(t, Stillwater, Params{Tuning: Tuning{DropThreshold: 99 * us}}); s.DropThreshold != 99*us || s.TargetDelay != 80*us {
		t.Errorf("stillwater: target %v, door %v", s.TargetDelay, s.DropThreshold)
	}
}

func TestTuningOfRivals(t *testing.T) {
	d := must(t, DAGOR, Params{Tuning: Tuning{DAGOR: DAGORTuning{Threshold: 50 * us, Alpha: 0.5, Beta: 0.25}}}).NewController().(*dagor)
	if d.Target() != 50*us || d.decrease != 0.5 || d.increase != 32 {
		t.Errorf("DAGOR: %+v", d)
	}
	s := must(t, SEDA, Params{Clients: 100, Tuning: Tuning{SEDA: SEDATuning{Target: 60 * us, AdjI: 7, AdjD: 2}}}).NewPolicy().(*seda)
	if s.target != float64(60*us) || s.increase != 7 || s.decrease != 2 {
		t.Errorf("SEDA: target %v, steps %v and %v", s.target, s.increase, s.decrease)
	}
}

// TestParts takes each law with credits apart.
func TestParts(t *testing.T) {
	late := credit.Arrival{Delay: time.Hour}
	for _, name := range []string{Stillwater, BreakwaterPaper, BreakwaterArtifact} {
		whole := must(t, name, Params{Workers: 10})
		doorless := must(t, name, Params{Workers: 10, Tuning: Tuning{NoAQM: true}}).NewController()
		if whole.Asking || whole.NewController().Admit(late) || !doorless.Admit(late) || doorless.Pool() != 10 {
			t.Errorf("%s without AQM: pool %d", name, doorless.Pool())
		}
		if i, ok := credit.As[credit.Inviter](doorless); (name == Stillwater) != (ok && i.Invited(0) > 0) {
			t.Errorf("%s without AQM: whether it invites is not the law's to say", name)
		}
		s := must(t, name, Params{Workers: 10, Tuning: Tuning{NoCredits: true}})
		c := s.NewController()
		c.Resize(3)
		if c.Admit(late) || !c.Admit(credit.Arrival{}) || c.Pool() != 3*uint64(s.Slots) || s.NewPolicy != nil || c.Target() != whole.TargetDelay {
			t.Errorf("%s without credits: pool %d", name, c.Pool())
		}
		s = must(t, name, Params{Workers: 10, Tuning: Tuning{NoSpeculation: true}})
		c = s.NewController()
		c.Resize(1000)
		if !s.Asking || !s.NewPolicy().Limits().Ask || c.Admit(late) {
			t.Errorf("%s without speculation does not ask", name)
		}
		for _, h := range []struct {
			credit.Holding
			want uint64
		}{
			{credit.Holding{Issued: 5, Window: 1}, 0},             // no demand, no credit, though the pool has some
			{credit.Holding{Issued: 5, Window: 1, Demand: 2}, 2},  // all that is asked for
			{credit.Holding{Issued: 5, Window: 1, Demand: 20}, 6}, // as far as the pool goes
			{credit.Holding{Issued: 10, Window: 1, Demand: 2}, 1},
			{credit.Holding{Issued: 20, Window: 3, Demand: 9}, 2}, // more is issued than there is
			{credit.Holding{Issued: 20, Demand: 9}, 0},
		} {
			if got := c.Window(h.Holding); got != h.want {
				t.Errorf("%s asking, %+v: %d, want %d", name, h.Holding, got, h.want)
			}
		}
	}
	if l := must(t, BreakwaterArtifact, Params{Tuning: Tuning{NoSpeculation: true}}).NewPolicy().Limits(); l.Expiry != 40*us || l.Waiting != artifactQueue {
		t.Errorf("limits of the artifact's client that asks: %+v", l)
	}
}
