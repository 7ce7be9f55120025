package admit

import "testing"

// TestDownstream is a transcript.
func TestDownstream(t *testing.T) {
	var d Downstream
	for i, c := range []struct {
		granted, waiting, pool uint64
		want                   uint64
	}{
		{4, 0, 100, 0},  // little is granted to who wants little
		{4, 9, 100, 0},  // a burst
		{4, 0, 100, 0},  // that is over
		{10, 9, 100, 0}, // they wait,
		{10, 9, 100, 50},
		{10, 9, 50, 25},
		{10, 9, 25, 12},
		{10, 9, 12, 10}, // as many as were granted
		{30, 9, 10, 30}, // it follows at once when more are
		{30, 0, 30, 33}, // and goes on by itself when nobody waits
		{30, 0, 33, 37},
		{2, 1, 37, 37}, // a burst again
		{2, 1, 37, 18},
		{0, 1, 18, 9},
		{0, 1, 9, 4},
		{0, 1, 4, 2},
		{0, 1, 2, 1},
		{0, 1, 1, 1}, // never none: it would not be seen when there are some again
		{0, 0, 1, 0}, // twice the pool: gone
	} {
		if got := d.Update(c.granted, c.waiting, c.pool); got != c.want {
			t.Errorf("step %d: %d, want %d", i, got, c.want)
		}
	}
}

// TestDownstreamLetsGo: whatever it was, nobody who waits no more is bounded for ever.
func TestDownstreamLetsGo(t *testing.T) {
	for _, pool := range []uint64{0, 1, 7, 1000, 1 << 40} {
		d := Downstream{ceiling: 1}
		n := 0
		for ; d.Update(0, 0, pool) != 0; n++ {
			if n > 300 {
				t.Fatalf("pool %d: still %d", pool, d.ceiling)
			}
		}
	}
}
