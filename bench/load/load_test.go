package load

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
)

const us = time.Microsecond

// checkBooks fails unless every request has exactly one outcome and every view of them agrees.
func checkBooks(t *testing.T, r *Result) {
	t.Helper()
	c := r.Counts
	if c.Offered != c.Issued+c.Unissued {
		t.Errorf("offered %d, but issued %d and unissued %d", c.Offered, c.Issued, c.Unissued)
	}
	if sum := c.OK + c.Rejected + c.Expired + c.Deadline + c.PeerLost + c.Failed + c.Unanswered; sum != c.Issued {
		t.Errorf("issued %d, outcomes %d: %+v", c.Issued, sum, c)
	}
	if got := uint64(r.Histograms.Latency.TotalCount()); got != c.OK {
		t.Errorf("%d latencies of %d answers", got, c.OK)
	}
	if got := uint64(r.Histograms.Reject.TotalCount()); got != c.Rejected {
		t.Errorf("%d latencies of %d refusals", got, c.Rejected)
	}
	var b Bucket
	for _, x := range r.Buckets {
		b.add(x)
	}
	if b.Offered != c.Offered || b.Good != c.Good || b.OK != c.OK || b.Rejected != c.Rejected || b.Expired != c.Expired ||
		b.Deadline != c.Deadline || b.Lost != c.PeerLost+c.Failed {
		t.Errorf("the buckets add up to %+v, the counts are %+v", b, c)
	}
	var reasons uint64
	for _, n := range r.RejectReasons {
		reasons += n
	}
	if reasons != c.Rejected {
		t.Errorf("%d reasons for %d refusals", reasons, c.Rejected)
	}
}

// runOpen runs l on the fake server's clock and checks the books.
func runOpen(t *testing.T, s *fakeServer, l OpenLoop) *Result {
	t.Helper()
	l.time = s.source()
	if l.MaxOutstanding == 0 {
		l.MaxOutstanding = 1 << 14 // the default costs more to clear than these runs to simulate
	}
	r, err := l.Run(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	checkBooks(t, r)
	return r
}

func TestOpenLoopBelowCapacity(t *testing.T) {
	s := newFakeServer(us)
	s.rtt = 5 * us
	r := runOpen(t, s, OpenLoop{
		Plan: Plan{Sessions: 100, ServiceTime: workload.ServiceTime{Mean: 10 * us}, SLO: 200 * us, Warmup: 20 * time.Millisecond, Duration: 200 * time.Millisecond, Seed: 1},
		Rate: 50_000,
	})
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if math.Abs(r.OfferedPerS-50_000) > 1500 || r.GoodputPerS != r.OfferedPerS || r.Counts.Good != r.Counts.OK {
		t.Errorf("offered %v, goodput %v of 50,000", r.OfferedPerS, r.GoodputPerS)
	}
	// An M/D/1 queue at a load of a half waits half a service time on average; a turn is 1 us, so due to answer takes
	// 10 + 5 + 5 us and up to one turn more.
	if r.LatencyNsMean < 20_000 || r.LatencyNsMean > 22_000 {
		t.Errorf("mean latency %v ns; want 20 to 22 us", r.LatencyNsMean)
	}
	if r.LatencyNsP50 > r.LatencyNsP99 || r.LatencyNsP99 > r.LatencyNsP999 || r.LatencyNsP999 > r.LatencyNsMax {
		t.Errorf("the quantiles are out of order: %+v", r)
	}
}

func TestOpenLoopOverload(t *testing.T) {
	s := newFakeServer(us)
	s.room, s.rtt = 10, 3*us
	l := OpenLoop{
		Plan: Plan{ServiceTime: workload.ServiceTime{Mean: 10 * us}, SLO: 200 * us, Warmup: 10 * time.Millisecond, Duration: 100 * time.Millisecond, Seed: 2,
			ReasonName: func(r uint8) string { return map[uint8]string{3: "queue_full"}[r] }},
		Rate: 200_000,
	}
	r := runOpen(t, s, l)
	if math.Abs(r.ThroughputPerS-100_000) > 1000 || math.Abs(r.RejectedPerS-(r.OfferedPerS-100_000)) > 2000 {
		t.Errorf("throughput %v, rejected %v of %v offered; want capacity, 100,000, and the rest", r.ThroughputPerS, r.RejectedPerS, r.OfferedPerS)
	}
	if r.RejectReasons["queue_full"] != r.Counts.Rejected {
		t.Errorf("reasons %v for %d refusals", r.RejectReasons, r.Counts.Rejected)
	}
	if r.RejectLatencyNsP99 < 3000 || r.RejectLatencyNsP99 > 4010 {
		t.Errorf("reject latency p99 %d ns; want the round trip and at most a turn", r.RejectLatencyNsP99)
	}

	// Without a bound on its queue the same server answers as many, and none in time: throughput is not goodput.
	unbounded := newFakeServer(us)
	r = runOpen(t, unbounded, l)
	if math.Abs(r.ThroughputPerS-100_000) > 1000 || r.GoodputPerS > 1000 {
		t.Errorf("throughput %v, goodput %v of an unbounded queue; want 100,000 and none", r.ThroughputPerS, r.GoodputPerS)
	}
}

// TestStallIsSeen is the test against coordinated omission: a tenth of the time nothing is answered, so a tenth of the
// requests must be late, though a generator that waits for answers would see one.
func TestStallIsSeen(t *testing.T) {
	stall := 100 * time.Millisecond
	for _, name := range []string{"the server stalls", "the generator stalls"} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(10 * us)
			from := s.now.Add(300 * time.Millisecond)
			stalled := false
			switch name {
			case "the server stalls":
				s.stallFrom, s.stallTo = from, from.Add(stall)
			default:
				s.onIssue = func(*Op) bool {
					if !stalled && s.now >= from {
						stalled = true
						s.now = s.now.Add(stall)
					}
					return false
				}
			}
			r := runOpen(t, s, OpenLoop{Plan: Plan{SLO: time.Millisecond, Duration: time.Second}, Rate: 10_000, Arrivals: workload.Fixed})
			if r.Counts.Offered != 9999 { // due every 100 us, the first after 100 us
				t.Errorf("offered %d; want 9999: none skipped", r.Counts.Offered)
			}
			if r.LatencyNsP50 > int64(11*us) || r.LatencyNsP99 < int64(80*time.Millisecond) {
				t.Errorf("p50 %d ns, p99 %d ns; want next to nothing and most of the stall", r.LatencyNsP50, r.LatencyNsP99)
			}
			if share := r.GoodputPerS / r.OfferedPerS; math.Abs(share-0.9) > 0.01 {
				t.Errorf("goodput is %.3f of the load; want 0.9", share)
			}
			if failed := r.Err() != nil; failed != stalled {
				t.Errorf("failures %q; want some exactly when the generator itself was late", r.Failures)
			}
		})
	}
}

