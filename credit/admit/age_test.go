package admit

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// learnt has a mean of 10 us and a p99 near to 40.
func learnt() *Age {
	a := &Age{}
	a.mean.Sample(10 * us)
	a.tail.Sample(40 * us)
	return a
}

func TestAge(t *testing.T) {
	now := at(0)
	for _, c := range []struct {
		name       string
		left, wait time.Duration // left 0: no deadline
		admit      bool
	}{
		{"no deadline", 0, time.Hour, true},
		{"room for the tail", 100 * us, 60 * us, true},
		{"not for all of it", 100 * us, 60*us + 1, false},
		{"the tail counts half at most", 60 * us, 30 * us, true},
		{"and no less", 60 * us, 30*us + 1, false},
		{"the mean counts whole", 15 * us, 5 * us, true},
		{"just not", 15 * us, 5*us + 1, false},
		{"over", -1, 0, false},
	} {
		a := learnt()
		deadline := now.Add(c.left)
		if c.left == 0 {
			deadline = 0
		}
		if got := a.Admit(now, deadline, c.wait); got != c.admit {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	a := learnt()
	for _, c := range []struct {
		waited, left time.Duration
		others, want bool
	}{
		{0, 10 * us, false, true}, {0, 9 * us, false, false}, {0, 0, false, false}, {500 * us, 10 * us, false, true},
		{500 * us, 40 * us, true, true}, {500 * us, 39 * us, true, false}, // the tail
		{20 * us, 20 * us, true, true}, {22 * us, 20 * us, true, false}, // half of what it brought along
		{0, 10 * us, true, true},
	} {
		if got := a.Start(now, now.Add(-c.waited), now.Add(c.left), c.others); got != c.want {
			t.Errorf("%v left after %v, others %v: %v", c.left, c.waited, c.others, got)
		}
	}
	if !a.Start(now, 0, 0, true) {
		t.Error("without a deadline")
	}
	var unknown Age
	if !unknown.Admit(now, now.Add(1), 0) || unknown.Admit(now, now, 0) || unknown.Start(now, now, now, true) || !unknown.Start(now, now, now.Add(1), true) {
		t.Error("who knows nothing refuses what is over, and nothing else")
	}
}

// TestAgeUnlearns: estimates that are far too high refuse all, which gives no samples, and must not do so for ever.
func TestAgeUnlearns(t *testing.T) {
	var a Age
	for range 1000 {
		a.Sample(time.Second)
	}
	refused := 0
	for now := at(0); !a.Admit(now, now.Add(100*us), 0); now = now.Add(us) {
		if refused++; refused > 1000 {
			t.Fatalf("still expects %v", a.Expected())
		}
	}
}

// TestAgeRareLongOnes: one in twenty takes far longer than anybody waits, so that is the p99; the others are let in.
func TestAgeRareLongOnes(t *testing.T) {
	var a Age
	rng := seedtest.Rand(t)
	admitted := 0
	for i := range 20_000 {
		if rng.IntN(20) == 0 {
			a.Sample(400 * us)
		} else {
			a.Sample(10 * us)
		}
		if now := at(time.Duration(i) * us); a.Admit(now, now.Add(200*us), 20*us) {
			admitted++
		}
	}
	if admitted < 19_900 {
		t.Errorf("%d of 20000 let in, with %v expected and a tail of %v", admitted, a.Expected(), a.Tail())
	}
}

// TestTail: from far below and far above it comes to where one in a hundred lies above, whatever the unit.
func TestTail(t *testing.T) {
	rng := seedtest.Rand(t)
	for _, unit := range []time.Duration{us, 10 * us, time.Millisecond, time.Second} {
		for _, from := range []time.Duration{unit / 100, 100 * unit} {
			var tail Tail
			tail.Sample(from)
			for range 20_000 {
				tail.Sample(time.Duration(rng.ExpFloat64() * float64(unit)))
			}
			// The fraction above it, of the exact distribution, averaged over a stretch: its own swing is the law's.
			var above []float64
			for range 50_000 {
				tail.Sample(time.Duration(rng.ExpFloat64() * float64(unit)))
				above = append(above, math.Exp(-float64(tail.Value())/float64(unit)))
			}
			sum := 0.
			for _, v := range above {
				sum += v
			}
			if mean := sum / float64(len(above)); mean < 0.007 || mean > 0.013 {
				t.Errorf("unit %v from %v: %.2f %% lie above", unit, from, 100*mean)
			}
			if worst := slices.Max(above); worst > 0.1 {
				t.Errorf("unit %v from %v: at some time %.1f %% lay above", unit, from, 100*worst)
			}
		}
	}
	var tail Tail
	for range 100 {
		tail.Sample(0)
	}
	tail.Sample(time.Millisecond)
	for range 300 {
		tail.Sample(time.Millisecond)
	}
	if tail.Value() < time.Millisecond/2 {
		t.Errorf("%v after samples of zero, and then 1 ms", tail.Value())
	}
}

// While requests are served, those that are refused by the mean take a quarter off at the most; where none is, all of it.
func TestAgeDoubtsWithinBounds(t *testing.T) {
	const service = 200 * time.Millisecond
	var a Age
	a.Sample(service)
	for range 100 { // 20 refused for each that is served
		for range 20 {
			a.Refused()
		}
		if got := a.Expected(); got < service*73/100 || got > service {
			t.Fatalf("%v is expected", got)
		}
		a.Sample(service)
	}
	for range 1000 {
		a.Refused()
	}
	if got := a.Expected(); got > service/1000 {
		t.Errorf("%v is expected after long silence", got)
	}
}
