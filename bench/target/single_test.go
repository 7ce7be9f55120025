package target

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// One request after the other: a second begins where the first ended, however late its handler got the CPU, or when it arrived.
func TestSingleIsOneMachine(t *testing.T) {
	const ms = time.Millisecond
	at := func(d time.Duration) clock.Time { return clock.Time(time.Hour + d) }
	s := NewSingle(Slow{From: at(20 * ms), To: at(30 * ms), Times: 5})
	for i, x := range []struct{ arrived, takes, ends time.Duration }{
		{0, 2 * ms, 2 * ms},
		{ms, 3 * ms, 5 * ms},        // waits for the first
		{10 * ms, ms, 11 * ms},      // nobody is before it
		{10 * ms, 9 * ms, 20 * ms},  //
		{10 * ms, ms, 25 * ms},      // begins in bad times, at their first instant
		{10 * ms, ms, 30 * ms},      //
		{10 * ms, ms, 31 * ms},      // begins when they are over
		{25 * ms, 0, 31 * ms},       // no work
		{-20 * ms, 4 * ms, 35 * ms}, // a newest first queue hands an old one over
	} {
		if got := s.take(at(x.arrived), x.takes); got != at(x.ends) {
			t.Errorf("request %d ends at %v, want %v", i, got.Sub(at(0)), x.ends)
		}
	}
}
