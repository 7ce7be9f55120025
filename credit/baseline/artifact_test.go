package baseline

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// at is an instant so long after a beginning.
func at(d time.Duration) clock.Time { return clock.Time(1_000_000_000).Add(d) }

// stepped updates a controller once per given period.
type stepped struct {
	credit.Controller
	now    clock.Time
	period time.Duration
}

func (s *stepped) update(delay time.Duration, load credit.Load) {
	s.now = s.now.Add(s.period)
	s.Update(s.now, credit.Signal{Delay: delay}, load)
}

func TestArtifactPool(t *testing.T) {
	c := must(t, BreakwaterArtifact, Params{Workers: 10}).NewController().(*artifact)
	s := &stepped{c, at(0), 10 * us}
	if c.Pool() != 10 {
		t.Fatalf("the first pool is %d, not the cores", c.Pool())
	}
	c.Resize(300) // an increase is 0.3 of a credit
	for i, want := range []uint64{10, 10, 10, 11, 11, 11, 12} {
		if s.update(0, credit.Load{}); c.Pool() != want {
			t.Fatalf("after %d increases: %d, want %d", i+1, c.Pool(), want)
		}
	}
	if c.carry < 0.09 || c.carry > 0.11 {
		t.Fatalf("carried: %v", c.carry)
	}
	if s.update(80*us, credit.Load{}); c.Pool() != 12 || c.carry != 0 {
		t.Fatalf("at the target the pool is %d, and %v is carried", c.Pool(), c.carry)
	}
	c.pool = 1000
	for _, x := range []struct {
		delay time.Duration
		want  uint64
	}{{80*us + 1, 999}, {160 * us, 979}, {math.MaxInt64, 489}, {time.Hour, 244}} {
		if s.update(x.delay, credit.Load{}); c.Pool() != x.want {
			t.Errorf("at %v: %d, want %d", x.delay, c.Pool(), x.want)
		}
	}
	c.Resize(2)
	if c.Pool() != 128 {
		t.Errorf("two sessions of 64 slots: %d", c.Pool())
	}
	if c.Resize(0); c.Pool() != 10 {
		t.Errorf("nobody left: %d", c.Pool())
	}
}

// TestArtifactPeriodIsFixed: the measured round trip does not matter.
func TestArtifactPeriodIsFixed(t *testing.T) {
	c := must(t, BreakwaterArtifact, Params{}).NewController()
	signal := credit.Signal{RTT: time.Second}
	if !c.Update(at(0), signal, credit.Load{}) || c.Update(at(10*us-1), signal, credit.Load{}) || !c.Update(at(10*us), signal, credit.Load{}) {
		t.Error("the period is not 10 us")
	}
}

func TestArtifactWindowAndDoor(t *testing.T) {
	s := must(t, BreakwaterArtifact, Params{})
	c := s.NewController().(*artifact)
	c.Resize(10)
	c.pool = 100
	for _, x := range []struct {
		name string
		h    credit.Holding
		want uint64
	}{
		{"below the pool", credit.Holding{Issued: 50, Window: 3, Pending: 2, Demand: 4}, 2 + 4 + 5},
		{"above it", credit.Holding{Issued: 101, Window: 3, Pending: 2, Demand: 4}, 2},
		{"the floor", credit.Holding{Issued: 101, Window: 1}, 1},
		{"no floor for a rejection", credit.Holding{Issued: 101, Window: 1, Rejected: true}, 0},
	} {
		if got := c.Window(x.h); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
	}
	if !c.Admit(credit.Arrival{Delay: 160 * us}) || c.Admit(credit.Arrival{Delay: 160*us + 1}) {
		t.Error("the door")
	}
	if want := (client.Limits{Waiting: 16, DropOldest: true, Expiry: 10 * us}); s.NewPolicy().Limits() != want || s.Slots != 64 {
		t.Errorf("limits %+v, %d slots", s.NewPolicy().Limits(), s.Slots)
	}
	if quiet := must(t, BreakwaterArtifact, Params{Tuning: Tuning{Quiet: true}}); !quiet.NewPolicy().Limits().Quiet {
		t.Error("not quiet")
	}
}

// TestArtifactTwin compares the pool at random with the law in exact thousandths of a credit, whose increases are whole there.
func TestArtifactTwin(t *testing.T) {
	rng := seedtest.Rand(t)
	const cores = 4
	c := must(t, BreakwaterArtifact, Params{Workers: cores}).NewController().(*artifact)
	s := &stepped{c, at(0), 10 * us}
	pool, carried, sessions, early := 4, 0, 0, 0
	for i := range 20_000 {
		if rng.IntN(100) == 0 {
			sessions = rng.IntN(4000)
			c.Resize(uint64(sessions))
			pool = max(min(pool, 64*sessions), cores)
		}
		delay := time.Duration(rng.IntN(200_000))
		if rng.IntN(4) > 0 {
			delay = 0
		}
		s.update(delay, credit.Load{})
		if delay < 80*us {
			carried += sessions
			pool += carried / 1000
			carried %= 1000
		} else {
			carried = 0
			factor := 1 - 0.02*float64(delay-80*us)/float64(80*us)
			pool = int(float64(pool) * max(factor, 0.5))
		}
		pool = max(min(pool, 64*sessions), cores)
		// The carry is a sum of floats: it may come to a whole credit one update sooner or later.
		if diff := int(c.Pool()) - pool; diff < -1 || diff > 1 {
			t.Fatalf("step %d: %d, want %d", i, c.Pool(), pool)
		} else if diff != 0 {
			early++
			pool, carried = int(c.Pool()), int(math.Round(c.carry*1000))
		}
	}
	if early > 100 {
		t.Errorf("%d increases came at another time", early)
	}
}
