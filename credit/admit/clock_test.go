package admit

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// trials are what clocks do: a stall of the process, a jump back, an hour without a request.
var trials = []struct {
	name string
	by   time.Duration
}{{"a stall", 3 * time.Second}, {"a jump back", -time.Hour}, {"an hour idle", time.Hour}}

// shifted is an instant of the trial: after it, all are.
func shifted(d, by time.Duration) clock.Time { return at(2*time.Hour + d + by) }

// TestClockBucket: after any of them, no more than a burst at once, and then the rate.
func TestClockBucket(t *testing.T) {
	for _, trial := range trials {
		b := NewBucket(1000, 50)
		take := func(from time.Duration, by time.Duration) (n int) {
			for d := time.Duration(0); d < time.Second; d += 100 * us {
				if ok, _ := b.Take(shifted(from+d, by), 1); ok {
					n++
				}
			}
			return n
		}
		before, after := take(0, 0), take(time.Second, trial.by)
		if before < 1049 || before > 1050 || after < 999 || after > 1050 {
			t.Errorf("%s: %d in the second before, %d in that after, at 1000/s", trial.name, before, after)
		}
	}
}

// TestClockCoDel: whatever the clock did, an interval of standing queue is needed to begin, a stall is not made up for by dropping, and dropping goes on at
// the pace of the law.
func TestClockCoDel(t *testing.T) {
	for _, trial := range trials {
		c := NewCoDel(80*us, 200*us)
		drops := func(from, by time.Duration) (n int) {
			for d := time.Duration(0); d < 2*ms; d += 5 * us {
				if !c.Dequeue(shifted(from+d, by), 100*us, 10) {
					n++
				}
			}
			return n
		}
		before, after := drops(0, 0), drops(2*ms, trial.by)
		if before < 10 || after < before || after > 5*before {
			t.Errorf("%s: %d dropped in the 2 ms before, %d in those after", trial.name, before, after)
		}
		fresh := NewCoDel(80*us, 200*us)
		fresh.Dequeue(shifted(0, 0), 100*us, 10)
		n := 0
		for d := 5 * us; d < 200*us; d += 5 * us {
			if !fresh.Dequeue(shifted(d, trial.by), 100*us, 10) {
				n++
			}
		}
		if trial.by < 0 && n != 0 { // forwards, the interval is over
			t.Errorf("%s: %d dropped before an interval was over", trial.name, n)
		}
	}
}

// TestClockStorm: what was seen before counts no longer than a second more, and a storm is seen within a second again.
func TestClockStorm(t *testing.T) {
	for _, trial := range trials {
		s := NewStorm(80 * us)
		storm := func(from, by time.Duration, repeated int) {
			for i := range 1000 {
				attempt := uint8(0)
				if i%100 < repeated {
					attempt = 1
				}
				s.Arrive(shifted(from+time.Duration(i)*ms, by), attempt, 100*us)
			}
		}
		storm(0, 0, 30)
		if !s.On() {
			t.Fatal("no storm")
		}
		storm(time.Second, trial.by, 0)
		s.Arrive(shifted(2*time.Second, trial.by), 0, 100*us)
		if s.On() || s.of > 30 {
			t.Errorf("%s: still a storm, a second later", trial.name)
		}
		storm(2*time.Second, trial.by, 30)
		if !s.On() {
			t.Errorf("%s: not seen again", trial.name)
		}
	}
}

// TestClockWarmup: none of them warms by more than a sixteenth, and none cools.
func TestClockWarmup(t *testing.T) {
	for _, trial := range trials {
		w := NewWarmup(16*time.Second, 1)
		w.Admit(shifted(0, 0))
		for i := range 8 * 20 {
			w.Admit(shifted(time.Duration(i+1)*50*ms, 0))
		}
		if w.done != 8*time.Second {
			t.Fatalf("%v after 8 s", w.done)
		}
		w.Admit(shifted(8*time.Second, trial.by))
		if w.done < 8*time.Second || w.done > 9*time.Second {
			t.Errorf("%s: %v are done", trial.name, w.done)
		}
	}
}

// TestClockHeadroom: an hour idle is worth the burst and no more.
func TestClockHeadroom(t *testing.T) {
	for _, trial := range trials {
		h := NewHeadroom(0.5, 2)
		admit := func(from, by time.Duration) (work time.Duration) {
			for d := time.Duration(0); d < time.Second; d += 100 * us {
				if ok, _ := h.Admit(shifted(from+d, by), ms); ok {
					work += ms
				}
			}
			return work
		}
		before, after := admit(0, 0), admit(time.Second, trial.by)
		if limit := time.Second + 2*headroomBurst; before > limit || after > limit || after < time.Second-2*ms {
			t.Errorf("%s: %v before, %v after, in a second of two CPUs, half of them free", trial.name, before, after)
		}
	}
}

// TestClockGate: nobody is refused for a time that went back, all are served, and after a stall those who waited through it are refused once.
func TestClockGate(t *testing.T) {
	for _, trial := range trials {
		g := NewGate(GateConfig{Permits: 1, Door: DoorConfig{Target: ms}})
		tickets := make([]Ticket, 5)
		for i := range tickets {
			g.Arrive(shifted(0, 0), &tickets[i], Arrival{})
		}
		running, refused, ran := &tickets[0], 0, 1
		for i := 1; i < 20; i++ {
			now := shifted(time.Duration(i)*10*us, trial.by)
			if running != nil {
				g.Done(now, running, true)
				running = nil
			}
			for next, step, _ := g.Next(now); next != nil; next, step, _ = g.Next(now) {
				if step == Run {
					running = next
					ran++
				} else {
					refused++
				}
			}
		}
		if ran+refused != len(tickets) || (refused > 0) != (trial.by > 0) {
			t.Errorf("%s: %d ran, %d refused of %d", trial.name, ran, refused, len(tickets))
		}
		if step, v := g.Arrive(shifted(time.Second, trial.by), &tickets[0], Arrival{}); step != Run {
			t.Errorf("%s: an idle gate says %+v", trial.name, v)
		}
		if err := g.Audit(); err != nil {
			t.Error(err)
		}
	}
}
