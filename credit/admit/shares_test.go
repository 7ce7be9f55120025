package admit

import (
	"math"
	"testing"
	"time"
)

// near reports whether so many of n are a share, within five standard deviations of chance; the seeds below are fixed, so it is the same on every run.
func near(count, n int, share float64) bool {
	return math.Abs(float64(count)-share*float64(n)) <= 5*math.Sqrt(float64(n)*share*(1-share))+1
}

// TestCoinIgnoresPatterns: of any pattern of callers, such as two methods in turn, each has the share.
func TestCoinIgnoresPatterns(t *testing.T) {
	for _, period := range []int{1, 2, 3, 7, 64} {
		c, hits := coin(1), make([]int, period)
		const n = 50_000
		for i := range n * period {
			if c.within(0.3) {
				hits[i%period]++
			}
		}
		for i, h := range hits {
			if !near(h, n, 0.3) {
				t.Errorf("place %d of %d: %d of %d", i, period, h, n)
			}
		}
	}
	c := coin(1)
	for range 10_000 {
		if c.within(0) || c.within(-1) || !c.within(1) || !c.within(2) {
			t.Fatal("none and all are no matter of chance")
		}
	}
}

func TestShedLowestFirst(t *testing.T) {
	for _, c := range []struct {
		share float64
		want  [levelCount]float64 // refused of each, four levels that are a quarter of the cost each
	}{
		{0, [levelCount]float64{}},
		{0.1, [levelCount]float64{0, 0.4, 0, 0, 0}},
		{0.25, [levelCount]float64{0, 1, 0, 0, 0}},
		{0.3, [levelCount]float64{0, 1, 0.2, 0, 0}},
		{0.6, [levelCount]float64{0, 1, 1, 0.4, 0}},
		{0.9, [levelCount]float64{0, 1, 1, 1, 0.6}},
		{1, [levelCount]float64{0, 1, 1, 1, 1}},
		{7, [levelCount]float64{0, 1, 1, 1, 1}},
		{-7, [levelCount]float64{}},
		{math.NaN(), [levelCount]float64{}},
	} {
		s := NewShed(3)
		s.Set(c.share)
		const n = 20_000
		var refused [levelCount]int
		// One Sheddable request of four units for four of one unit of each other level.
		for range n {
			if !s.Admit(Sheddable, 4) {
				refused[Sheddable]++
			}
			for level := SheddablePlus; level <= CriticalPlus; level++ {
				for range 4 {
					if !s.Admit(level, 1) {
						refused[level]++
					}
				}
			}
		}
		for level := Sheddable; level <= CriticalPlus; level++ {
			of := n
			if level > Sheddable {
				of = 4 * n
			}
			// Who is where in a round moves the sums by a part of a round.
			if got := float64(refused[level]) / float64(of); math.Abs(got-c.want[level]) > 0.03 {
				t.Errorf("share %v, level %d: %.3f refused, want %v", c.share, level, got, c.want[level])
			}
		}
	}
}

// TestShedForgets: when the mix changes, the share is right again after a few thousand.
func TestShedForgets(t *testing.T) {
	s := NewShed(5)
	s.Set(0.5)
	for range 1_000_000 {
		s.Admit(Sheddable, 1)
	}
	for range 20_000 {
		s.Admit(Critical, 1)
	}
	refused := 0
	for range 20_000 {
		if !s.Admit(Unset, 1) {
			refused++
		}
	}
	if !near(refused, 20_000, 0.5) {
		t.Errorf("%d of 20000 refused", refused)
	}
}

// TestWarmup: a tenth at first, then in proportion to the time; all at the end.
func TestWarmup(t *testing.T) {
	w := NewWarmup(10*time.Second, 1)
	const each = 100 * us
	var admitted [10]int
	for i := range 100_000 {
		if w.Admit(at(time.Duration(i) * each)) {
			admitted[i/10_000]++
		}
	}
	for i, n := range admitted {
		if share := 0.1 + 0.9*(float64(i)+0.5)/10; !near(n, 10_000, share) {
			t.Errorf("second %d: %d of 10000 admitted, want %.3f", i, n, share)
		}
	}
	if w.Warm() || w.Left() != each {
		t.Errorf("%v are left", w.Left())
	}
	if !w.Admit(at(10*time.Second)) || !w.Warm() || w.Share() != 1 || w.Left() != 0 {
		t.Error("not warm at the end")
	}
	for _, warm := range []Warmup{{}, NewWarmup(0, 1), NewWarmup(-time.Second, 1)} {
		if !warm.Warm() || !warm.Admit(at(0)) {
			t.Error("without a length it is not warm")
		}
	}
}

// TestHeadroom: at 0.25 of four CPUs, three seconds of work a second.
func TestHeadroom(t *testing.T) {
	h := NewHeadroom(0.25, 4)
	work := time.Duration(0)
	for i := range 1_000_000 {
		if ok, again := h.Admit(at(time.Duration(i)*us), 10*us); ok {
			work += 10 * us
		} else if again <= 0 || again > 4*us {
			t.Fatalf("again after %v", again)
		}
	}
	if want := 3*time.Second + 4*headroomBurst; work < want-100*us || work > want {
		t.Errorf("%v of work let in within a second, want %v", work, want)
	}
	if off := NewHeadroom(0, 4); off.Share() != 0 {
		t.Error("no share is some")
	}
	many := NewHeadroom(0.5, 10_000)
	work = 0
	for i := range 100_000 {
		if ok, _ := many.Admit(at(time.Duration(i)*us), time.Second); ok {
			work += time.Second
		}
	}
	if want := 500*time.Second + 10_000*headroomBurst; work < want-time.Second || work > want+time.Second {
		t.Errorf("ten thousand CPUs: %v in 0.1 s, want %v", work, want)
	}
	for _, share := range []float64{1, 2} { // nothing but the burst
		all := NewHeadroom(share, 1)
		n := 0
		for i := range 1000 {
			if ok, _ := all.Admit(at(time.Duration(i)*us), ms); ok {
				n++
			}
		}
		if n != int(headroomBurst/ms) {
			t.Errorf("share %v: %d let in", share, n)
		}
	}
}

func TestInService(t *testing.T) {
	s := NewInService(2)
	if !s.Bounded() || s.Max() != 2 || s.Full() {
		t.Fatal("not empty at first")
	}
	s.Start()
	s.Start()
	if !s.Full() || s.Now() != 2 {
		t.Error("not full at its bound")
	}
	s.Done()
	if s.Full() {
		t.Error("full below its bound")
	}
	s.Done()
	s.Done()
	if s.Now() != 0 {
		t.Error("more given back than taken")
	}
	for _, none := range []InService{{}, NewInService(0), NewInService(-1)} {
		for range 100 {
			none.Start()
		}
		if none.Full() || none.Bounded() || none.Now() != 0 {
			t.Error("without a bound it is full")
		}
	}
}
