package baseline

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
)

// TestProtegoLaw gives it intervals of 1 ms, from one with 1,000 arrivals and 900 answers and a pool of 100.
func TestProtegoLaw(t *testing.T) {
	for _, c := range []struct {
		name string
		load credit.Load
		want float64
	}{
		{"more load, more throughput", credit.Load{Arrivals: 1100, Answers: 1000}, 101},
		{"more load, hardly more throughput", credit.Load{Arrivals: 1100, Answers: 910}, 98},
		{"just enough more", credit.Load{Arrivals: 1100, Answers: 911}, 101},
		{"more load, less throughput", credit.Load{Arrivals: 1100, Answers: 800}, 98},
		{"less load, less throughput", credit.Load{Arrivals: 900, Answers: 800}, 101},
		{"less load, more throughput", credit.Load{Arrivals: 900, Answers: 1000}, 98},
		{"nothing has changed", credit.Load{Arrivals: 1000, Answers: 900}, 98},
		{"as many drops as arrivals, and more throughput", credit.Load{Arrivals: 1100, Answers: 1000, Rejections: 1100}, 101},
		{"nothing", credit.Load{}, 100},
		{"nothing, and somebody waits for a credit", credit.Load{Active: true}, 101},
		{"more drops than arrivals", credit.Load{Arrivals: 1100, Answers: 1000, Rejections: 1101}, 98},
	} {
		p := must(t, Protego, Params{}).NewController().(*protego)
		p.Resize(1000)
		p.load = credit.Load{Arrivals: 1000, Answers: 900}
		p.set(100)
		if p.adapt(1e-3); p.pool != 100 {
			t.Fatalf("%s: the first interval moves the pool to %v", c.name, p.pool)
		}
		p.load = c.load
		if p.adapt(1e-3); math.Abs(p.pool-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, p.pool, c.want)
		}
	}
}

func TestProtegoBounds(t *testing.T) {
	p := must(t, Protego, Params{Workers: 10, Slots: 64}).NewController().(*protego)
	if p.Pool() != 10 {
		t.Errorf("the first pool is %d, not the workers", p.Pool())
	}
	p.Resize(5000)
	p.lastIn, p.lastOut, p.known = 0, 0, true
	p.load = credit.Load{Arrivals: 10, Answers: 10}
	if p.adapt(1); p.pool != 15 {
		t.Errorf("5000 sessions: an increase of %v", p.pool-10)
	}
	for range 1000 {
		p.load = credit.Load{Arrivals: 1, Answers: 1}
		p.adapt(1)
	}
	if p.Pool() != 10 {
		t.Errorf("below the workers: %d", p.Pool())
	}
	p.set(1e9)
	if p.Resize(2); p.Pool() != 128 {
		t.Errorf("above all slots: %d", p.Pool())
	}
	if !p.Admit(credit.Arrival{Delay: 160 * us}) || p.Admit(credit.Arrival{Delay: 160*us + 1}) || p.Target() != 0 {
		t.Error("the door")
	}
	if got := p.Window(credit.Holding{Issued: 500, Window: 1}); got != 1 {
		t.Errorf("the floor: %d", got)
	}
}

// TestProtegoInterval: it counts every round trip, and moves the pool every fourth one from end to end, which has delay and service in it.
func TestProtegoInterval(t *testing.T) {
	c := must(t, Protego, Params{Workers: 1}).NewController().(*protego)
	c.Resize(1000)
	signal := credit.Signal{RTT: 20 * us, Delay: 70 * us}
	if !c.Update(at(0), signal, credit.Load{Arrivals: 5}) || c.UpdateDue(at(20*us-1)) || !c.UpdateDue(at(20*us)) {
		t.Fatal("the update is not every round trip")
	}
	var moved []time.Duration
	n, was := uint64(1), c.pool
	for d := 20 * us; d <= 1700*us; d += 20 * us {
		load := credit.Load{Arrivals: n, Answers: n} // more each time, so that the pool grows
		n++
		if c.Update(at(d), signal, load); c.pool != was {
			moved, was = append(moved, d), c.pool
		}
	}
	// 4 (20 + 70 + 10) us; the first interval is only compared with.
	if len(moved) != 3 || moved[0] != 800*us || moved[1] != 1200*us || moved[2] != 1600*us || c.pool != 4 {
		t.Errorf("moved at %v, to %v", moved, c.pool)
	}
	// In the interval that ends at 2 ms more is rejected than arrives, early in it.
	for d := 1720 * us; d <= 2000*us; d += 20 * us {
		load := credit.Load{Arrivals: n, Answers: n}
		if n++; d == 1720*us {
			load.Rejections = 1 << 20
		}
		c.Update(at(d), signal, load)
	}
	if c.pool != 4*(1-protegoDecrease) {
		t.Errorf("rejections of several updates do not count together: the pool is %v", c.pool)
	}
}
