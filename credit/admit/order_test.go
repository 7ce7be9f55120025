package admit

import (
	"testing"
	"time"
)

// TestOrder is a transcript: the age of the oldest, and which end is served.
func TestOrder(t *testing.T) {
	o := NewOrder(OrderConfig{NewestFirst: 100 * us})
	for i, c := range []struct {
		age    time.Duration
		newest bool
	}{
		{0, false}, {100 * us, false}, {100*us + 1, true}, {400 * us, true},
		{60 * us, true}, {50 * us, true}, {50*us - 1, false}, {100 * us, false}, {time.Hour, true}, {0, false},
	} {
		if got := o.Newest(c.age); got != c.newest {
			t.Errorf("step %d, age %v: newest first is %v", i, c.age, got)
		}
	}
	if o.Expired(400*us) || !o.Expired(400*us+1) || o.ExpiresAfter() != 400*us {
		t.Error("does not expire after four times as long as it takes to turn")
	}
	var fifo Order
	if fifo.Newest(time.Hour) || fifo.Expired(time.Hour) {
		t.Error("the zero order is not first come, first served")
	}
	own := NewOrder(OrderConfig{NewestFirst: 100 * us, Expire: 150 * us})
	if own.Expired(150*us) || !own.Expired(151*us) {
		t.Error("an expiry that was named is not kept")
	}
}
