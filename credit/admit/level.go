package admit

import "time"

// Level is how much a request matters when load is shed; the numbers are those of the wire.
type Level uint8

// The levels of criticality, as in the SRE book (chapter 21, "Handling Overload"). What says nothing counts as Critical: most callers say nothing,
// and a caller must ask to be shed first, not to be kept.
const (
	Unset         Level = 0
	Sheddable     Level = 1 // may be missed for long: batch work
	SheddablePlus Level = 2 // may be missed now and then
	Critical      Level = 3 // a user waits for it
	CriticalPlus  Level = 4 // the most serious harm if it fails

	levelCount = 5
)

// or is the level that counts: unknown ones are as good as unset, so that nobody gains by making one up.
func (l Level) or() Level {
	if l == Unset || l > CriticalPlus {
		return Critical
	}
	return l
}

// Default shares of the threshold from which each level is refused, and the default floor. A control that steers to half of the threshold lets all levels in
// only while the queue is shorter than it aims at, and refuses the two sheddable ones before it would have to take credits from the critical ones.
const (
	ShareSheddable     = 0.25
	ShareSheddablePlus = 0.375
	ShareCritical      = 1
	ShareCriticalPlus  = 1.25 // above that even the answers to what is let in come too late
	FloorDefault       = 0.02 // "no level starves for ever": of what is admitted
)

// LevelsConfig configures Levels. Zero values mean the documented defaults.
type LevelsConfig struct {
	// Threshold is the delay from which Critical is refused; 0 = the gate is open.
	Threshold time.Duration
	// Shares are the parts of the threshold from which each level is refused, by its number; 0 = the default, negative = never here.
	Shares [levelCount]float64
	// Floor is the share of what is admitted that each level keeps however long the queue is; 0 = 2 %, negative = none.
	Floor float64
}

// floorUnit is one unit of cost in an allowance. A share of a millionth still counts.
const floorUnit = 1_000_000

// floorSaved is how much a level may save up while it sends nothing, in requests of the cost of those that are let in: a batch of it is not let in at once.
const floorSaved = 4

// Levels refuses a lower level at a lower delay than a higher one, so that those who matter find a queue that is short enough. Each level that is
// refused is let in all the same for its floor of what is admitted: a level at zero would never be seen to recover, and callers who wait for it would
// wait for ever. It reads no clock: the floor is of what was admitted, however long that took.
type Levels struct {
	refuseAt [levelCount]time.Duration // 0 = never
	floor    int64                     // of a unit, in floorUnits
	// allowance is what each level may still be let in above its threshold; below zero after one that cost more. What it had in calm times is no
	// debt, or it would starve as long in the next overload as the calm was.
	allowance [levelCount]int64
}

// NewLevels makes the gate.
func NewLevels(c LevelsConfig) Levels {
	l := Levels{floor: int64(FloorDefault * floorUnit)}
	if c.Floor != 0 {
		l.floor = int64(min(max(c.Floor, 0), 1) * floorUnit)
	}
	for level := Sheddable; level <= CriticalPlus; level++ {
		l.refuseAt[level] = time.Duration(max(c.share(level), 0) * float64(max(c.Threshold, 0)))
	}
	return l
}

var shareDefaults = [levelCount]float64{
	Sheddable: ShareSheddable, SheddablePlus: ShareSheddablePlus, Critical: ShareCritical, CriticalPlus: ShareCriticalPlus,
}

func (c *LevelsConfig) share(level Level) float64 {
	if c.Shares[level] == 0 {
		return shareDefaults[level]
	}
	return c.Shares[level]
}

// plus is how many times the delay of Critical one of CriticalPlus stands, at least once.
func (c *LevelsConfig) plus() float64 {
	if c.share(Critical) <= 0 || c.share(CriticalPlus) <= 0 {
		return ShareCriticalPlus
	}
	return max(c.share(CriticalPlus)/c.share(Critical), 1)
}

// Admit decides by level and delay.
func (l *Levels) Admit(level Level, delay time.Duration) bool {
	level = level.or()
	at := l.refuseAt[level]
	return at == 0 || delay <= at || l.allowance[level] > 0
}

// Admitted books a request of so many units that was let in by this gate and by all others: what they refuse says nothing about shares. The delay
// is that of its Admit.
func (l *Levels) Admitted(level Level, delay time.Duration, cost int) {
	level = level.or()
	if l.floor == 0 {
		return
	}
	units := int64(cost)
	for i := Sheddable; i <= CriticalPlus; i++ {
		l.allowance[i] = min(l.allowance[i]+units*l.floor, floorSaved*units*floorUnit)
	}
	own := &l.allowance[level]
	if at := l.refuseAt[level]; at == 0 || delay <= at {
		*own = max(*own-units*floorUnit, min(*own, 0))
	} else {
		*own -= units * floorUnit
	}
}
