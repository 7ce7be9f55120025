package baseline

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

func newDagor(t *testing.T) (*dagor, *stepped) {
	c := must(t, DAGOR, Params{}).NewController().(*dagor) // threshold 70 us
	return c, &stepped{c, at(0), 10 * us}
}

func TestDAGORSmoothing(t *testing.T) {
	c, s := newDagor(t)
	want := 0.0
	for _, delay := range []time.Duration{100 * us, 100 * us, 0, 50 * us, -1, 300 * us} {
		s.update(delay, credit.Load{})
		if want = 0.8*want + 0.2*float64(max(delay, 0)); math.Abs(c.delay-want) > 1e-6 {
			t.Fatalf("smoothed %v, want %v", c.delay, want)
		}
	}
	if c.Update(s.now.Add(10*us-1), credit.Signal{RTT: time.Second}, credit.Load{}) || !c.UpdateDue(s.now.Add(10*us)) {
		t.Error("the period is not 10 us")
	}
}

func TestDAGORCut(t *testing.T) {
	c, s := newDagor(t)
	near := func(what string, want float64) {
		t.Helper()
		if math.Abs(c.cut-want) > 1e-9 || c.Level() != uint8(want) {
			t.Fatalf("%s: cut %v, level %d; want %v", what, c.cut, c.Level(), want)
		}
	}
	near("at the start", 32)
	s.update(0, credit.Load{Arrivals: 1}) // never moved before, so it is long ago
	near("the first arrival", 33.28)
	for range 99 {
		s.update(0, credit.Load{Arrivals: 19})
	}
	near("990 us later, 1881 requests", 33.28)
	s.update(0, credit.Load{Arrivals: 0})
	near("1 ms", 34.56)
	for range 99 {
		s.update(0, credit.Load{Arrivals: 20})
	}
	near("1980 requests", 34.56)
	s.update(0, credit.Load{Arrivals: 20})
	near("2000 requests", 35.84)
	for range 50 {
		s.update(0, credit.Load{Arrivals: 39})
	}
	near("1950 of the next", 35.84)
	s.update(0, credit.Load{Arrivals: 50})
	near("2000 requests after 510 us", 37.12)
	for range 1000 {
		s.update(0, credit.Load{})
	}
	near("10 ms without any", 37.12)
	c.delay = 70_000 / 0.8
	s.update(0, credit.Load{Arrivals: 1})
	near("at the threshold", 37.12*0.95)
	for range 200 {
		s.now = s.now.Add(time.Millisecond)
		s.update(time.Millisecond, credit.Load{Arrivals: 1})
	}
	near("the lower end", 1)
	for range 200 {
		s.now = s.now.Add(time.Millisecond)
		s.update(0, credit.Load{Arrivals: 1})
	}
	near("the upper end", 127)
}

func TestDAGORDoor(t *testing.T) {
	c, _ := newDagor(t)
	for _, x := range []struct {
		cut      float64
		priority uint8
		want     bool
	}{
		{32, 32, true}, {32, 33, false}, {32.9, 33, false}, {1, 1, true}, {1, 2, false}, {127, 127, true}, {127, 128, false},
		{64, 0, true}, {63.9, 0, false},
	} {
		c.cut = x.cut
		if got := c.Admit(credit.Arrival{Delay: time.Hour, Priority: x.priority}); got != x.want {
			t.Errorf("priority %d, cut %v: %v", x.priority, x.cut, got)
		}
	}
	if c.Resize(3); c.Window(credit.Holding{}) != credit.DefaultSlots || c.Pool() != 3*credit.DefaultSlots {
		t.Error("not all slots")
	}
}

func TestDAGORClient(t *testing.T) {
	s := must(t, DAGOR, Params{Seed: seedtest.Seed(t)})
	p := s.NewPolicy()
	if got, ok := p.Admit(1, 128); got != 128 || !ok {
		t.Error("something is dropped before anything was heard")
	}
	p.Answered(1, client.Answer{Level: 40, Rejected: true})
	p.Answered(2, client.Answer{}) // says nothing
	for _, x := range []struct {
		priority uint8
		ok       bool
	}{{40, true}, {41, false}, {1, true}} {
		if got, ok := p.Admit(3, x.priority); got != x.priority || ok != x.ok {
			t.Errorf("priority %d: %d, %v", x.priority, got, ok)
		}
	}
	if ok, _ := p.CanSend(4, 1000); !ok || p.Limits() != (client.Limits{}) {
		t.Error("it holds something back")
	}
	// Who has no priority gets one of 128, each as often as the next.
	var drawn [256]int
	const draws = 128 * 1000
	for range draws {
		priority, ok := p.Admit(5, 0)
		if ok != (priority <= 40) {
			t.Fatalf("priority %d: %v", priority, ok)
		}
		drawn[priority]++
	}
	for priority, n := range drawn {
		if inside := priority >= 1 && priority <= 128; inside != (n > 0) || inside && (n < 800 || n > 1200) {
			t.Errorf("priority %d was drawn %d times of %d", priority, n, draws)
		}
	}
}

// TestPoliciesDiffer: the clients of one scheme do not draw the same, and another scheme with the same seed draws as the first.
func TestPoliciesDiffer(t *testing.T) {
	draw := func(p client.Policy) (all [8]uint8) {
		for i := range all {
			all[i], _ = p.Admit(1, 0)
		}
		return all
	}
	s := must(t, DAGOR, Params{Seed: 7})
	first, second := draw(s.NewPolicy()), draw(s.NewPolicy())
	if first == second {
		t.Error("two clients draw the same")
	}
	if again := must(t, DAGOR, Params{Seed: 7}); draw(again.NewPolicy()) != first || draw(again.NewPolicy()) != second {
		t.Error("the same seed draws something else")
	}
	if draw(must(t, DAGOR, Params{Seed: 8}).NewPolicy()) == first {
		t.Error("another seed draws the same")
	}
}
