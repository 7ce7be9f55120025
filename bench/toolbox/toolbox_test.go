package toolbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/dispatcher"
)

func TestJSONNamesTheArm(t *testing.T) {
	var lines bytes.Buffer
	tables, err := Run(t.Context(), Options{IDs: []string{"E4"}, Size: Small(), Out: &lines, JSON: true})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(lines.String()) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if o["schema"] != Schema || o["experiment"] != "E4" {
			t.Errorf("%s", line)
		}
		if _, check := o["check"]; check {
			continue
		}
		rows++
		if row := tables[0].Row(o["point"].(string), o["arm"].(string)); row == nil || o[figRefusals] != row.Mean(figRefusals) {
			t.Errorf("%s", line)
		}
	}
	if rows != len(tables[0].Rows) {
		t.Errorf("%d rows of %d", rows, len(tables[0].Rows))
	}
	if _, err := Run(t.Context(), Options{IDs: []string{"E6"}, Size: Small(), Out: &lines}); !errors.Is(err, ErrOptions) {
		t.Errorf("an unknown experiment: %v", err)
	}
}

// Every experiment has a control arm, and says so.
func TestEveryExperimentHasAControlArm(t *testing.T) {
	for _, e := range Experiments() {
		table := &Table{Experiment: e, Size: Small()}
		for _, j := range e.Jobs(Small()) {
			table.Rows = append(table.Rows, &Row{Panel: j.Panel, At: j.At, X: j.X, Arm: j.Arm, Samples: []Sample{{}}})
		}
		controls := 0
		for _, c := range e.Judge(table) {
			if c.Met {
				t.Errorf("%s: met without any figure: %s", e.ID, c.Text)
			}
			if strings.HasPrefix(c.Text, "the control arm") {
				controls++
			}
		}
		if controls == 0 {
			t.Errorf("%s has no control arm", e.ID)
		}
	}
}

// ending is a context that ends when it has been looked at so many times.
type ending struct {
	context.Context
	looks int
}

func (e *ending) Err() error {
	if e.looks--; e.looks < 0 {
		return context.Canceled
	}
	return nil
}

// A run that is under way ends with its context: at the third millisecond here, of minutes.
func TestRunsUnderWayEnd(t *testing.T) {
	for _, e := range Experiments() {
		for _, j := range e.Jobs(Full()) {
			ctx := &ending{t.Context(), 2}
			if _, err := j.Play(ctx, 1); !errors.Is(err, context.Canceled) || ctx.looks != -1 {
				t.Errorf("%s, %s, %s: %v, with %d looks left", e.ID, j.At, j.Arm, err, ctx.looks)
			}
		}
	}
}

func TestLRU(t *testing.T) {
	c := newLRU(2)
	c.put(1)
	c.put(2)
	if !c.get(1) {
		t.Error("1 is gone")
	}
	c.put(3) // takes the place of 2, which is now the oldest
	c.put(3)
	if c.get(2) || !c.get(1) || !c.get(3) || len(c.at) != 2 || c.order.Len() != 2 {
		t.Errorf("%v", c.at)
	}
}

func TestSettled(t *testing.T) {
	for _, c := range []struct {
		series []float64
		want   int
	}{
		{nil, -1},
		{[]float64{100, 100}, -1},
		{[]float64{100, 100, 100}, 0},
		{[]float64{0, 90, 95, 100}, 1},
		{[]float64{0, 300, 0, 0, 94, 94, 94}, 0}, // a burst counts as what it is: answers
		{[]float64{0, 0, 0, 94, 94, 94}, -1},
	} {
		if got := settled(c.series, 100); got != c.want {
			t.Errorf("%v: from %d, want %d", c.series, got, c.want)
		}
	}
}

func TestTally(t *testing.T) {
	w := stage(1)
	tally := &tally{w: w, within: time.Second, slice: time.Second, from: time.Second}
	tally.end(dispatcher.OutcomeOK, 0, time.Millisecond) // before it counts
	tally.end(dispatcher.OutcomeOK, time.Second, time.Second)
	tally.end(dispatcher.OutcomeOK, time.Second, time.Second+1)
	tally.end(dispatcher.OutcomeRejected, time.Second, time.Millisecond)
	tally.end(dispatcher.OutcomeExpired, time.Second, time.Millisecond)
	w.Run(3 * time.Second)
	if tally.made != 4 || tally.good != 1 || tally.answers != 2 || tally.refused != 2 || tally.per(tally.good) != 0.5 {
		t.Errorf("%+v", tally)
	}
	if len(tally.series) != 3 || tally.series[2] != 1 || tally.p99() != time.Second+1 {
		t.Errorf("%v, p99 %v", tally.series, tally.p99())
	}
}

