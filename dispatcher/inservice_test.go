package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// round starts as many as are let in, and ends them all; each took so long.
func (s *inService) round(base, took time.Duration) (started int) {
	for !s.full(1) {
		s.start()
		started++
	}
	for range started {
		s.end(1, base, took)
	}
	return started
}

func TestInService(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		name       string
		adapts     bool
		base, took time.Duration
		want       int
	}{
		{"twice as long as alone is all right", true, 100 * us, 200 * us, 100},
		{"longer: as many as there are CPUs, and one", true, 100 * us, 203 * us, 5},
		{"as published: the workers, always", false, 100 * us, 1000 * us, 100},
		{"how long they take alone is not known", true, 0, 1000 * us, 100},
		{"handlers that take no time", true, 100, 1100, 100},
	} {
		s := newInService(100, 4, c.adapts)
		for range 200 {
			s.round(c.base, c.took)
		}
		if s.limit != c.want || s.now != 0 {
			t.Errorf("%s: at most %d in service, want %d", c.name, s.limit, c.want)
		}
	}
}

// The bound rises again when they no longer wait for each other, and only while it is met.
func TestInServiceRises(t *testing.T) {
	s := newInService(100, 4, true)
	for s.limit > 5 {
		s.round(10*time.Microsecond, time.Millisecond)
	}
	for range windowOf * 10 {
		s.start()
		s.end(1, 10*time.Microsecond, 10*time.Microsecond)
	}
	if s.limit != 5 {
		t.Errorf("one at a time: %d, and the bound was never met", s.limit)
	}
	for range 10_000 {
		s.round(10*time.Microsecond, 10*time.Microsecond)
	}
	if s.limit != 100 {
		t.Errorf("at most %d, want the workers again", s.limit)
	}
}

// Whoever finds a CPU free is alone; that is what the others are held against.
func TestInServiceAlone(t *testing.T) {
	s := newInService(3, 2, true)
	for i, want := range []bool{true, true, false} {
		if s.full(1) || s.start() != want {
			t.Errorf("request %d: alone is %v", i, !want)
		}
	}
	if !s.full(1) {
		t.Error("a fourth one is let in")
	}
}

// Handlers that call others of the same server must not fill the bound, and then wait for ever for what it keeps from starting.
func TestInServiceStandsStill(t *testing.T) {
	s := newInService(100, 4, true)
	for s.limit > 5 {
		s.round(10*time.Microsecond, time.Millisecond)
	}
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
}
