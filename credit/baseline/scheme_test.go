package baseline

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
)

const us = time.Microsecond

// must looks a scheme up.
func must(t testing.TB, name string, p Params) Scheme {
	t.Helper()
	s, err := Lookup(name, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLookup(t *testing.T) {
	for _, name := range Names() {
		s := must(t, name, Params{})
		if s.Name != name || s.NewController == nil || s.Slots < 1 || s.TargetDelay <= 0 || s.DropThreshold < s.TargetDelay {
			t.Errorf("%s: %+v", name, s)
		}
		policy := name == BreakwaterArtifact || name == DAGOR || name == SEDA || name == Window
		if (s.NewPolicy != nil) != policy {
			t.Errorf("%s has a policy: %v", name, !policy)
		}
		if deadlines := name == Stillwater || name == BreakwaterPaper; s.Deadlines != deadlines {
			t.Errorf("%s makes use of deadlines: %v", name, s.Deadlines)
		}
	}
	if s := must(t, "", Params{}); s.Name != Stillwater {
		t.Errorf("no name is %s", s.Name)
	}
	_, err := Lookup("fair", Params{})
	if !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	for _, name := range append(Names(), `"fair"`) {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not say %s", err, name)
		}
	}
	for _, p := range []Params{
		{Service: -1}, {RTT: -1}, {SLO: -1}, {Clients: -1}, {Workers: -1}, {Slots: -1}, {Shape: "square"},
	} {
		if _, err := Lookup(None, p); err == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
}

// TestPublishedDelays are the numbers of the artifact, for the set-ups that they were published for, and in proportion for another SLO.
func TestPublishedDelays(t *testing.T) {
	for _, c := range []struct {
		service, slo      time.Duration
		target, threshold time.Duration // of Breakwater's artifact
		dagor             [3]time.Duration
		seda              time.Duration
	}{
		{1 * us, 0, 45 * us, 90 * us, [3]time.Duration{20 * us, 30 * us, 30 * us}, 50 * us},
		{10 * us, 0, 80 * us, 160 * us, [3]time.Duration{80 * us, 70 * us, 60 * us}, 80 * us},
		{100 * us, 0, 500 * us, 1000 * us, [3]time.Duration{500 * us, 500 * us, 500 * us}, 720 * us},
		{10 * us, 400 * us, 160 * us, 320 * us, [3]time.Duration{160 * us, 140 * us, 120 * us}, 160 * us},
		{20 * us, 0, 120 * us, 240 * us, [3]time.Duration{120 * us, 105 * us, 90 * us}, 120 * us},
	} {
		p := Params{Service: c.service, SLO: c.slo}
		s := must(t, BreakwaterArtifact, p)
		if s.TargetDelay != c.target || s.DropThreshold != c.threshold || s.NewController().Target() != c.target {
			t.Errorf("artifact at %v: %v, %v; want %v, %v", c.service, s.TargetDelay, s.DropThreshold, c.target, c.threshold)
		}
		for i, shape := range []string{Bimodal, Exponential, Constant} {
			p.Shape = shape
			if got := must(t, DAGOR, p).NewController().Target(); got != c.dagor[i] {
				t.Errorf("DAGOR at %v, %s: %v, want %v", c.service, shape, got, c.dagor[i])
			}
		}
		if got := must(t, SEDA, p).NewPolicy().(*seda).target; got != float64(c.seda) {
			t.Errorf("SEDA at %v: %v, want %v", c.service, got, c.seda)
		}
	}
}

// TestOpenDoor: where the clients do the work, the server does none.
func TestOpenDoor(t *testing.T) {
	for _, name := range []string{None, SEDA, Window} {
		c := must(t, name, Params{Slots: 32}).NewController()
		c.Resize(10)
		if c.Pool() != 320 || c.Target() != 0 || !c.Admit(credit.Arrival{Delay: time.Hour, Priority: 128}) {
			t.Errorf("%s: pool %d", name, c.Pool())
		}
	}
}

// TestAggressiveness: zero is what was published, and another increase shows in the first update.
func TestAggressiveness(t *testing.T) {
	for _, name := range []string{Stillwater, BreakwaterPaper} {
		var pools [2]uint64
		for i, alpha := range []float64{0, 0.5} {
			s, err := Lookup(name, Params{Tuning: Tuning{Alpha: alpha}})
			if err != nil {
				t.Fatal(err)
			}
			c := s.NewController()
			c.Resize(100)
			c.Update(1, credit.Signal{}, credit.Load{Active: true, Issued: c.Pool(), Pending: 100})
			pools[i] = c.Pool()
		}
		if pools[0] != 2 || pools[1] != 51 {
			t.Errorf("%s: pools %v after an update with 100 clients, want 2 and 51", name, pools)
		}
	}
}
