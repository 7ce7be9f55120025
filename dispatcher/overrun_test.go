package dispatcher

import (
	"testing"
	"time"
)

// What the queue takes longer than its work is learnt, within its bounds, and forgotten again.
func TestOverrun(t *testing.T) {
	const us = time.Microsecond
	var o overrun
	if o.factor() != 1 {
		t.Fatalf("%v before the first request", o.factor())
	}
	o.sample(50*us, 0) // found nothing before it, and waited all the same: says nothing
	for _, c := range []struct {
		waited time.Duration
		want   float64
	}{{120 * us, 1.2}, {40 * us, 1}, {-us, 1}, {time.Second, overrunMax}, {100 * us, 1}} {
		for range 5000 {
			o.sample(c.waited, 100*us)
		}
		if got := o.factor(); got < c.want-0.01 || got > c.want+0.01 {
			t.Errorf("requests wait %v of 100 us: %v", c.waited, got)
		}
	}
}

func TestMayWait(t *testing.T) {
	d := New(Config{}, &arriving{})
	d.server.Parallel = 10
	d.server.queue.work = time.Millisecond
	if got := d.mayWait(); got != 100*time.Microsecond {
		t.Errorf("nothing is known: %v", got)
	}
	d.server.overrun.sample(150, 100)
	if got := d.mayWait(); got != 150*time.Microsecond {
		t.Errorf("half of it on top: %v", got)
	}
}
