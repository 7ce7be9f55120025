package clock

import (
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

type timed struct {
	id    int
	timer Timer[timed]
}

// expired drains the wheel at now and returns the ids that fired, sorted.
func expired(w *Wheel[timed], now Time) []int {
	var ids []int
	for t := w.Advance(now); t != nil; t = w.Advance(now) {
		ids = append(ids, t.Value.id)
	}
	slices.Sort(ids)
	return ids
}

func newTimed(n int) []timed {
	all := make([]timed, n)
	for i := range all {
		all[i].id = i
		all[i].timer.Value = &all[i]
	}
	return all
}

func TestWheelNeverEarly(t *testing.T) {
	w := NewWheel[timed](time.Microsecond, 64)
	x := newTimed(1)
	w.Arm(&x[0].timer, 5000)
	if got := w.Next(); got != 5000 {
		t.Fatalf("Next = %d", got)
	}
	if w.Advance(4999) != nil || !x[0].timer.Armed() {
		t.Fatal("fired one nanosecond early")
	}
	if got := w.Advance(5000); got != &x[0].timer || got.Armed() || w.Next() != 0 || w.Len() != 0 {
		t.Fatal("did not fire when due, or is still armed")
	}
}

func TestWheelEdges(t *testing.T) {
	w := NewWheel[timed](100*time.Nanosecond, 1)
	x := newTimed(4)
	expired(w, 1_000_000)
	w.Arm(&x[0].timer, 10)            // long ago
	w.Arm(&x[1].timer, 1_000_001)     // the tick of now, not due
	w.Arm(&x[2].timer, 1_000_000_000) // many revolutions away
	w.Arm(&x[3].timer, 1_000_002)
	w.Arm(&x[3].timer, 0) // unset means never
	if got := expired(w, 1_000_000); !slices.Equal(got, []int{0}) {
		t.Fatalf("fired %v", got)
	}
	if got := w.Next(); got != 1_000_001 {
		t.Fatalf("Next = %d", got)
	}
	w.Disarm(&x[1].timer)
	w.Disarm(&x[1].timer)
	if got := expired(w, 999_999_999); got != nil {
		t.Fatalf("fired %v", got)
	}
	if got := w.Next(); got != 1_000_000_000 {
		t.Fatalf("Next = %d: a stale bound must be corrected once", got)
	}
	if got := expired(w, 2_000_000_000); !slices.Equal(got, []int{2}) {
		t.Fatalf("fired %v", got)
	}
}

// A timer that is due but not handed out yet may still be disarmed or armed again.
func TestWheelDisarmWhileDue(t *testing.T) {
	w := NewWheel[timed](time.Microsecond, 64)
	x := newTimed(3)
	for i := range x {
		w.Arm(&x[i].timer, Time(10+i))
	}
	first := w.Advance(100)
	rest := []int{0, 1, 2}
	rest = slices.DeleteFunc(rest, func(i int) bool { return i == first.Value.id })
	if next := w.Next(); next == 0 || next > Time(10+rest[0]) {
		t.Fatalf("Next = %d with two due", next)
	}
	w.Disarm(&x[rest[0]].timer)
	w.Arm(&x[rest[1]].timer, 200)
	if w.Advance(100) != nil {
		t.Fatal("a disarmed or re-armed timer fired")
	}
	if got := expired(w, 200); !slices.Equal(got, rest[1:]) {
		t.Fatalf("fired %v, want %v", got, rest[1:])
	}
}

// The twin is a map from timer to instant: obvious, slow, and asked after every step.
func TestWheelAgainstTwin(t *testing.T) {
	random := seedtest.Rand(t)
	for round := range 40 {
		w := NewWheel[timed](time.Duration(1+random.IntN(3000)), 1<<random.IntN(10))
		x := newTimed(1 + random.IntN(50))
		twin := map[int]Time{}
		now := Time(1 + random.Int64N(1<<40))
		reach := int64(1) << (1 + random.IntN(30))
		for step := range 3000 {
			id := random.IntN(len(x))
			switch random.IntN(4) {
			case 0, 1:
				twin[id] = max(1, now+Time(random.Int64N(reach)-reach/8))
				w.Arm(&x[id].timer, twin[id])
			case 2:
				delete(twin, id)
				w.Disarm(&x[id].timer)
			case 3:
				now += Time(random.Int64N(reach/2 + 1))
				var want []int
				for id, when := range twin {
					if when <= now {
						want = append(want, id)
						delete(twin, id)
					}
				}
				slices.Sort(want)
				if got := expired(w, now); !slices.Equal(got, want) {
					t.Fatalf("round %d step %d: fired %v, want %v", round, step, got, want)
				}
			}
			checkTwin(t, w, x, twin)
		}
	}
}

func checkTwin(t *testing.T, w *Wheel[timed], x []timed, twin map[int]Time) {
	t.Helper()
	earliest := Time(0)
	for i := range x {
		if when := x[i].timer.When(); when != twin[i] {
			t.Fatalf("timer %d armed for %d, want %d", i, when, twin[i])
		}
		earliest = Earliest(earliest, twin[i])
	}
	if w.Len() != len(twin) {
		t.Fatalf("Len = %d, want %d", w.Len(), len(twin))
	}
	if next := w.Next(); next > earliest || (next == 0) != (earliest == 0) {
		t.Fatalf("Next = %d, earliest %d", next, earliest)
	}
}

// A jump over many revolutions with far timers only must not leave the bound stale: a sleeper wakes up once.
func TestWheelSleepsThrough(t *testing.T) {
	w := NewWheel[timed](time.Microsecond, 64)
	x := newTimed(100)
	for i := range x {
		w.Arm(&x[i].timer, Time(time.Second)+Time(i)*Time(time.Millisecond))
	}
	wakes, fired := 0, 0
	for w.Len() > 0 {
		wakes++
		fired += len(expired(w, w.Next()))
	}
	if wakes != 100 || fired != 100 {
		t.Fatalf("%d wake-ups for %d timers", wakes, fired)
	}
}

func TestWheelAllocatesNothing(t *testing.T) {
	w := NewWheel[timed](time.Microsecond, 256)
	x := newTimed(64)
	now := Time(1)
	allocs := testing.AllocsPerRun(1000, func() {
		for i := range x {
			w.Arm(&x[i].timer, now+Time(i*700))
		}
		now += 20000
		for w.Advance(now) != nil {
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations", allocs)
	}
}

func BenchmarkWheelArmDisarm(b *testing.B) {
	w := NewWheel[timed](time.Microsecond, 4096)
	x := newTimed(1024)
	b.ReportAllocs()
	for i := range b.N {
		t := &x[i%1024].timer
		w.Arm(t, Time(i+50000))
		w.Disarm(t)
	}
}

func BenchmarkWheelNothingDue(b *testing.B) {
	w := NewWheel[timed](time.Microsecond, 4096)
	x := newTimed(1)
	w.Arm(&x[0].timer, 1<<60)
	b.ReportAllocs()
	for i := range b.N {
		if w.Advance(Time(i)) != nil {
			b.Fatal("fired")
		}
	}
}
