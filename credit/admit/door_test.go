package admit

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// decide has an arrival counted and decided.
func (d *Door) decide(now clock.Time, a Arrival) Verdict {
	d.Arrive(now, a.Attempt, a.Delay)
	return d.Decide(now, &a)
}

// TestDoorReasons has one arrival refused by each policy, with what is said of it.
func TestDoorReasons(t *testing.T) {
	slow := NewMethod(MethodConfig{Rate: 1, Burst: 1, Cost: 2})
	slow.Bucket.Take(at(0), 1)
	worked := NewMethod(MethodConfig{})
	worked.Age.Sample(time.Millisecond)
	client := NewBucket(10, 1)
	client.Take(at(0), 1)
	for _, c := range []struct {
		name  string
		lever func(*Door)
		a     Arrival
		want  Verdict
	}{
		{"nothing against it", nil, Arrival{}, Verdict{OK: true}},
		{"at the threshold", nil, Arrival{Delay: 160 * us}, Verdict{OK: true}},
		{"above", nil, Arrival{Delay: 161 * us}, Verdict{false, ReasonOverloaded, AdviceDoNotRetry, 81 * us}},
		{"sheddable", nil, Arrival{Delay: 41 * us, Level: Sheddable}, Verdict{false, ReasonOverloaded, AdviceDoNotRetry, 0}},
		{"a method's level", nil, Arrival{Delay: 161 * us, Method: &Method{level: CriticalPlus}}, Verdict{OK: true}},
		{"its own goes before", nil, Arrival{Delay: 61 * us, Level: SheddablePlus, Method: &Method{level: CriticalPlus}}, Verdict{false, ReasonOverloaded, AdviceDoNotRetry, 0}},
		{"too late", nil, Arrival{Deadline: at(ms), Wait: 1, Method: &worked}, Verdict{false, ReasonExpired, AdviceNone, 0}},
		{"its method's rate", nil, Arrival{Method: &slow}, Verdict{false, ReasonMethodRate, AdviceNone, time.Second}},
		{"its client's rate", nil, Arrival{Client: &client}, Verdict{false, ReasonClientRate, AdviceNone, 100 * ms}},
		{"draining", func(d *Door) { d.Drain(true) }, Arrival{}, Verdict{false, ReasonDraining, AdviceNone, 0}},
		{"drained no more", func(d *Door) { d.Drain(true); d.Drain(false) }, Arrival{}, Verdict{OK: true}},
		{"retries off", func(d *Door) { d.RetriesOff(true) }, Arrival{Attempt: 1}, Verdict{false, ReasonRetriesOff, AdviceDoNotRetry, 0}},
		{"a first attempt", func(d *Door) { d.RetriesOff(true) }, Arrival{}, Verdict{OK: true}},
		{"no refusal asks for another", func(d *Door) { d.RetriesOff(true) }, Arrival{Client: &client}, Verdict{false, ReasonClientRate, AdviceDoNotRetry, 100 * ms}},
		{"shed", func(d *Door) { d.ShedShare(1) }, Arrival{Level: CriticalPlus}, Verdict{false, ReasonShed, AdviceDoNotRetry, 0}},
		{"cold", func(d *Door) { d.Warmup(time.Hour) }, Arrival{}, Verdict{false, ReasonWarmup, AdviceNone, time.Hour}},
		{"no CPU to spare", func(d *Door) { d.Headroom(1); d.headroom.bucket.Take(at(0), 100_000) }, Arrival{Method: &worked},
			Verdict{false, ReasonHeadroom, AdviceDoNotRetry, ms}},
	} {
		d := NewDoor(DoorConfig{Target: 80 * us})
		if c.lever != nil {
			c.lever(&d)
		}
		got := d.decide(at(0), c.a)
		if c.want.Reason == ReasonHeadroom {
			got.RetryAfter = c.want.RetryAfter // tested by itself
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		n := d.Counters()
		if n.Arrivals != 1 || n.Admitted+n.RefusedAll() != 1 || (n.Refused[got.Reason] == 1) == got.OK {
			t.Errorf("%s: counted %+v", c.name, n)
		}
	}
}

// TestDoorBeforeAScheme leaves what is Critical and above to the scheme, and shows it a shorter delay for the most critical.
func TestDoorBeforeAScheme(t *testing.T) {
	d := NewDoor(DoorConfig{Target: 80 * us, Scheme: true})
	for level, want := range map[Level]bool{Sheddable: false, SheddablePlus: false, Critical: true, CriticalPlus: true, Unset: true} {
		d := NewDoor(DoorConfig{Target: 80 * us, Scheme: true}) // or the floor would let one in
		if got := d.decide(at(0), Arrival{Delay: time.Second, Level: level}); got.OK != want {
			t.Errorf("level %d: %+v", level, got)
		}
	}
	for level, want := range map[Level]time.Duration{Sheddable: 100 * us, Critical: 100 * us, Unset: 100 * us, 9: 100 * us, CriticalPlus: 80 * us} {
		if got := d.Seen(&Arrival{Delay: 100 * us, Level: level}); got != want {
			t.Errorf("level %d: seen as %v", level, got)
		}
	}
}

// TestDoorStorm: while there is a retry storm, no refusal asks for another attempt.
func TestDoorStorm(t *testing.T) {
	d := NewDoor(DoorConfig{Target: 80 * us})
	client := NewBucket(1, 1)
	client.Take(at(0), 1)
	refused := Arrival{Delay: 100 * us, Client: &client}
	if v := d.decide(at(0), refused); v.Advice != AdviceNone {
		t.Errorf("in calm times: %+v", v)
	}
	for range 100 {
		d.decide(at(0), Arrival{Delay: 100 * us, Attempt: 1})
	}
	if v := d.decide(at(0), refused); v.Advice != AdviceDoNotRetry || !d.Storm() || d.Counters().Storms != 1 {
		t.Errorf("in a storm: %+v", v)
	}
	d.decide(at(time.Minute), Arrival{})
	if v := d.decide(at(time.Minute), refused); !v.OK && v.Advice != AdviceNone || d.Storm() {
		t.Errorf("after it: %+v", v)
	}
}

// TestDoorSpendsOnceOrNotAtAll: who is refused for want of one kind of token has all others back.
func TestDoorSpendsOnceOrNotAtAll(t *testing.T) {
	d := NewDoor(DoorConfig{Target: 80 * us})
	d.Headroom(0.5)
	full := d.headroom.bucket.parts
	m := NewMethod(MethodConfig{Rate: 10, Burst: 5, Cost: 3})
	m.Age.Sample(ms)
	client := NewBucket(10, 100)
	a := Arrival{Method: &m, Client: &client}
	if v := d.decide(at(0), a); !v.OK {
		t.Fatal(v)
	}
	d.Return(&a)
	check := func(what string, spentMethod, spentClient int64) {
		t.Helper()
		if m.Bucket.parts != (5-spentMethod)*tokenParts || client.parts != (100-spentClient)*tokenParts || (d.headroom.bucket.parts == full) != (spentClient == 0) {
			t.Errorf("%s: %d, %d, %d parts are left", what, m.Bucket.parts, client.parts, d.headroom.bucket.parts)
		}
	}
	check("given back", 0, 0)
	d.decide(at(0), a)
	check("spent", 3, 3)
	if v := d.decide(at(0), a); v.Reason != ReasonMethodRate {
		t.Fatal(v)
	}
	check("refused", 3, 3)
}

func TestPressure(t *testing.T) {
	d := NewDoor(DoorConfig{Target: 80 * us})
	for delay, want := range map[time.Duration]float64{-5: 0, 0: 0, 40 * us: 0.5, 80 * us: 1, 240 * us: 3} {
		if got := d.Pressure(delay); got != want {
			t.Errorf("%v: %v", delay, got)
		}
	}
}

// chain is what every request goes through by default, with buckets on top.
func chain(d *Door, m *Method, client *Bucket, now clock.Time, i int) {
	a := Arrival{
		Delay: time.Duration(i%100) * us, Wait: 5 * us, Deadline: now.Add(500 * us), Level: Level(i % 5), Attempt: uint8(i) & 1, Method: m, Client: client,
	}
	d.Arrive(now, a.Attempt, a.Delay)
	if d.Decide(now, &a).OK {
		m.Age.Sample(10 * us)
	}
}

// BenchmarkDoor is the whole chain for one request: counting, deciding, learning. The bound is 100 ns, without allocation.
func BenchmarkDoor(b *testing.B) {
	for _, c := range []struct {
		name   string
		weight int
		pull   func(*Door)
	}{{"default", 0, func(*Door) {}}, {"weights", 1, func(*Door) {}}, {"levers", 0, func(d *Door) {
		d.ShedShare(0.1)
		d.Headroom(0.1)
		d.Warmup(time.Second)
	}}} {
		b.Run(c.name, func(b *testing.B) {
			d, m, client := NewDoor(DoorConfig{CPUs: 8}), NewMethod(MethodConfig{Rate: 1_000_000, Weight: c.weight}), NewBucket(1_000_000, 1000)
			c.pull(&d)
			b.ReportAllocs()
			now, i := at(0), 0
			for b.Loop() {
				now, i = now.Add(us), i+1
				chain(&d, &m, &client, now, i)
			}
		})
	}
}

func TestDoorAllocatesNothing(t *testing.T) {
	d, m, client := NewDoor(DoorConfig{CPUs: 8}), NewMethod(MethodConfig{Rate: 100_000, Weight: 1}), NewBucket(100_000, 100)
	d.ShedShare(0.1)
	d.Headroom(0.1)
	d.Warmup(time.Second)
	now, i := at(0), 0
	if n := testing.AllocsPerRun(5000, func() {
		now, i = now.Add(us), i+1
		chain(&d, &m, &client, now, i)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