// probe is a transport whose attempts end as a test says.
type probe struct {
	c         *caller
	deadlines []time.Duration
	dones     []func(client.Ended)
	cancelled []int
}

func newProbe(g client.GuardConfig, timeout time.Duration, tells bool) *probe {
	p := &probe{}
	p.c = &caller{
		w: stage(1), rng: rand.New(rand.NewPCG(1, 0)), guard: client.NewGuard(g), class: client.CallClass{Repeatable: true}, timeout: timeout, tells: tells,
		send: func(_ int, deadline time.Duration, done func(client.Ended)) func() {
			at := len(p.dones)
			p.deadlines, p.dones = append(p.deadlines, deadline), append(p.dones, done)
			return func() { p.cancelled = append(p.cancelled, at) }
		},
	}
	return p
}

// An attempt that is given up is followed by another one; its server hears of it only if the caller tells, and its late answer is nobody's.
func TestCallerGivesUp(t *testing.T) {
	for _, tells := range []bool{false, true} {
		p := newProbe(client.GuardConfig{Retry: client.RetryConfig{Attempts: 3, Budget: unlimited}}, time.Second, tells)
		var ended []bool
		p.c.call(func(ok bool) { ended = append(ended, ok) })
		p.c.w.Run(1500 * time.Millisecond)
		if len(p.dones) != 2 || len(ended) != 0 {
			t.Fatalf("%d attempts, %v", len(p.dones), ended)
		}
		p.dones[0](client.Ended{End: client.EndAnswered}) // late
		if len(ended) != 0 {
			t.Error("the answer to an attempt that was given up ended the call")
		}
		p.dones[1](client.Ended{End: client.EndAnswered})
		p.dones[1](client.Ended{End: client.EndAnswered})
		p.c.w.Run(time.Minute)
		if len(ended) != 1 || !ended[0] || p.c.attempts != 2 || len(p.dones) != 2 {
			t.Errorf("%v after %d attempts", ended, p.c.attempts)
		}
		if tells != (len(p.cancelled) == 1) || tells != (p.deadlines[0] == time.Second) {
			t.Errorf("tells %v: cancelled %v, deadlines %v", tells, p.cancelled, p.deadlines)
		}
	}
}

// The call ends when its attempts are used up, and once.
func TestCallerFails(t *testing.T) {
	p := newProbe(client.GuardConfig{Retry: client.RetryConfig{Attempts: 3, Budget: unlimited}}, time.Second, true)
	var ended []bool
	p.c.call(func(ok bool) { ended = append(ended, ok) })
	p.c.w.Run(time.Minute)
	if len(ended) != 1 || ended[0] || p.c.attempts != 3 {
		t.Errorf("%v after %d attempts", ended, p.c.attempts)
	}
}

// A hedge is sent beside a slow attempt, and whoever is first cancels the other.
func TestCallerHedges(t *testing.T) {
	const delay = 10 * time.Millisecond
	p := newProbe(client.GuardConfig{Hedge: client.HedgeConfig{Percentile: 0.5, Min: delay, Max: delay}, Retry: client.RetryConfig{Budget: unlimited}}, 0, true)
	ended := 0
	for range 40 { // until the percentile is known
		p.c.call(func(bool) { ended++ })
		p.dones[len(p.dones)-1](client.Ended{End: client.EndAnswered})
	}
	first := len(p.dones)
	p.c.call(func(bool) { ended++ })
	p.c.w.Run(p.c.w.Elapsed() + 2*delay)
	if len(p.dones) != first+2 {
		t.Fatalf("%d attempts", len(p.dones)-first)
	}
	p.dones[first+1](client.Ended{End: client.EndAnswered})
	p.dones[first](client.Ended{End: client.EndAnswered})
	if ended != 41 || len(p.cancelled) != 1 || p.cancelled[0] != first {
		t.Errorf("%d calls ended, cancelled %v", ended, p.cancelled)
	}
}
