//go:build linux

package checker

import (
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

func ending(mark uint64, o Outcome) Ending { return Ending{Mark: mark, Outcome: o} }

func ran(mark, number uint64) Execution {
	return Execution{Mark: mark, Boot: 1, Session: 7, Number: number}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name string
		h    History
		want string // the kind of the only violation; "" = none
	}{
		{"nothing happened", History{}, ""},
		{"answered", History{1, []Ending{ending(1, OK)}, []Execution{ran(1, 0)}}, ""},
		{"handler failed", History{1, []Ending{ending(1, Failed)}, []Execution{ran(1, 0)}}, ""},
		{"rejected", History{1, []Ending{ending(1, Rejected)}, nil}, ""},
		{"never sent", History{1, []Ending{ending(1, NeverSent)}, nil}, ""},
		{"unknown and ran", History{1, []Ending{ending(1, Unknown)}, []Execution{ran(1, 0)}}, ""},
		{"unknown and did not run", History{1, []Ending{ending(1, Unknown)}, nil}, ""},
		{
			"the same number in another session and another boot",
			History{3, []Ending{ending(3, OK), ending(1, OK), ending(2, OK)}, []Execution{
				ran(1, 0), {Mark: 2, Boot: 1, Session: 8}, {Mark: 3, Boot: 2, Session: 7},
			}}, "",
		},
		{"no outcome", History{1, nil, nil}, "no outcome"},
		{"no outcome, though it ran", History{1, nil, []Execution{ran(1, 0)}}, "no outcome"},
		{"two outcomes", History{1, []Ending{ending(1, NeverSent), ending(1, NeverSent)}, nil}, "more than one outcome"},
		{"ran twice", History{1, []Ending{ending(1, OK)}, []Execution{ran(1, 0), ran(1, 0)}}, "ran more than once"},
		{
			"ran once on each boot",
			History{1, []Ending{ending(1, Unknown)}, []Execution{ran(1, 0), {Mark: 1, Boot: 2, Session: 7}}}, "ran more than once",
		},
		{"answer out of nothing", History{1, []Ending{ending(1, OK)}, nil}, "answered and never ran"},
		{"failure out of nothing", History{1, []Ending{ending(1, Failed)}, nil}, "answered and never ran"},
		{"rejected and ran", History{1, []Ending{ending(1, Rejected)}, []Execution{ran(1, 0)}}, "ran against its outcome"},
		{"never sent and ran", History{1, []Ending{ending(1, NeverSent)}, []Execution{ran(1, 0)}}, "ran against its outcome"},
		{"outcome of nothing", History{1, []Ending{ending(1, OK), ending(2, OK)}, []Execution{ran(1, 0)}}, "outcome of nothing"},
		{"unmarked outcome", History{0, []Ending{ending(0, OK)}, nil}, "outcome of nothing"},
		{"unmarked execution", History{0, nil, []Execution{ran(0, 0)}}, "execution of nothing"},
		{"execution of what was never issued", History{0, nil, []Execution{ran(9, 0)}}, "execution of nothing"},
		{
			"one name for two requests",
			History{2, []Ending{ending(1, OK), ending(2, OK)}, []Execution{ran(1, 5), ran(2, 5)}}, "one name for two requests",
		},
		{"outcome that does not exist", History{0, []Ending{ending(0, outcomeCount)}, nil}, "outcome of nothing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := Check(test.h)
			if (report.Err() == nil) != (test.want == "") || report.Count != uint64(len(report.Violations)) || report.Count > 1 {
				t.Fatalf("got %d violations %q, want %q", report.Count, report.Violations, test.want)
			}
			if test.want != "" && !strings.HasPrefix(report.Violations[0], test.want+": ") {
				t.Fatalf("got %q, want %q", report.Violations[0], test.want)
			}
		})
	}
}

// A bad outcome of a request that exists also leaves it without one.
func TestOutcomeOutOfRange(t *testing.T) {
	report := Check(History{1, []Ending{ending(1, 99)}, nil})
	if report.Count != 2 {
		t.Fatalf("got %q", report.Violations)
	}
}

func TestManyViolationsKeepOneExampleOfEach(t *testing.T) {
	report := Check(History{Marks: 1000})
	if report.Count != 1000 || len(report.Violations) != 1 {
		t.Fatalf("%d violations, %d examples", report.Count, len(report.Violations))
	}
}

func TestCounts(t *testing.T) {
	report := Check(History{4, []Ending{ending(1, OK), ending(2, Unknown), ending(3, Rejected), ending(4, NeverSent)}, []Execution{
		ran(1, 0), {Mark: 2, Boot: 2, Session: 7},
	}})
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	if report.Marks != 4 || report.Of(OK) != 1 || report.Of(Unknown) != 1 || report.Of(Rejected) != 1 || report.Of(NeverSent) != 1 || report.Of(Failed) != 0 {
		t.Errorf("outcomes %v of %d", report.Outcomes, report.Marks)
	}
	if report.Executions() != 2 || report.Executed[1] != 1 || report.Executed[2] != 1 {
		t.Errorf("executions %v", report.Executed)
	}
}

func TestLatestCountsFromWhenItCouldEnd(t *testing.T) {
	const ms = clock.Time(time.Millisecond)
	at := func(deadline, issued, finished clock.Time) Ending {
		return Ending{Mark: 1, Outcome: NeverSent, Deadline: deadline, Issued: issued, Finished: finished}
	}
	for _, test := range []struct {
		name    string
		endings []Ending
		want    time.Duration
	}{
		{"before the deadline", []Ending{at(10*ms, 1*ms, 4*ms)}, -6 * time.Millisecond},
		{"after it", []Ending{at(10*ms, 1*ms, 13*ms)}, 3 * time.Millisecond},
		{"handed over after the deadline", []Ending{at(10*ms, 20*ms, 21*ms)}, time.Millisecond},
		{"no deadline", []Ending{at(0, 1*ms, 500*ms)}, 0},
		{"the latest of several", []Ending{at(10*ms, 1*ms, 4*ms), at(0, 0, 500*ms), at(10*ms, 1*ms, 12*ms), at(10*ms, 1*ms, 11*ms)}, 2 * time.Millisecond},
	} {
		if got := Check(History{Marks: 1, Endings: test.endings}).Latest; got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
