package dispatcher

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// handlers say what comes of so many in service: how many end in a second, which part of them late, and what these took. All have 350 us left.
type handlers func(inService int) (perSecond, late float64, took time.Duration)

const leftOf = 350 * time.Microsecond

// locking is a server of ten CPUs whose handlers compute for 10 us, and one call in ten holds a lock for 50 us: nearly all that are in service wait for it. With
// seven of them it is done in 350 us.
func locking(n int) (perSecond, late float64, took time.Duration) {
	took = time.Duration(n) * 50 * time.Microsecond
	if took > leftOf {
		late = 0.1
	}
	return min(float64(n)/3, 1) * 200_000, late, took
}

// computing is one whose handlers only compute, and 5 % of them for too long. Sleeping is one where the 5 % sleep, and the others need a tenth of the 100 that are in
// service at once.
func computing(n int) (perSecond, late float64, took time.Duration) {
	return min(float64(n)/10, 1) * 1e6, 0.05, 500 * time.Microsecond
}

func sleeping(n int) (perSecond, late float64, took time.Duration) {
	return min(float64(n)/100, 1) * 200_000, 0.05, 9 * time.Millisecond
}

// quick ones take no time to speak of, and wait for something that is nobody's load.
func quick(n int) (perSecond, late float64, took time.Duration) {
	return min(float64(n)/100, 1) * 200_000, 0, 0
}

// descending is a server that always has more to do than it lets in.
type descending struct {
	inService
	dice   *rand.Rand
	at     clock.Time
	good   int
	lowest int
	hung   int // in service for ever
}

func descend(t *testing.T) *descending {
	return &descending{inService: newInService(256, 10, true), dice: rand.New(rand.NewPCG(seedtest.Seed(t), 1)), at: 1, lowest: 256}
}

// run serves for so long, and returns goodput per second.
func (d *descending) run(h handlers, lasts time.Duration) float64 {
	begin, good := d.at, d.good
	for d.at.Sub(begin) < lasts {
		for !d.full(d.at) {
			d.start()
		}
		if d.now <= d.hung { // until one more may start all the same
			d.at = d.at.Add(standstillMax / 2)
			continue
		}
		perSecond, late, took := h(d.limit)
		d.at = d.at.Add(time.Duration(d.dice.ExpFloat64() / perSecond * float64(time.Second)))
		if d.dice.Float64() < late {
			d.end(d.at, took, leftOf)
		} else {
			d.good++
			d.end(d.at, time.Microsecond, leftOf)
		}
		d.lowest = min(d.lowest, d.limit)
	}
	return float64(d.good-good) / d.at.Sub(begin).Seconds()
}

// The bound goes down to where those that need the lock are in time, and finds it again when it was given up by mistake.
func TestDescentFindsALock(t *testing.T) {
	d := descend(t)
	if d.run(locking, time.Second); d.limit < 5 || d.limit > 9 {
		t.Errorf("after a second %d in service, want about 7", d.limit)
	}
	if good := d.run(locking, 20*time.Second); good < 190_000 {
		t.Errorf("goodput %.0f/s, want nearly 200,000", good)
	}
}

// Those that are late in any case cost next to nothing: it is tried, and less and less often.
func TestDescentInVain(t *testing.T) {
	for name, c := range map[string]struct {
		handlers handlers
		whole    float64
	}{"computing": {computing, 950_000}, "sleeping": {sleeping, 190_000}} {
		d := descend(t)
		first := d.run(c.handlers, 2*time.Second)
		if d.lowest == 256 || first < 0.9*c.whole {
			t.Errorf("%s: never fewer than %d in service, goodput %.0f/s of %.0f at first", name, d.lowest, first, c.whole)
		}
		if d.run(c.handlers, 20*time.Second); d.descent.times < 2*timesMin {
			t.Errorf("%s: the next trial waits for %d times the last one", name, d.descent.times)
		}
		if good := d.run(c.handlers, 20*time.Second); good < 0.98*c.whole {
			t.Errorf("%s: goodput %.0f/s of %.0f", name, good, c.whole)
		}
	}
}

// Handlers that never end count as in service for ever. A bound below their number would let hardly anybody in, and must not wait for them to end.
func TestDescentBesideHandlersThatHang(t *testing.T) {
	d := descend(t)
	for d.hung < 60 {
		d.start()
		d.hung++
	}
	serving := func(n int) (perSecond, late float64, took time.Duration) { // one in twenty is late in any case
		return max(min(float64(n-d.hung)/10, 1), 0.1) * 200_000, 0.05, 500 * time.Microsecond
	}
	d.run(serving, 5*time.Second)
	if good := d.run(serving, 20*time.Second); d.lowest > 60 || good < 0.9*190_000 {
		t.Errorf("never fewer than %d let in, 60 of them hang: goodput %.0f/s of 190,000", d.lowest, good)
	}
}

