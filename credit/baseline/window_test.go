package baseline

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
)

func TestWindow(t *testing.T) {
	w := must(t, Window, Params{Slots: 8}).NewPolicy().(*window) // SLO 200 us
	near := func(what string, want float64) {
		t.Helper()
		if math.Abs(w.size-want) > 1e-9 {
			t.Fatalf("%s: %v, want %v", what, w.size, want)
		}
		ok, again := w.CanSend(at(0), int(want)-1)
		if !ok || again != 0 {
			t.Fatalf("%s: not %d at once", what, int(want))
		}
		if ok, again = w.CanSend(at(0), int(want)); ok || again != 0 {
			t.Fatalf("%s: more than %d at once", what, int(want))
		}
	}
	good := client.Answer{Latency: 200 * us}
	near("at the start", 1)
	w.Answered(at(0), good)
	near("one answer", 2)
	w.Answered(at(0), good)
	near("half a window", 2.5)
	w.Answered(at(0), good)
	near("a window", 2.9)
	for range 1000 {
		w.Answered(at(0), good)
	}
	near("all slots", 8)
	w.Answered(at(time.Second), client.Answer{Latency: 200*us + 1})
	near("an answer too late", 4)
	w.Answered(at(time.Second), client.Answer{Latency: time.Millisecond, Lost: true})
	w.Answered(at(time.Second+50*us), client.Answer{Latency: 51 * us, Rejected: true})
	near("others that were sent before that", 4)
	w.Answered(at(time.Second+50*us), client.Answer{Latency: 50 * us, Rejected: true})
	near("a rejection", 2)
	w.Answered(at(2*time.Second), client.Answer{Latency: 10 * us, Lost: true})
	near("a loss", 1)
	w.Answered(at(3*time.Second), client.Answer{Latency: 10 * us, Lost: true})
	near("the least", 1)
}
