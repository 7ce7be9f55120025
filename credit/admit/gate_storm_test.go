package admit

import (
	"sync"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

const (
	stormCallers = 8
	stormCalls   = 1000
	stormBurst   = 1_000_000
	stormCost    = 3
)

// crowd is a gate behind one mutex, and who comes to it.
type crowd struct {
	mu       sync.Mutex
	g        *Gate
	m        Method
	now      clock.Time
	woken    map[*Ticket]chan Step // who waits
	admitted int
	left     int // callers that are not done
}

// step has time pass and does something, with the mutex; then all who wait in vain or may run are told.
func (c *crowd) step(passes time.Duration, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(passes)
	do()
	for next, step, _ := c.g.Next(c.now); next != nil; next, step, _ = c.g.Next(c.now) {
		c.woken[next] <- step
		delete(c.woken, next)
	}
}

// call makes calls, some of which are given up while they wait, panic, or are given back twice.
func (c *crowd) call(rng coin) {
	tk, wake := &Ticket{}, make(chan Step, 1)
	for range stormCalls {
		var step Step
		c.step(us, func() {
			step, _ = c.g.Arrive(c.now, tk, Arrival{Method: &c.m, Level: Level(uint64(rng) % 6), Attempt: uint8(rng) & 1})
			if step != Refused {
				c.admitted++
			}
			if step == Wait {
				c.woken[tk] = wake
			}
		})
		if step == Wait {
			if rng.within(0.3) {
				c.step(0, func() {
					if c.g.Leave(tk) {
						delete(c.woken, tk)
						wake <- Refused
					}
				})
			}
			step = <-wake
		}
		if step != Run {
			continue
		}
		c.step(us, func() {
			c.g.Done(c.now, tk, rng.within(0.9))
			if rng.within(0.2) {
				c.g.Done(c.now, tk, true)
			}
		})
	}
	c.step(0, func() { c.left-- })
}

// operate pulls levers, and looks at the books.
func (c *crowd) operate(t *testing.T, rng coin) {
	for range stormCalls {
		c.step(us, func() {
			d := c.g.Door()
			d.RetriesOff(rng.within(0.5))
			d.Drain(rng.within(0.1))
			d.ShedShare(float64(uint64(rng)%100) / 200)
			if rng.within(0.1) {
				d.Warmup(ms)
			}
			c.g.SetPermits(1 + int(uint64(rng)%4))
			if err := c.g.Audit(); err != nil || c.g.Pressure(c.now) < 0 {
				t.Error(err)
			}
		})
	}
}

// tick has time pass, or who waits when nobody else comes would wait for ever.
func (c *crowd) tick() {
	for over := false; !over; {
		c.step(10*us, func() { over = c.left == 0 })
	}
}

// TestGateStorm has callers, an operator and a clock at one gate. In the end every permit and every token is where it belongs. What each does is of the seed;
// the order is the scheduler's, and the books must hold in any.
func TestGateStorm(t *testing.T) {
	seed := seedtest.Seed(t)
	c := &crowd{
		g: NewGate(GateConfig{Permits: 3, Waiting: 16, Door: DoorConfig{Target: ms, CPUs: 2}}),
		m: NewMethod(MethodConfig{Rate: 1, Burst: stormBurst, Cost: stormCost}), now: at(0), woken: map[*Ticket]chan Step{}, left: stormCallers,
	}
	var all sync.WaitGroup
	for i := range stormCallers {
		all.Go(func() { c.call(coin(seed + uint64(i))) })
	}
	all.Go(func() { c.operate(t, coin(seed)) })
	all.Go(c.tick)
	all.Wait()
	if err := c.g.Audit(); err != nil {
		t.Error(err)
	}
	if n := c.g.Counters(); n.Arrived != stormCallers*stormCalls || c.g.Running() != 0 || c.g.Waiting() != 0 || len(c.woken) != 0 {
		t.Errorf("%d run and %d wait after all is done: %+v", c.g.Running(), c.g.Waiting(), n)
	}
	spent, came := stormBurst-c.m.Bucket.parts/tokenParts, int64(c.now.Sub(at(0))/time.Second)+1 // one a second
	if want := int64(stormCost * c.admitted); spent > want || spent < want-came {
		t.Errorf("%d tokens spent on %d requests of %d, and at most %d came in", spent, c.admitted, stormCost, came)
	}
}
