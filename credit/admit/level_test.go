package admit

import (
	"testing"
	"time"
)

func TestLevelsThresholds(t *testing.T) {
	const threshold = 160 * us
	for _, c := range []struct {
		level Level
		last  time.Duration // at which it is let in
	}{
		{Sheddable, 40 * us}, {SheddablePlus, 60 * us}, {Critical, 160 * us}, {CriticalPlus, 200 * us},
		{Unset, 160 * us}, {5, 160 * us}, {255, 160 * us}, // nobody gains by making one up
	} {
		l := NewLevels(LevelsConfig{Threshold: threshold})
		if !l.Admit(c.level, c.last) || l.Admit(c.level, c.last+1) || l.Admit(c.level, time.Hour) || !l.Admit(c.level, 0) {
			t.Errorf("level %d does not end at %v", c.level, c.last)
		}
		open := NewLevels(LevelsConfig{})
		never := NewLevels(LevelsConfig{Threshold: threshold, Shares: [levelCount]float64{0, -1, -1, -1, -1}})
		if !open.Admit(c.level, time.Hour) || !never.Admit(c.level, time.Hour) {
			t.Errorf("level %d is refused by an open gate", c.level)
		}
	}
}

// offer has so many of each level arrive in turn, each at the delay, and counts who is let in.
func offer(l *Levels, rounds int, delay time.Duration, costs [levelCount]int) (units [levelCount]int) {
	for range rounds {
		for level := Sheddable; level <= CriticalPlus; level++ {
			if l.Admit(level, delay) {
				l.Admitted(level, delay, costs[level])
				units[level] += costs[level]
			}
		}
	}
	return units
}

// TestLevelsFloor: each level that is refused keeps its share of what is admitted, in units, whatever they cost and however calm it was before.
func TestLevelsFloor(t *testing.T) {
	for _, c := range []struct {
		name  string
		floor float64
		share float64 // that comes out, of all, for each of two
		costs [levelCount]int
	}{
		{"2 %", 0, 0.02, [levelCount]int{0, 1, 1, 1, 1}},
		{"10 %", 0.1, 0.1, [levelCount]int{0, 1, 1, 1, 1}},
		{"none", -1, 0, [levelCount]int{0, 1, 1, 1, 1}},
		{"expensive ones", 0, 0.02, [levelCount]int{0, 40, 7, 1, 1}},
		{"cheap ones", 0, 0.02, [levelCount]int{0, 1, 1, 30, 50}},
	} {
		l := NewLevels(LevelsConfig{Threshold: 160 * us, Floor: c.floor})
		calm := offer(&l, 100_000, 0, c.costs)
		if calm[Sheddable] != 100_000*c.costs[Sheddable] {
			t.Errorf("%s: %v in calm times", c.name, calm)
		}
		units := offer(&l, 100_000, 150*us, c.costs)
		all := 0
		for _, n := range units {
			all += n
		}
		for _, level := range []Level{Sheddable, SheddablePlus} {
			want := min(c.share*float64(all), float64(100_000*c.costs[level])) // what it offers
			if got := float64(units[level]); got < want-1-float64(c.costs[level]) || got > want+floorSaved/floorUnit+float64(c.costs[level]) {
				t.Errorf("%s: level %d has %v units of %d, want %v", c.name, level, got, all, want)
			}
		}
		if units[Critical] != 100_000*c.costs[Critical] || units[CriticalPlus] != 100_000*c.costs[CriticalPlus] {
			t.Errorf("%s: %v: a critical level was refused", c.name, units)
		}
	}
}

// TestLevelsFloorIsNotSavedUp: who sends nothing for long has no batch let in at once.
func TestLevelsFloorIsNotSavedUp(t *testing.T) {
	l := NewLevels(LevelsConfig{Threshold: 160 * us})
	for range 1_000_000 {
		l.Admitted(Critical, 150*us, 1)
	}
	n := 0
	for ; l.Admit(Sheddable, 150*us); n++ {
		l.Admitted(Sheddable, 150*us, 1)
	}
	if n < 3 || n > 6 {
		t.Errorf("%d at once", n)
	}
}