func TestEveryOutcomeIsCounted(t *testing.T) {
	s := newFakeServer(us)
	n := 0
	s.onIssue = func(op *Op) bool {
		op.Outcome, op.Finished = Outcome(n%int(outcomeCount)), s.now.Add(time.Duration(n)) // all at once
		op.Reason = uint8(n)
		n++
		op.Done()
		return true
	}
	r := runOpen(t, s, OpenLoop{Plan: Plan{Duration: 60 * time.Millisecond, Cooldown: -1}, Rate: 10_000, Arrivals: workload.Fixed})
	c := r.Counts
	for i, got := range []uint64{c.OK, c.Rejected, c.Expired, c.Deadline, c.PeerLost, c.Failed} {
		if want := uint64(599-i+5) / 6; got != want {
			t.Errorf("%v: %d; want %d", Outcome(i), got, want)
		}
	}
	if len(r.RejectReasons) < 2 || r.Err() != nil {
		t.Errorf("reasons %v, failures %q", r.RejectReasons, r.Failures)
	}
}

func TestFaultsFailTheRun(t *testing.T) {
	plan := Plan{Duration: 10 * time.Millisecond, Cooldown: -1, DrainLimit: time.Millisecond}
	for _, tt := range []struct {
		name    string
		onIssue func(s *fakeServer) func(op *Op) bool
		pool    int
		want    string
		check   func(c Counts) bool
	}{
		{name: "lost", onIssue: func(*fakeServer) func(*Op) bool { return func(*Op) bool { return true } },
			want: "had no outcome", check: func(c Counts) bool { return c.Unanswered == c.Issued && c.Issued == 99 }},
		{name: "twice", onIssue: func(*fakeServer) func(*Op) bool {
			return func(op *Op) bool { op.Done(); op.Done(); return true }
		}, want: "more than one outcome", check: func(c Counts) bool { return c.Repeated == 99 && c.OK == 99 }},
		{name: "too many", pool: 10, onIssue: func(*fakeServer) func(*Op) bool { return func(*Op) bool { return true } },
			want: "raise MaxOutstanding", check: func(c Counts) bool { return c.Unissued == 89 && c.Unanswered == 10 }},
		{name: "unknown outcome", onIssue: func(s *fakeServer) func(*Op) bool {
			return func(op *Op) bool { op.Outcome, op.Finished = 77, s.now; op.Done(); return true }
		}, check: func(c Counts) bool { return c.Failed == 99 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeServer(us)
			s.onIssue = tt.onIssue(s)
			r := runOpen(t, s, OpenLoop{Plan: plan, Rate: 10_000, Arrivals: workload.Fixed, MaxOutstanding: tt.pool})
			if !tt.check(r.Counts) {
				t.Errorf("counts %+v", r.Counts)
			}
			if got := strings.Join(r.Failures, "; "); !strings.Contains(got, tt.want) || (tt.want == "") != (r.Err() == nil) {
				t.Errorf("failures %q; want %q", got, tt.want)
			}
		})
	}
}

