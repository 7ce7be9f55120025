package client

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// TestCountsAgainstTwin compares the window with all that ever happened, looked through each time.
func TestCountsAgainstTwin(t *testing.T) {
	random := seedtest.Rand(t)
	type event struct {
		at   clock.Time
		good bool
	}
	for range 20 {
		window := time.Duration(8 * (1 + random.IntN(1000)))
		c := newCounts(window)
		now := clock.Time(1 + random.IntN(1_000_000))
		var all []event
		for range 2000 {
			if random.IntN(50) == 0 {
				now = now.Add(time.Duration(random.IntN(3)) * window)
			}
			now = now.Add(time.Duration(random.IntN(int(window) / 8)))
			good := random.IntN(2) == 0
			all = append(all, event{now, good})
			if good {
				c.add(now, 1, 1)
			} else {
				c.add(now, 1, 0)
			}
			// What is younger than seven parts must be there, what is older than eight must not.
			var least, most tally
			for _, e := range all {
				age := now.Sub(e.at)
				g := uint32(0)
				if e.good {
					g = 1
				}
				if age < 7*c.part {
					least.all, least.good = least.all+1, least.good+g
				}
				if age < 8*c.part {
					most.all, most.good = most.all+1, most.good+g
				}
			}
			if c.sum.all < least.all || c.sum.all > most.all || c.sum.good < least.good || c.sum.good > most.good {
				t.Fatalf("at %d: %+v, not within %+v and %+v", now, c.sum, least, most)
			}
		}
	}
}

// TestCountsClock: a stall and an hour idle empty the window, a small jump back is a stall, and a large one begins anew.
func TestCountsClock(t *testing.T) {
	start := clock.Time(time.Hour)
	for _, c := range []struct {
		name string
		jump time.Duration
		want uint32 // with the one after the jump
	}{
		{"on", 100 * time.Millisecond, 11},
		{"stall of a window", 2 * time.Second, 1},
		{"an hour", time.Hour, 1},
		{"a century", 100 * 365 * 24 * time.Hour, 1},
		{"back a little", -time.Second, 11},
		{"back by the window", -2 * time.Second, 1},
		{"back to the beginning", -time.Hour, 1},
	} {
		w := newCounts(2 * time.Second)
		w.add(start, 10, 5)
		w.add(start.Add(c.jump), 1, 0)
		if w.sum.all != c.want {
			t.Errorf("%s: %d, want %d", c.name, w.sum.all, c.want)
		}
		// And a window later, nothing of it is left.
		w.advance(max(start, start.Add(c.jump)).Add(2 * time.Second))
		if w.sum != (tally{}) {
			t.Errorf("%s: %+v is left", c.name, w.sum)
		}
	}
}

