package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// As many are let in as the bound says, whatever came of those before.
func TestInService(t *testing.T) {
	for _, adapts := range []bool{false, true} {
		s := newInService(3, 2, adapts)
		for range 100 * windowOf {
			for !s.full(1) {
				s.start()
			}
			if s.now != 3 {
				t.Fatalf("adapts %v: %d in service, want 3", adapts, s.now)
			}
			s.end(1, time.Second, 0)
		}
	}
}

// Handlers that call others of the same server must not fill the bound, and then wait for ever for what it keeps from starting.
func TestInServiceStandsStill(t *testing.T) {
	s := newInService(100, 4, true)
	s.limit, s.ended = 5, 1
	now := clock.Time(1)
	for !s.full(now) {
		s.start()
	}
	for started := 5; started < 100; started++ {
		if s.full(now.Add(standstillMax)) != true || s.now != started {
			t.Fatalf("%d in service, and one more is let in too early", s.now)
		}
		if now = now.Add(standstillMax + 1); s.full(now) {
			t.Fatalf("%d in service, none ends, and no other may start", s.now)
		}
		s.start()
	}
	if !s.full(now.Add(time.Hour)) {
		t.Error("more than there are workers")
	}
	// Handlers that all wait for a lock that is held for longer are let in in the same way, but the bound stays what it is for when they end.
	for range 95 {
		s.end(now, time.Millisecond, 0)
	}
	if s.limit != 5 || !s.full(now) {
		t.Errorf("the bound is %d, want 5", s.limit)
	}
}
