//go:build linux

package main

import (
	"context"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bench/prove"
)

// graphOf starts the four processes for the length of the test.
func graphOf(t *testing.T, s settings, which run) *graph {
	t.Helper()
	labtest.Require(t)
	g, err := start(context.Background(), prove.NewRun("layers", 1), s.habits(which))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// A call that its user cancels stops the handlers in all three processes.
func TestCancelledCallsStopAllLayers(t *testing.T) {
	labtest.Require(t)
	c, err := settings{cancels: 5}.cancel(context.Background(), prove.NewRun("layers", 1))
	if err != nil {
		t.Fatal(err)
	}
	if c.Stopped != [3]int{5, 5, 5} || c.Told != [3]uint64{5, 5, 5} {
		t.Errorf("%+v", c)
	}
	for i, last := range c.Last {
		if last <= 0 {
			t.Errorf("layer %d had stopped %v before it was told", i, -last)
		}
	}
}

// While the leaf can do nothing, three attempts each make 27 of one, and with the defaults the user alone repeats, a tenth of its requests and what a budget begins with. All that is
// counted on the way to the leaf runs there.
func TestAttemptsAtALeafThatCannot(t *testing.T) {
	for _, arm := range []string{armOurs, armBudget, armNone} {
		s := settings{attempt: guardTime} // nothing is late
		g := graphOf(t, s, run{troubleUnavailable, arm})
		ctx := context.Background()
		must(t, g.call(ctx, atLeaf, "mood", moodUnavailable, nil))
		begin := time.Now()
		users, err := g.load(ctx, loadRequest{PerS: 200, Duration: 100 * ms, Seed: 1})
		must(t, err)
		took := time.Since(begin)
		sent, err := g.traffic(ctx)
		must(t, err)
		leaf, err := g.seen(ctx, atLeaf)
		must(t, err)
		for i, u := range users {
			mark := uint64(i + 1)
			if u.OK || uint64(leaf.Ran[mark]) != sent.Attempts[mark] {
				t.Errorf("%s: request %d: %+v, %d attempts, of which %d ran", arm, mark, u, sent.Attempts[mark], leaf.Ran[mark])
			}
			if arm == armNone && sent.Attempts[mark] != 27 {
				t.Errorf("request %d made %d attempts at the leaf", mark, sent.Attempts[mark])
			}
			if sent.Attempts[mark] == 0 {
				t.Errorf("%s: request %d never came to the leaf", arm, mark)
			}
		}
		all, n := float64(sent.sum()), float64(len(users))
		retries := n*budgetRatio + budgetBurst + budgetFloor*took.Seconds() + 1
		if arm == armOurs && all > n+retries || arm == armBudget && all > n*budgets(len(users), took) {
			t.Errorf("%s: %v attempts at the leaf for %v requests", arm, all, n)
		}
		if len(users) == 0 || arm == armBudget && all <= n {
			t.Errorf("%s: %v attempts for %v requests: nothing was tried", arm, all, n)
		}
	}
}

// What a user's requests cost a leaf that is dead is bounded however long it takes; its kernel sees all of it; and when it is back they are answered.
func TestLeafDiesAndReturns(t *testing.T) {
	s := settings{attempt: 100 * ms}
	g := graphOf(t, s, run{troubleKilled, armOurs})
	ctx := context.Background()
	must(t, g.killLeaf(ctx))
	before, err := g.traffic(ctx)
	must(t, err)
	portless, err := g.portless()
	must(t, err)
	begin := time.Now()
	users, err := g.load(ctx, loadRequest{PerS: 200, Duration: 100 * ms, Seed: 1})
	must(t, err)
	after, err := g.traffic(ctx)
	must(t, err)
	n := float64(len(users))
	if all, most := float64(after.sum()), n*(1+budgetRatio)+budgetBurst+budgetFloor*time.Since(begin).Seconds()+1; all == 0 || all > most {
		t.Errorf("%v attempts at the leaf for %v requests, at most %v", all, n, most)
	}
	for _, u := range users {
		if u.OK {
			t.Errorf("a dead leaf answered: %+v", u)
		}
	}
	eventually(t, "its kernel has seen what was sent", func() bool {
		now, err := g.portless()
		must(t, err)
		return now-portless >= after.Packets-before.Packets
	})
	must(t, g.restartLeaf(ctx))
	eventually(t, "all is answered", func() bool {
		users, err := g.load(ctx, loadRequest{PerS: 200, Duration: 50 * ms, Seed: 2})
		must(t, err)
		for _, u := range users {
			if !u.OK {
				return false
			}
		}
		return len(users) > 0
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for what must come to be.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(ms) {
		if time.Since(begin) > guardTime {
			t.Fatalf("after %v it isn't so that %s", guardTime, what)
		}
	}
}