func TestWindowCountsByDueInstant(t *testing.T) {
	s := newFakeServer(us)
	s.rtt = 3 * time.Millisecond // every answer comes 3 ms after it was due
	r := runOpen(t, s, OpenLoop{
		Plan: Plan{Warmup: 10 * time.Millisecond, Duration: 10 * time.Millisecond, Cooldown: 5 * time.Millisecond},
		Rate: 100_000, Arrivals: workload.Fixed,
	})
	if got := len(s.works); got != 2499 {
		t.Errorf("%d requests issued; want 2,499: warm-up, window and cool-down", got)
	}
	if r.Counts.Offered != 1000 || r.Counts.OK != 1000 || r.Counts.AnsweredInWindow < 999 || r.Counts.AnsweredInWindow > 1001 {
		t.Errorf("counts %+v; want the 1,000 that were due within the window", r.Counts)
	}
}

func TestStepsAndRecovery(t *testing.T) {
	s := newFakeServer(us)
	l := OpenLoop{
		Plan: Plan{ServiceTime: workload.ServiceTime{Mean: 10 * us}, SLO: 200 * us, Warmup: 10 * time.Millisecond, Duration: 200 * time.Millisecond},
		Rate: 50_000, Arrivals: workload.Fixed,
		Steps: []Step{{At: 50 * time.Millisecond, RatePerS: 200_000}, {At: 100 * time.Millisecond, RatePerS: 50_000}},
	}
	r := runOpen(t, s, l)
	for i, b := range r.Buckets {
		want := uint64(500)
		if i >= 5 && i < 10 {
			want = 2000
		}
		if b.Offered+1 < want || b.Offered > want+1 || b.StartNs != int64(i)*int64(10*time.Millisecond) {
			t.Errorf("bucket %d: %+v; want %d offered", i, b, want)
		}
	}
	// 50 ms at twice the capacity leave 50 ms of work, worked off at half the capacity: 100 ms.
	took, recovered := r.Recovery(100*time.Millisecond, 200*time.Millisecond, 0.95)
	if recovered || took < 90*time.Millisecond {
		t.Errorf("recovered after %v, %v; the queue lasts to the end", took, recovered)
	}
	if got := r.WorstShare(0, 50*time.Millisecond); got != 1 {
		t.Errorf("worst share before the step %v", got)
	}
	if got := r.WorstShare(50*time.Millisecond, 200*time.Millisecond); got != 0 {
		t.Errorf("worst share after the step %v", got)
	}

	// A server that refuses recovers within a bucket.
	s = newFakeServer(us)
	s.room = 10
	r = runOpen(t, s, l)
	if took, recovered := r.Recovery(100*time.Millisecond, 200*time.Millisecond, 0.95); !recovered || took > 10*time.Millisecond {
		t.Errorf("recovered after %v, %v", took, recovered)
	}
}

func TestBothArmsMeetTheSameSequence(t *testing.T) {
	l := OpenLoop{Plan: Plan{Sessions: 1000, ServiceTime: workload.ServiceTime{Shape: workload.Exponential, Mean: 10 * us}, Duration: 20 * time.Millisecond, Seed: 9}, Rate: 150_000}
	a, b := newFakeServer(us), newFakeServer(3*us)
	b.room = 1
	runOpen(t, a, l)
	runOpen(t, b, l)
	if !slices.Equal(a.sessions, b.sessions) || !slices.Equal(a.works, b.works) {
		t.Error("a server that refuses met another sequence than one that does not")
	}
	if slices.Max(a.sessions) < 990 || slices.Min(a.sessions) > 10 {
		t.Errorf("sessions from %d to %d of 1000", slices.Min(a.sessions), slices.Max(a.sessions))
	}
}

