//go:build linux

package main

import (
	"context"
	"errors"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/checker"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// The arms.
const (
	armOurs   = "defaults" // a budget for each client, and requests that say that somebody above repeats them
	armBudget = "budgets"  // a budget for each client alone
	armNone   = "none"     // three attempts each, whatever it costs
)

// The troubles of the leaf.
const (
	troubleKilled      = "killed"
	troubleUnavailable = "unavailable"
	troubleRefuses     = "refuses"
	troubleHangs       = "hangs"
)

var moods = map[string]mood{troubleUnavailable: moodUnavailable, troubleRefuses: moodRefuses, troubleHangs: moodHangs}

// run is one trouble under one arm.
type run struct{ trouble, arm string }

func runs() []run {
	return []run{
		{troubleKilled, armOurs}, {troubleKilled, armBudget}, {troubleKilled, armNone},
		{troubleUnavailable, armOurs}, {troubleUnavailable, armBudget}, {troubleUnavailable, armNone},
		{troubleRefuses, armOurs}, {troubleRefuses, armNone},
		{troubleHangs, armOurs}, {troubleHangs, armNone},
	}
}

// Calls have four times what three attempts of a millisecond's answer need at each layer, so that a machine that is late does not make them two: middle's calls of the
// leaf wait for four attempts, front's for four of these, and the user's for nearly four of those.
const (
	callMiddle = 4
	callFront  = 16
	callUser   = 60
)

// habits are those of user, front and middle. Only who calls the leaf waits in vain; the others are told.
func (s settings) habits(which run) (h [atLeaf]habits) {
	for at, attempts := range [...]time.Duration{atUser: callUser, atFront: callFront, atMiddle: callMiddle} {
		h[at].Call = attempts * s.attempt
		h[at].Unbudgeted = which.arm == armNone
		h[at].Apart = which.arm != armOurs
		h[at].Stubborn = which.arm == armNone && which.trouble == troubleRefuses
	}
	h[atMiddle].Attempt = s.attempt
	return h
}

// result is what was seen of one run.
type result struct {
	Kind    string `json:"kind"`
	Round   int    `json:"round"`
	Trouble string `json:"trouble"`
	Arm     string `json:"arm"`

	Users    int     `json:"user_request_count"`      // that arose during the trouble
	Attempts float64 `json:"attempts_per_request"`    // of theirs, at the leaf
	Whole    int     `json:"whole_request_count"`     // of them: had their whole time within the trouble
	Deep     float64 `json:"attempts_of_whole"`       // for each of these
	Most     uint64  `json:"attempts_of_one_request"` // at most
	Packets  float64 `json:"packets_per_request"`     // during the trouble, everything that middle sends to the leaf
	Each     float64 `json:"packets_per_attempt"`

	Sent    [2]uint64 `json:"packets_sent_counts"` // to the dead leaf: surely after its kernel was asked first and before it was last, and surely not before or after
	Reached uint64    `json:"packets_reached_count"`
	Arrived uint64    `json:"arrived_count"`  // at the leaf's door, in the whole run; of a leaf that was killed, in its second life
	Left    uint64    `json:"attempts_count"` // attempts at it, in the whole run

	Retries       [3]uint64 `json:"retry_counts"` // of user, front and middle
	BudgetRefused [3]uint64 `json:"budget_refused_counts"`

	GoodBefore float64        `json:"good_share_before"`
	GoodDuring float64        `json:"good_share_during"`
	During     map[string]int `json:"ended_during_counts"`  // the user's requests that arose in the trouble, by how they ended
	Outside    map[string]int `json:"ended_outside_counts"` // the others
	Length     time.Duration  `json:"trouble_ns"`
	Return     time.Duration  `json:"return_to_whole_ns"`
	Returned   bool           `json:"returned"`
}

// trouble is what was noted of it.
type trouble struct {
	from, to      clock.Time
	before, after traffic // surely all that was sent in it, or a little more
	sent          [2]uint64
	reached       uint64
}

// play makes one run.
func (s settings) play(ctx context.Context, r *prove.Run, which run, seed uint64) (one result, err error) {
	g, err := start(ctx, r, s.habits(which))
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	loading, stop := context.WithCancel(ctx)
	defer stop()
	var users []ended
	over := make(chan error, 1)
	go func() {
		var err error
		users, err = g.load(loading, loadRequest{PerS: s.rate, Duration: s.before + s.down + s.after, Seed: seed})
		over <- err
	}()
	if err := pause(ctx, s.before); err != nil {
		return one, err
	}
	t, err := s.trouble(ctx, g, which.trouble)
	if err != nil {
		return one, err
	}
	if err := <-over; err != nil {
		return one, err
	}
	one = result{Kind: "run", Trouble: which.trouble, Arm: which.arm}
	return one, s.judge(ctx, g, &one, t, users)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// trouble makes it, and ends it.
func (s settings) trouble(ctx context.Context, g *graph, kind string) (t trouble, err error) {
	if t.before, err = g.traffic(ctx); err != nil {
		return t, err
	}
	if kind == troubleKilled {
		err = s.killed(ctx, g, &t)
	} else {
		t.from = clock.Now()
		err = g.call(ctx, atLeaf, "mood", moods[kind], nil)
		if err == nil {
			err = pause(ctx, s.down)
		}
		if err == nil {
			err = g.call(ctx, atLeaf, "mood", moodWell, nil)
		}
		t.to = clock.Now()
	}
	if err == nil {
		t.after, err = g.traffic(ctx)
	}
	return t, err
}

// settle is how long a packet may be on its way from where it is counted to where it is counted again.
const settle = 20 * time.Millisecond

// killed keeps the leaf dead. What its kernel counts is asked within, and without, of what was sent.
func (s settings) killed(ctx context.Context, g *graph, t *trouble) (err error) {
	t.from = clock.Now()
	if err = g.killLeaf(ctx); err != nil {
		return err
	}
	var sent [4]traffic
	var reached [2]uint64
	steps := []func() error{
		func() error { sent[0], err = g.traffic(ctx); return err },
		func() error { return pause(ctx, settle) },
		func() error { reached[0], err = g.portless(); return err },
		func() error { sent[1], err = g.traffic(ctx); return err },
		func() error { return pause(ctx, s.down-clock.Now().Sub(t.from)) },
		func() error { sent[2], err = g.traffic(ctx); return err },
		func() error { return pause(ctx, settle) },
		func() error { reached[1], err = g.portless(); return err },
		func() error { sent[3], err = g.traffic(ctx); return err },
		func() error { return g.restartLeaf(ctx) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	t.to = clock.Now()
	t.sent = [2]uint64{sent[2].Packets - sent[1].Packets, sent[3].Packets - sent[0].Packets}
	t.reached = reached[1] - reached[0]
	return nil
}

// judge sums up, when all of the user's requests have ended.
func (s settings) judge(ctx context.Context, g *graph, one *result, t trouble, users []ended) error {
	sent, err := g.traffic(ctx)
	if err != nil {
		return err
	}
	leaf, err := g.seen(ctx, atLeaf)
	if err != nil {
		return err
	}
	for at := range one.Retries {
		stats, err := g.stats(ctx, at)
		if err != nil {
			return err
		}
		one.Retries[at], one.BudgetRefused[at] = stats.AttemptCounts.Retries, stats.BudgetRefused
	}
	one.Arrived = leaf.Offered - min(leaf.Offered, workers) // without those that made the sessions known
	one.Left, one.Sent, one.Reached, one.Length = sent.sum(), t.sent, t.reached, t.to.Sub(t.from)
	one.count(users, sent.Attempts, t.from, t.to, callUser*s.attempt)
	packets := float64(t.after.Packets - t.before.Packets)
	one.Packets = packets / float64(max(one.Users, 1))
	one.Each = packets / float64(max(t.after.sum()-t.before.sum(), 1))
	one.recover(users, t, s)
	one.During, one.Outside = endings(users, t, s.limit)
	return nil
}

// endings counts how requests ended, those that arose in the trouble and the others.
func endings(users []ended, t trouble, limit time.Duration) (during, outside map[string]int) {
	during, outside = map[string]int{}, map[string]int{}
	for _, u := range users {
		how, of := u.Error, outside
		switch {
		case u.OK && u.Finished.Sub(u.Due) <= limit:
			how = "good"
		case u.OK:
			how = "late"
		}
		if u.Due >= t.from && u.Due < t.to {
			of = during
		}
		of[how]++
	}
	return during, outside
}

// count is of the requests that arose during the trouble, and of those of them that cannot have outlived it.
func (one *result) count(users []ended, attempts map[uint64]uint64, from, to clock.Time, life time.Duration) {
	var all, deep uint64
	for i, u := range users {
		if u.Due < from || u.Due >= to {
			continue
		}
		n := attempts[uint64(i+1)]
		one.Users++
		all += n
		one.Most = max(one.Most, n)
		if u.Due.Add(life) <= to {
			one.Whole++
			deep += n
		}
	}
	one.Attempts = float64(all) / float64(max(one.Users, 1))
	one.Deep = float64(deep) / float64(max(one.Whole, 1))
}

// recover looks at the goodput.
func (one *result) recover(users []ended, t trouble, s settings) {
	endings := make([]checker.Ending, len(users))
	for i, u := range users {
		endings[i] = checker.Ending{Mark: uint64(i + 1), Due: u.Due, Finished: u.Finished, Outcome: checker.OK}
		if !u.OK {
			endings[i].Outcome = checker.Failed
		}
	}
	g := prove.NewGoodput(endings, s.limit)
	one.GoodBefore = g.Share(t.from.Add(-s.before), t.from.Add(-s.limit)) // what arose just before may have lost its answer
	one.GoodDuring = g.Share(t.from, t.to)
	one.Return, one.Returned = g.Whole(t.to, prove.RecoveredShare*one.GoodBefore)
	one.Returned = one.Returned && one.GoodBefore > 0
}