func TestThrottleFormula(t *testing.T) {
	for _, c := range []struct {
		k               float64
		calls, accepted int
		want            float64
	}{
		{2, 0, 0, 0},
		{2, 19, 0, 0}, // below Calls
		{2, 20, 0, 20.0 / 21},
		{2, 100, 50, 0},
		{2, 100, 49, 2.0 / 101},
		{2, 1000, 100, 800.0 / 1001},
		{1, 100, 100, 0},
		{0.5, 100, 50, 50.0 / 101}, // counts as 1
		{0, 100, 0, 0},             // no throttle
	} {
		th := NewThrottle(ThrottleConfig{K: c.k})
		for i := range c.calls {
			th.Answered(1, i < c.accepted)
		}
		if got := th.Refuses(1); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// load plays a server that accepts so many calls a second and ten at once, in the order in which they come, and clients that make calls at regular intervals. An
// answer takes latency. It returns how many reached the server, of how many made.
func load(th *Throttle, random func() float64, from clock.Time, length time.Duration, rate, capacity float64, latency time.Duration) (reached, made int) {
	type answer struct {
		at       clock.Time
		accepted bool
	}
	var answers []answer
	tokens, last := 1.0, from
	for now := from; now < from.Add(length); now = now.Add(time.Duration(float64(time.Second) / rate)) {
		for len(answers) > 0 && answers[0].at <= now {
			th.Answered(answers[0].at, answers[0].accepted)
			answers = answers[1:]
		}
		made++
		if !th.Admit(now, random()) {
			continue
		}
		reached++
		tokens, last = min(tokens+now.Sub(last).Seconds()*capacity, 10), now
		accepted := tokens >= 1
		if accepted {
			tokens--
		}
		answers = append(answers, answer{now.Add(latency), accepted})
	}
	return reached, made
}

// TestThrottleE5 is experiment E5: a server that accepts 100 calls a second sees at most 2 * 100 and 5 % of them, and what is refused here is nothing below that.
func TestThrottleE5(t *testing.T) {
	random := seedtest.Rand(t)
	for _, c := range []struct{ rate, refused float64 }{{80, 0}, {150, 0}, {190, 0}, {400, 0.5}, {1000, 0.8}, {10_000, 0.98}} {
		th := NewThrottle(ThrottleConfig{K: ThrottleKDefault})
		start := clock.Time(time.Second)
		load(&th, random.Float64, start, 10*time.Second, c.rate, 100, time.Millisecond)
		reached, made := load(&th, random.Float64, start.Add(10*time.Second), 120*time.Second, c.rate, 100, time.Millisecond)
		refused := 1 - float64(reached)/float64(made)
		// Of 100 runs of 60 s at 10,000/s: 201.7/s reach it, with a standard deviation of 1.9, so 1.4 over 120 s; the bound is six of them away.
		if rate := float64(reached) / 120; rate > 210 || math.Abs(refused-c.refused) > 0.05 {
			t.Errorf("%v/s: %.1f/s reach it, %.3f refused here, want %.2f", c.rate, rate, refused, c.refused)
		}
	}
}

// TestThrottleOutage: the server is gone for ten seconds. The first local refusal comes within the time that the window needs to fill, and after its
// return the clients are back within the window and ten seconds, from a probe every 100 ms.
func TestThrottleOutage(t *testing.T) {
	random := seedtest.Rand(t)
	for _, rate := range []float64{50, 1000, 20_000} {
		th := NewThrottle(ThrottleConfig{K: ThrottleKDefault})
		now := clock.Time(time.Second)
		load(&th, random.Float64, now, 5*time.Second, rate, 1e9, time.Millisecond)
		now = now.Add(5 * time.Second)
		reached, made := load(&th, random.Float64, now, 5*time.Second, rate, 0, time.Millisecond)
		if reached == made {
			t.Errorf("%v/s: nothing refused after five seconds of outage", rate)
		}
		now = now.Add(5 * time.Second)
		if reached, _ = load(&th, random.Float64, now, 5*time.Second, rate, 0, time.Millisecond); reached < 40 || reached > 120+int(rate/100) {
			t.Errorf("%v/s: %d probes in five seconds", rate, reached)
		}
		now = now.Add(5 * time.Second)
		load(&th, random.Float64, now, 3*time.Second, rate, 1e9, time.Millisecond)
		now = now.Add(3 * time.Second)
		if reached, made = load(&th, random.Float64, now, time.Second, rate, 1e9, time.Millisecond); reached != made {
			t.Errorf("%v/s: %d of %d pass three seconds after its return", rate, reached, made)
		}
	}
}

// TestThrottleClock: a clock that stalls, jumps or was idle neither shuts the door nor keeps it shut.
func TestThrottleClock(t *testing.T) {
	for _, jump := range []time.Duration{2 * time.Second, time.Hour, -time.Hour, -1900 * time.Millisecond} {
		th := NewThrottle(ThrottleConfig{K: 2})
		now := clock.Time(2 * time.Hour)
		for range 100 {
			th.Admit(now, 0)
			th.Answered(now, false)
		}
		if th.Admit(now, 0) {
			t.Fatal("not throttled")
		}
		now = now.Add(jump)
		if !th.Admit(now, 0) {
			t.Errorf("%v later: refused, though nobody passed for longer than a probe may wait", jump)
		}
		for range throttleRun {
			th.Answered(now, true)
		}
		if p := th.Refuses(now); p != 0 {
			t.Errorf("%v later: refuses %v after the server accepts all", jump, p)
		}
	}
}
