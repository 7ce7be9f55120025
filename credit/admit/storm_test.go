package admit

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

const (
	ms    = time.Millisecond
	calm  = 80 * us
	alarm = 81 * us
)

// burst has so many arrive at once, the last of them repeated.
func burst(s *Storm, now clock.Time, all, repeated int, delay time.Duration) {
	for i := range all {
		attempt := uint8(0)
		if i >= all-repeated {
			attempt = 1
		}
		s.Arrive(now, attempt, delay)
	}
}

// TestStorm is a transcript with a target of 80 us.
func TestStorm(t *testing.T) {
	s := NewStorm(80 * us)
	for _, c := range []struct {
		text          string
		at            time.Duration
		all, repeated int
		delay         time.Duration
		on            bool
	}{
		{"exactly a tenth is none", 0, 100, 10, alarm, false},
		{"more, and at the target: none", 10 * ms, 1, 1, calm, false},
		{"more, above the target", 20 * ms, 1, 1, alarm, true},
		{"it does not end with the delay", 500 * ms, 10, 2, 0, true},
		{"it does not end above a twentieth", 600 * ms, 100, 0, alarm, true},
		{"it ends at a twentieth", 700 * ms, 80, 0, alarm, false},
		{"and a twelfth does not begin it again", 800 * ms, 20, 12, alarm, false},
		{"what is a second old counts no more", 1800 * ms, 20, 2, alarm, false},
		{"another one", 1850 * ms, 2, 2, alarm, true},
	} {
		burst(&s, at(c.at), c.all, c.repeated, c.delay)
		if s.On() != c.on {
			t.Fatalf("%s: %v, with %d of %d repeated", c.text, s.On(), s.of, s.all)
		}
	}
}

// TestStormNeedsSome: below 20 arrivals in the window no share means anything.
func TestStormNeedsSome(t *testing.T) {
	s := NewStorm(80 * us)
	burst(&s, at(0), 19, 19, alarm)
	if s.On() {
		t.Error("a storm of 19")
	}
	burst(&s, at(0), 1, 1, alarm)
	if !s.On() {
		t.Error("no storm of 20")
	}
}

// stormTwin remembers every arrival.
type stormTwin struct {
	slot   int64
	slots  []int64
	repeat []bool
	on     bool
}

func (s *stormTwin) arrive(now clock.Time, attempt uint8, delay time.Duration) {
	const width = int64(100 * time.Millisecond)
	slot := int64(now) / width
	if slot < s.slot { // the clock went back, and what was counted with it
		for i := range s.slots {
			s.slots[i] -= s.slot - slot
		}
	}
	s.slot = slot
	s.slots, s.repeat = append(s.slots, slot), append(s.repeat, attempt > 0)
	all, of := 0, 0
	for i, at := range s.slots {
		if at > slot-10 {
			all++
			if s.repeat[i] {
				of++
			}
		}
	}
	if s.on {
		s.on = of*20 > all
	} else {
		s.on = delay > 80*us && all >= 20 && of*10 > all
	}
}

// TestStormTwin compares with counting anew each time, with clocks that stand still, jump and go back.
func TestStormTwin(t *testing.T) {
	rng := seedtest.Rand(t)
	turned := 0
	for range 60 {
		s, twin := NewStorm(80*us), &stormTwin{}
		now, share := at(0), 0.1
		for i := range 800 {
			switch rng.IntN(100) {
			case 0:
				now = now.Add(time.Duration(rng.Int64N(int64(time.Hour))))
			case 1:
				now = now.Add(-time.Duration(rng.Int64N(int64(time.Minute))))
			case 2, 3:
				share = 0.3 * rng.Float64()
			default:
				now = now.Add(time.Duration(rng.Int64N(int64(20 * ms))))
			}
			attempt := uint8(0)
			if rng.Float64() < share {
				attempt = uint8(1 + rng.IntN(3))
			}
			delay := time.Duration(rng.Int64N(int64(160 * us)))
			before := s.On()
			s.Arrive(now, attempt, delay)
			twin.arrive(now, attempt, delay)
			if s.On() != twin.on {
				t.Fatalf("step %d: %v, want %v", i, s.On(), twin.on)
			}
			if s.On() != before {
				turned++
			}
		}
	}
	if turned < 20 {
		t.Errorf("only %d changes: the comparison says little", turned)
	}
}
