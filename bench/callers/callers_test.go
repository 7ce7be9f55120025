package callers

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/client"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

func TestPlanRefused(t *testing.T) {
	good := Plan{PerS: 10, Length: time.Second, Loop: &Loop{Timeout: time.Second, Attempts: 4}}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Plan){
		"rate":               func(p *Plan) { p.PerS = -1 },
		"length":             func(p *Plan) { p.Length = 0 },
		"warm-up":            func(p *Plan) { p.Warmup = p.Length },
		"negative warm-up":   func(p *Plan) { p.Warmup = -1 },
		"drain":              func(p *Plan) { p.Drain = -1 },
		"within":             func(p *Plan) { p.Within = -1 },
		"deadline":           func(p *Plan) { p.Deadline = -1 },
		"time-out of a loop": func(p *Plan) { p.Loop = &Loop{Attempts: 4} },
		"attempts of a loop": func(p *Plan) { p.Loop = &Loop{Timeout: time.Second} },
	} {
		p := good
		change(&p)
		if _, err := p.Run(t.Context(), nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestQuantile(t *testing.T) {
	for _, x := range []struct {
		values  []time.Duration
		percent int
		want    time.Duration
	}{{nil, 99, 0}, {[]time.Duration{7}, 99, 7}, {[]time.Duration{3, 1, 2}, 50, 2}, {[]time.Duration{3, 1, 2}, 100, 3}} {
		if got := quantile(x.values, x.percent); got != x.want {
			t.Errorf("%d %% of %v: %v, want %v", x.percent, x.values, got, x.want)
		}
	}
}

// looped is a caller with a loop, whose attempts go nowhere, by hand.
func looped(budget client.BudgetConfig) (*run, *call, *[]*attempt) {
	sent := &[]*attempt{}
	r := newRun(Plan{PerS: 1, Length: time.Minute, Seed: 1, Loop: &Loop{Timeout: time.Second, Attempts: 4, Budget: budget}}, func(a *attempt) { *sent = append(*sent, a) })
	r.make(r.plan.Begin)
	return r, (*sent)[0].of, sent
}

// lose ends the attempt that is under way, and has the next one made without the wait.
func (r *run) lose(c *call, e client.Ended, o sw.Outcome) {
	before := len(r.alarms)
	r.decide(c, c.serial, e, o, c.made)
	if len(r.alarms) > before { // a time-out comes later than any wait
		r.alarms = r.alarms[:0]
		r.try(c)
	}
}

func TestLoopMakesItsAttempts(t *testing.T) {
	r, c, sent := looped(Unlimited)
	for range 6 { // more than it has
		r.lose(c, client.Ended{End: client.EndLost}, sw.OutcomeDeadline)
	}
	if got := r.result; len(*sent) != 4 || got.Attempts != 4 || got.Made != 1 || got.Lost != 1 || got.Good != 0 {
		t.Errorf("%d attempts sent, %+v", len(*sent), got)
	}
}

func TestLoopKeepsToItsBudget(t *testing.T) {
	r, c, sent := looped(client.BudgetConfig{}) // which begins with one, and a tenth of this call
	for range 6 {
		r.lose(c, client.Ended{End: client.EndLost}, sw.OutcomeDeadline)
	}
	if len(*sent) != 2 || r.result.Lost != 1 {
		t.Errorf("%d attempts sent, %+v", len(*sent), r.result)
	}
}

func TestLoopObeysDoNotRetry(t *testing.T) {
	r, c, sent := looped(Unlimited)
	r.lose(c, client.Ended{End: client.EndRefused, DoNotRetry: true}, sw.OutcomeRejected)
	if len(*sent) != 1 || r.result.Rejected != 1 {
		t.Errorf("%d attempts sent, %+v", len(*sent), r.result)
	}
}

// What was given up may be answered long after: nobody waits for it any more.
func TestLateAnswerIsNoGoodput(t *testing.T) {
	r, c, sent := looped(Unlimited)
	first := c.serial
	r.lose(c, client.Ended{End: client.EndLost}, sw.OutcomeDeadline)
	r.decide(c, first, client.Ended{End: client.EndAnswered}, sw.OutcomeOK, c.made)
	if len(*sent) != 2 || r.result.Good != 0 || r.result.Answered != 0 {
		t.Errorf("after an answer to what was given up: %d attempts sent, %+v", len(*sent), r.result)
	}
	r.decide(c, c.serial, client.Ended{End: client.EndAnswered}, sw.OutcomeOK, c.made)
	if r.result.Good != 1 || r.result.Answered != 1 {
		t.Errorf("after an answer: %+v", r.result)
	}
}

// Within a second's limit an answer is goodput, a nanosecond later it is not; what is made in the warm-up is in the seconds alone.
func TestWhatCounts(t *testing.T) {
	r := newRun(Plan{PerS: 1, Warmup: time.Second, Length: 10 * time.Second, Within: time.Second}, func(*attempt) {})
	for _, c := range []struct{ made, took time.Duration }{{0, time.Millisecond}, {time.Second, time.Second}, {time.Second, time.Second + 1}} {
		one := &call{made: r.plan.Begin.Add(c.made)}
		r.over(one, sw.OutcomeOK, one.made.Add(c.took))
	}
	if got := r.result; got.Answered != 2 || got.Good != 1 || got.Seconds[0].Good != 1 || got.Seconds[2].Good != 1 {
		t.Errorf("%+v", got)
	}
}

// What is told goes with the call; what is not told does not.
func TestCallsSayTheirLevel(t *testing.T) {
	for _, told := range []bool{false, true} {
		seen := map[sw.Criticality]bool{}
		r := newRun(Plan{PerS: 1, Length: time.Minute, Levels: true, Told: told, Repeatable: told, Deadline: time.Second}, func(a *attempt) {
			seen[a.Criticality] = true
			if a.Repeatable != told || a.Deadline != a.of.made.Add(time.Second) {
				t.Errorf("told %v: repeatable %v, deadline %v", told, a.Repeatable, a.Deadline)
			}
		})
		for range 200 { // each level is missed with a probability of 0.75^200
			r.make(r.plan.Begin)
		}
		if want := map[bool]int{false: 1, true: len(Levels)}[told]; len(seen) != want || seen[0] == told {
			t.Errorf("told %v: levels %v", told, seen)
		}
	}
}

// The runtime makes the calls of all levels, and their books balance.
func TestCallsOverTheRuntime(t *testing.T) {
	srv, err := sw.NewServer(sw.ServerConfig{Address: netip.MustParseAddr("127.0.0.1"), Workers: 1, SLO: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := target.NewSingle(target.Slow{}).Register(srv); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	cli, err := sw.Dial(ctx, srv.Addr(), sw.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	p := Plan{
		Method: target.MethodSingle, Arrivals: workload.Fixed, PerS: 200, Service: workload.ServiceTime{Mean: 10 * time.Microsecond},
		Length: 500 * time.Millisecond, Drain: 600 * time.Millisecond, Levels: true, Told: true, Seed: 1,
	}
	r, err := p.Run(ctx, []*sw.Session{&cli.Session})
	if err != nil {
		t.Fatal(err)
	}
	ended := r.Answered + r.Rejected + r.Unsent + r.Lost
	if made := 99; r.Made != made || ended+r.Pending != made || r.Attempts != ended || len(r.Seconds) != 1 {
		t.Errorf("%d calls, of which %d ended and %d are pending, %d attempts, %d seconds", r.Made, ended, r.Pending, r.Attempts, len(r.Seconds))
	}
	sum := 0
	for _, l := range r.Levels {
		sum += l.Made
		if l.Made == 0 || l.Good > l.Made {
			t.Errorf("levels %+v", r.Levels)
		}
	}
	if sum != r.Made {
		t.Errorf("%d calls of all levels, %d in all", sum, r.Made)
	}
	cancelled, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("enough"))
	if _, err := p.Run(cancelled, []*sw.Session{&cli.Session}); err == nil {
		t.Error("a run whose context has ended ends well")
	}
}