func TestClosedLoop(t *testing.T) {
	s := newFakeServer(us)
	s.timing = true
	l := ClosedLoop{Plan: Plan{ServiceTime: workload.ServiceTime{Mean: 10 * us}, Warmup: time.Millisecond, Duration: 100 * time.Millisecond}, Outstanding: 16}
	l.time = s.source()
	r, err := l.Run(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	checkBooks(t, r)
	if math.Abs(r.ThroughputPerS-100_000) > 100 || math.Abs(r.LatencyNsMean-160_000) > 1000 || r.Err() != nil {
		t.Errorf("throughput %v, mean latency %v ns, %v; want 100,000 and 160 us (Little's law)", r.ThroughputPerS, r.LatencyNsMean, r.Err())
	}
	want := Split{Quantiles{1, 1}, Quantiles{2, 2}, Quantiles{3, 3}, Quantiles{4, 4}, Quantiles{10_000, 10_007}}
	if r.Split == nil || *r.Split != want {
		t.Errorf("split %+v; want %+v", r.Split, want)
	}
}

func TestDeadline(t *testing.T) {
	s := newFakeServer(us)
	r := runOpen(t, s, OpenLoop{
		Plan: Plan{ServiceTime: workload.ServiceTime{Mean: 10 * us}, SLO: time.Second, Deadline: 50 * us, Duration: 20 * time.Millisecond},
		Rate: 200_000, Arrivals: workload.Fixed,
	})
	if r.Counts.Deadline == 0 || r.Counts.Good != r.Counts.OK || r.LatencyNsMax > int64(51*us) {
		t.Errorf("counts %+v, max %d ns: nothing after the deadline is an answer", r.Counts, r.LatencyNsMax)
	}
}

func TestMergeIsExact(t *testing.T) {
	plan := Plan{Sessions: 10, ServiceTime: workload.ServiceTime{Shape: workload.Exponential, Mean: 10 * us}, SLO: 100 * us, Duration: 50 * time.Millisecond}
	var results []*Result
	whole := newHistogram()
	for seed := range uint64(3) {
		s := newFakeServer(us)
		s.room, s.timing = 20, true
		plan.Seed = seed
		r := runOpen(t, s, OpenLoop{Plan: plan, Rate: 120_000, Steps: []Step{{At: us, RatePerS: 110_000}}})
		whole.Merge(r.Histograms.Latency.Histogram)
		text, err := json.Marshal(r) // as it comes from another process
		if err != nil {
			t.Fatal(err)
		}
		back := &Result{}
		if err := json.Unmarshal(text, back); err != nil {
			t.Fatal(err)
		}
		results = append(results, back)
	}
	sum, good := results[0], results[0].Counts.Good
	for _, r := range results[1:] {
		good += r.Counts.Good
		if err := sum.Merge(r); err != nil {
			t.Fatal(err)
		}
	}
	checkBooks(t, sum)
	if sum.Counts.Good != good || sum.LatencyNsP99 != whole.ValueAtQuantile(99) || sum.LatencyNsP999 != whole.ValueAtQuantile(99.9) {
		t.Errorf("good %d of %d, p99 %d of %d", sum.Counts.Good, good, sum.LatencyNsP99, whole.ValueAtQuantile(99))
	}
	if sum.ProcessCount != 3 || sum.Sessions != 30 || sum.RatePerS != 360_000 || sum.Steps[0].RatePerS != 330_000 || sum.TimedCount != sum.Counts.OK {
		t.Errorf("merged into %+v", sum)
	}
	for _, other := range []*Result{{}, {Kind: KindClosedLoop, Histograms: &Histograms{}}} {
		if err := sum.Merge(other); err == nil {
			t.Errorf("merged with %+v", other)
		}
	}
}

func TestEmptyHistogramsTravel(t *testing.T) {
	for _, h := range []Histogram{{}, {newHistogram()}} {
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		var back Histogram
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if back.quantile(99) != 0 || back.max() != 0 || back.mean() != 0 {
			t.Error("an empty histogram has no quantiles")
		}
	}
	var h Histogram
	if err := h.UnmarshalText([]byte("nonsense")); err == nil {
		t.Error("nonsense was decoded")
	}
}

func TestBadPlans(t *testing.T) {
	ok := Plan{Duration: time.Second}
	for _, tt := range []struct {
		name string
		run  func() error
	}{
		{"no duration", func() error { _, err := OpenLoop{Rate: 1}.Run(context.Background(), nil); return err }},
		{"small payload", func() error {
			_, err := ClosedLoop{Plan: Plan{Duration: 1, PayloadBytes: 7}}.Run(context.Background(), nil)
			return err
		}},
		{"negative rate", func() error { _, err := OpenLoop{Plan: ok, Rate: -1}.Run(context.Background(), nil); return err }},
		{"steps out of order", func() error {
			_, err := OpenLoop{Plan: ok, Steps: []Step{{At: 2}, {At: 1}}}.Run(context.Background(), nil)
			return err
		}},
		{"negative outstanding", func() error {
			_, err := ClosedLoop{Plan: ok, Outstanding: -1}.Run(context.Background(), nil)
			return err
		}},
		{"too many buckets", func() error {
			_, err := ClosedLoop{Plan: Plan{Duration: time.Hour, BucketWidth: 1}}.Run(context.Background(), nil)
			return err
		}},
		{"negative sessions", func() error {
			_, err := ClosedLoop{Plan: Plan{Duration: 1, Sessions: -1}}.Run(context.Background(), nil)
			return err
		}},
		{"negative SLO", func() error {
			_, err := ClosedLoop{Plan: Plan{Duration: 1, SLO: -1}}.Run(context.Background(), nil)
			return err
		}},
	} {
		if err := tt.run(); err == nil || !strings.Contains(err.Error(), "plan ") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("interrupted")
	s := newFakeServer(us)
	s.onIssue = func(*Op) bool { cancel(why); return false }
	l := OpenLoop{Plan: Plan{Duration: time.Hour, BucketWidth: -1}, Rate: 1000}
	l.time = timeSource{now: s.source().now, yield: func() { s.turn(); time.Sleep(0) }}
	if _, err := l.Run(ctx, s); !errors.Is(err, why) {
		t.Errorf("Run = %v; want the cause of the cancellation", err)
	}
}

// echoServer answers on goroutines of its own, as a runtime does.
type echoServer struct {
	requests chan *Op
	done     sync.WaitGroup
}

func (e *echoServer) Issue(_ int, op *Op) { e.requests <- op }

// TestDoneOnOtherGoroutines is for the race detector; it asserts the books, and nothing about time.
func TestDoneOnOtherGoroutines(t *testing.T) {
	e := &echoServer{requests: make(chan *Op, 1<<12)}
	for range 4 {
		e.done.Go(func() {
			for op := range e.requests {
				op.Timed, op.Timing = true, Timing{Service: 1}
				op.Done()
			}
		})
	}
	plan := Plan{Sessions: 8, Duration: 30 * time.Millisecond, Cooldown: -1}
	open, err := OpenLoop{Plan: plan, Rate: 50_000}.Run(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := ClosedLoop{Plan: plan, Outstanding: 64}.Run(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	close(e.requests)
	e.done.Wait()
	for _, r := range []*Result{open, closed} {
		checkBooks(t, r)
		if r.Counts.OK != r.Counts.Issued || r.Counts.OK == 0 || r.LatencyNsP50 == 0 {
			t.Errorf("%s: %+v", r.Kind, r.Counts)
		}
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	s := newFakeServer(us)
	issuer := inPlace{s}
	l := OpenLoop{Plan: Plan{Sessions: 10, Duration: time.Hour, BucketWidth: time.Second, ServiceTime: workload.ServiceTime{Shape: workload.Bimodal, Mean: us}}, Rate: 1e6}
	plan, err := l.resolved()
	if err != nil {
		t.Fatal(err)
	}
	g := newGenerator(plan, s.source(), issuer, 64)
	schedule := newSchedule(g, l)
	allocs := testing.AllocsPerRun(10_000, func() {
		g.collect()
		s.now = s.now.Add(us)
		schedule.issueDue(s.now)
	})
	if allocs != 0 || g.recorder.outcomes[OK] == 0 {
		t.Errorf("%v allocations a turn, outcomes %v; want none and many", allocs, g.recorder.outcomes)
	}
}

// inPlace answers within Issue, with all that a runtime can fill in.
type inPlace struct{ s *fakeServer }

func (i inPlace) Issue(session int, op *Op) {
	op.Outcome, op.Finished, op.Timed, op.Timing = Outcome(session%2), i.s.now, true, Timing{1, 2, 3, 4, 5}
	op.Done()
}

// BenchmarkRequest is the generator's own cost of one request: everything but the runtime under test.
func BenchmarkRequest(b *testing.B) {
	plan, _ := Plan{Sessions: 1000, Duration: time.Hour, BucketWidth: time.Second}.resolved()
	s := newFakeServer(us)
	g := newGenerator(plan, s.source(), inPlace{s}, 1024)
	s.now = g.recorder.from
	b.ReportAllocs()
	for b.Loop() {
		g.issue(g.recorder.from, g.recorder.from)
		g.collect()
	}
}