// Where no more are in service than there are CPUs, though more are let in, none waits for anything else: there is nothing to try, however many are late.
func TestDescentKnowsComputing(t *testing.T) {
	for inService, tried := range map[int]bool{10: false, 11: false, 12: true} {
		s := newInService(256, 10, true)
		at, lowest := clock.Time(1), 256
		for i := range 10 * windowOf {
			for s.now < inService && !s.full(at) {
				s.start()
			}
			at++
			s.end(at, time.Duration(2*(i%2)), 1) // every other one is late
			lowest = min(lowest, s.limit)
		}
		if (lowest < 256) != tried {
			t.Errorf("%d in service on ten CPUs: the bound was %d at the lowest", inService, lowest)
		}
	}
}

// What the handlers wait for is out of order for a minute, and all are late; when it is back, or anything else is quick again, as many are let in as before, within seconds and
// not completions.
func TestDescentAfterAnOutage(t *testing.T) {
	outage := func(int) (float64, float64, time.Duration) { return 1000, 1, 100 * time.Millisecond }
	slow := func(n int) (perSecond, late float64, took time.Duration) { return 10 * float64(n), 0, 0 } // 100 ms each
	d := descend(t)
	if d.run(outage, time.Minute); d.limit != 256 {
		t.Errorf("after an outage %d in service, want all", d.limit)
	}
	d.run(locking, time.Second)
	if low := d.limit; low > 9 {
		t.Fatalf("%d in service", low)
	}
	d.run(outage, time.Minute)
	if d.run(slow, 15*time.Second); d.limit < 256 {
		t.Errorf("after 15 s in which nothing was late %d in service", d.limit)
	}
}

// What was found for one load is given up for the next: at once where there is far less goodput than with all let in, else step by step.
func TestDescentIsLeft(t *testing.T) {
	for name, next := range map[string]handlers{"others sleep": sleeping, "nothing is late": quick} {
		d := descend(t)
		d.run(locking, time.Second)
		if low := d.limit; low > 9 {
			t.Fatalf("%d in service", low)
		}
		d.run(next, time.Second)
		if good := d.run(next, 5*time.Second); good < 0.9*190_000 {
			t.Errorf("%s: %d in service, goodput %.0f/s", name, d.limit, good)
		}
	}
}

// One in fifty that is late is not too many, one in a hundred not few enough for more to be let in, and nobody counts whose time is not bounded.
func TestDescentCounts(t *testing.T) {
	for _, c := range []struct {
		name       string
		late       int // of a window
		left       time.Duration
		limit, now int // the bound before, and after five windows
	}{
		{"one in fifty", windowOf / lateMany, 1, 128, 128},
		{"more", windowOf/lateMany + 1, 1, 128, 32},     // they took twice what they had: a half would do, and leave them no time
		{"nearly all", windowOf*10/11 + 1, 1, 128, 128}, // what they wait for is out of order
		{"not quite", windowOf * 10 / 11, 1, 128, 32},
		{"without a deadline", windowOf, 0, 128, 128 + 1 + 2 + 4 + 8 + 16},
		{"one in a hundred", windowOf/lateFew + 1, 1, 128, 128},
		{"fewer", windowOf / lateFew, 1, 128, 128 + 1 + 2 + 4 + 8 + 16},
		{"one is the least", windowOf, 1, 1, 1},
	} {
		s := newInService(256, 10, true)
		s.limit = c.limit
		at := clock.Time(1)
		for i := 0; i < 5*windowOf && !s.descent.trial.on; i++ {
			for !s.full(at) {
				s.start()
			}
			at++
			took := time.Duration(0)
			if i%windowOf < c.late {
				took = 2
			}
			s.end(at, took, c.left)
		}
		if s.limit != c.now {
			t.Errorf("%s: at most %d in service, want %d", c.name, s.limit, c.now)
		}
	}
}

// Below one for every CPU a window has as many completions as tell a step from noise.
func TestDescentWindow(t *testing.T) {
	for _, c := range []struct {
		name  string
		x     descent
		limit int
		want  int
	}{
		{"all let in", descent{}, 256, windowOf},
		{"one for every CPU, none late", descent{}, 11, windowOf},
		{"few late: steps of a tenth", descent{window: window{completed: 1000, late: 30, took: 4, left: 1}}, 11, 16_400},
		{"many: half", descent{window: window{completed: 1000, late: 300, took: 4, left: 1}}, 11, windowOf},
		{"after a step of a fifth", descent{trial: trial{on: true, share: 0.2}}, 8, 4100},
		{"what began before it", descent{trial: trial{on: true, share: 0.2, settling: true}}, 8, windowOf},
	} {
		s := newInService(256, 10, true)
		s.limit = c.limit
		if got := c.x.enough(&s); got != c.want {
			t.Errorf("%s: %d completions, want %d", c.name, got, c.want)
		}
	}
}
