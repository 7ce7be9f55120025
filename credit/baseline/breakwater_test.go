package baseline

import (
	"math"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

func newPaper(t *testing.T) (*paper, *stepped) {
	c := must(t, BreakwaterPaper, Params{Workers: 10}).NewController().(*paper)
	c.Resize(1000)
	return c, &stepped{c, at(0), time.Second}
}

// TestPaperPool steps the pool by hand. Who is active and what is issued does not matter.
func TestPaperPool(t *testing.T) {
	c, s := newPaper(t)
	if c.Pool() != 10 {
		t.Fatalf("the first pool is %d, not the workers", c.Pool())
	}
	for _, load := range []credit.Load{{}, {Issued: 500, Active: true}, {Issued: 100_000}} {
		was := c.Pool()
		if s.update(80*us-1, load); c.Pool() != was+1 {
			t.Fatalf("%+v: from %d to %d", load, was, c.Pool())
		}
	}
	for _, x := range []struct {
		name     string
		sessions uint64
		pool     float64
		delay    time.Duration
		want     float64
	}{
		{"at the target", 1000, 1000, 80 * us, 1000},
		{"twice the target", 1000, 1000, 160 * us, 980},
		{"51 times the target", 1000, 1000, 51 * 80 * us, 500},
		{"few clients", 10, 100, 0, 101},
		{"many clients", 5000, 100, 0, 105},
		{"a fraction is kept", 1500, 100, 0, 101.5},
		{"a decrease that rounds to nothing is kept", 1000, 20, 88 * us, 20 * 0.998},
		{"all slots", 1, 256, 0, 256},
		{"the workers", 1000, 10, time.Second, 10},
		{"nobody left", 0, 500, 0, 10},
	} {
		c.Resize(x.sessions)
		c.pool = x.pool
		if s.update(x.delay, credit.Load{}); math.Abs(c.pool-x.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", x.name, c.pool, x.want)
		}
	}
	if c.Update(s.now.Add(10*us-1), credit.Signal{}, credit.Load{}) || c.UpdateDue(s.now) || !c.UpdateDue(s.now.Add(10*us)) {
		t.Error("an unknown round trip is not 10 us")
	}
	if c.Update(s.now.Add(10*us), credit.Signal{RTT: 30 * us}, credit.Load{}); c.UpdateDue(s.now.Add(40*us-1)) || !c.UpdateDue(s.now.Add(40*us)) {
		t.Error("the period is not the round trip")
	}
}

func TestPaperWindowAndDoor(t *testing.T) {
	c, _ := newPaper(t)
	c.Resize(10)
	c.pool = 100.9
	for _, x := range []struct {
		name string
		h    credit.Holding
		want uint64
	}{
		{"below the pool", credit.Holding{Issued: 50, Window: 3, Pending: 2, Demand: 4}, 2 + 4 + 5},
		{"no more than the pool has", credit.Holding{Issued: 98, Window: 3, Pending: 2, Demand: 40}, 5},
		{"all is issued", credit.Holding{Issued: 100, Window: 3, Pending: 2, Demand: 4}, 3},
		{"above the pool", credit.Holding{Issued: 101, Window: 3, Pending: 2, Demand: 4}, 2},
		{"no floor", credit.Holding{Issued: 101, Window: 1}, 0},
	} {
		if got := c.Window(x.h); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
	}
	if !c.Admit(credit.Arrival{Delay: 160 * us}) || c.Admit(credit.Arrival{Delay: 160*us + 1}) {
		t.Error("the door")
	}
}

// TestPaperTwin compares with the law in two lines, at random.
func TestPaperTwin(t *testing.T) {
	rng := seedtest.Rand(t)
	c, s := newPaper(t)
	pool, sessions := 10.0, 1000.0
	for i := range 20_000 {
		if rng.IntN(50) == 0 {
			sessions = float64(rng.IntN(5000))
			c.Resize(uint64(sessions))
			pool = max(min(pool, 256*sessions), 10)
		}
		delay := time.Duration(rng.IntN(100_000))
		s.update(delay, credit.Load{Issued: rng.Uint64N(10_000), Active: rng.IntN(2) == 0})
		if over := float64(delay-80*us) / float64(80*us); over < 0 {
			pool += max(0.001*sessions, 1)
		} else {
			pool *= max(1-0.02*over, 0.5)
		}
		if pool = max(min(pool, 256*sessions), 10); math.Abs(c.pool-pool) > 1e-6*pool {
			t.Fatalf("step %d: %v, want %v", i, c.pool, pool)
		}
		c.pool = pool // what was rounded differently must not add up
	}
}

// TestStillwaterHasItsFloor: of its own settings only that one can be switched off here.
func TestStillwaterHasItsFloor(t *testing.T) {
	for _, without := range []bool{false, true} {
		c := must(t, Stillwater, Params{NoFloor: without}).NewController()
		if got := c.Window(credit.Holding{Issued: 2000, Window: 1}); (got == 0) != without {
			t.Errorf("NoFloor %v: %d", without, got)
		}
	}
}
