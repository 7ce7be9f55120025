package admit

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Of a retry storm: what is above the first attempt is more than a tenth of what arrives. That is what a retry budget of 10 % allows (SRE book, chapter 21,
// "Deciding to Retry"), so more than that comes of clients that have none, or of several layers that retry each other's. It is over at half of that.
const (
	stormWindow = time.Second
	stormSlots  = 10 // parts of the window: it is a tenth of it too short at most
	stormMin    = 20 // arrivals in the window, at least: of three, one repeated says nothing
	stormBegins = 10 // percent of the arrivals, more than
	stormEnds   = 5  // percent, at most
)

// Storm sees retry storms: more than a tenth of the arrivals of the last second are repetitions, while the delay is above the target. Repetitions without
// delay harm nobody, and delay without them is mere load. It ends when they are a twentieth.
//
// An hour without arrivals leaves nothing in the window. A clock that goes back lets what was counted leave a window later, counted from then.
type Storm struct {
	target   time.Duration
	slot     int64 // the present one, numbered from zero of the clock
	began    clock.Time
	arrivals [stormSlots]uint32
	repeats  [stormSlots]uint32
	all, of  uint32 // sums: arrivals, and repetitions of them
	on       bool
}

// NewStorm makes one that takes a delay above the target for overload.
func NewStorm(target time.Duration) Storm { return Storm{target: target} }

// Arrive counts an arrival, whatever becomes of it. The first attempt is 0.
func (s *Storm) Arrive(now clock.Time, attempt uint8, delay time.Duration) {
	if in := now.Sub(s.began); in < 0 || in >= stormWindow/stormSlots {
		s.turn(now)
	}
	at := s.slot % stormSlots
	s.arrivals[at]++
	s.all++
	if attempt > 0 {
		s.repeats[at]++
		s.of++
	}
	s.judge(delay)
}

func (s *Storm) judge(delay time.Duration) {
	repeats, arrivals := uint64(s.of)*100, uint64(s.all)
	if s.on {
		s.on = repeats > stormEnds*arrivals
		return
	}
	s.on = delay > s.target && arrivals >= stormMin && repeats > stormBegins*arrivals
}

// On reports whether there is one, as of the last arrival.
func (s *Storm) On() bool { return s.on }

// turn begins another slot, and forgets those that are out of the window.
func (s *Storm) turn(now clock.Time) {
	slot := int64(max(now, 0)) / int64(stormWindow/stormSlots)
	was := s.slot
	s.slot, s.began = slot, clock.Time(slot*int64(stormWindow/stormSlots))
	if slot < was {
		s.rename(was - slot)
		return
	}
	for i := max(was+1, slot-stormSlots+1); i <= slot; i++ {
		at := i % stormSlots
		s.all -= s.arrivals[at]
		s.of -= s.repeats[at]
		s.arrivals[at], s.repeats[at] = 0, 0
	}
}

// rename moves what was counted by so many slots back, as the clock did.
func (s *Storm) rename(back int64) {
	arrivals, repeats := s.arrivals, s.repeats
	for i := range int64(stormSlots) {
		from := (i + back) % stormSlots
		s.arrivals[i], s.repeats[i] = arrivals[from], repeats[from]
	}
}
