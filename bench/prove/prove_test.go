//go:build linux

package prove

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/checker"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		figures []float64
		want    Spread
	}{
		{nil, Spread{}},
		{[]float64{7}, Spread{7, 7, 7, 1}},
		{[]float64{3, 1, 2}, Spread{2, 1, 3, 3}},
		{[]float64{4, 1, 2, 3}, Spread{2.5, 1, 4, 4}},
	} {
		if got := SpreadOf(test.figures); got != test.want {
			t.Errorf("%v: %+v, want %+v", test.figures, got, test.want)
		}
	}
	if got := (Spread{Median: 1500, Min: 1000, Max: 2000}).Text(1e3, 1); got != "1.5 (1.0..2.0)" {
		t.Errorf("text %q", got)
	}
}

// run runs a command in this process.
func run(t *testing.T, c Command, args ...string) (code int, out string) {
	t.Helper()
	errs, err := os.Create(t.TempDir() + "/stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	var b bytes.Buffer
	code = c.main(args, &b, errs)
	return code, b.String()
}

func TestExitCodes(t *testing.T) {
	with := func(f func(r *Run) error) Command {
		return Command{Name: "test", Rounds: 2, Run: func(_ context.Context, r *Run) error { return f(r) }}
	}
	good := with(func(r *Run) error { return errors.Join(r.AtLeast("speed", 2, 2, "times"), r.AtMost("loss", 0, 0, "")) })
	bad := with(func(r *Run) error {
		return errors.Join(r.AtLeast("speed", 1.9, 2, "times"), r.AtMost("loss", 0, 0, ""))
	})
	for _, test := range []struct {
		name    string
		command Command
		args    []string
		code    int
		last    string
	}{
		{"met", good, nil, 0, "All bounds are met: speed 2 times (at least 2); loss 0 (at most 0)."},
		{"missed", bad, nil, exitMissed, "Not met: speed 1.9 times (at least 2). Met: loss 0 (at most 0)."},
		{"failed", with(func(*Run) error { return errors.New("no lab") }), nil, exitFailed, ""},
		{"bad flag", good, []string{"-nonsense"}, exitUsage, ""},
		{"bad format", good, []string{"-o", "yaml"}, exitUsage, ""},
		{"no rounds", good, []string{"-rounds", "0"}, exitUsage, ""},
		{"argument", good, []string{"now"}, exitUsage, ""},
		{"help", good, []string{"-h"}, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out := run(t, test.command, test.args...)
			if code != test.code || test.last != "" && !strings.HasSuffix(out, test.last+"\n") {
				t.Fatalf("code %d, want %d; output:\n%s", code, test.code, out)
			}
		})
	}
}

func TestObjects(t *testing.T) {
	c := Command{Name: "test", Rounds: 1, Run: func(_ context.Context, r *Run) error {
		r.Say("for people")
		return r.AtMost("loss", 1, 0, "%")
	}}
	code, out := run(t, c, "-o", "jsonl", "-seed", "9")
	if code != exitMissed {
		t.Errorf("code %d", code)
	}
	var kinds []string
	for line := range strings.Lines(out) {
		var object struct {
			Schema, Kind string
			Seed         uint64
			Met          bool
		}
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if object.Schema != "stillwater.bench.test.v1" || object.Kind == "machine" && object.Seed != 9 || object.Met {
			t.Errorf("%q", line)
		}
		kinds = append(kinds, object.Kind)
	}
	if strings.Join(kinds, " ") != "machine bound" {
		t.Errorf("objects %q", kinds)
	}
}

func TestAgree(t *testing.T) {
	report := checker.Check(checker.History{Marks: 2, Endings: []checker.Ending{
		{Mark: 1, Outcome: checker.OK}, {Mark: 2, Outcome: checker.NeverSent},
	}, Executions: []checker.Execution{{Mark: 1}}})
	var s sw.Stats
	s.Calls = 2
	s.Outcomes[sw.OutcomeOK], s.Outcomes[sw.OutcomeQueueFull] = 1, 1
	if err := Agree(s, report); err != nil {
		t.Error(err)
	}
	s.Outcomes[sw.OutcomeQueueFull], s.Outcomes[sw.OutcomeDeadline] = 0, 1
	if Agree(s, report) == nil {
		t.Error("another outcome was taken for the same")
	}
	s.Calls = 3
	if Agree(s, report) == nil {
		t.Error("a call without an outcome was not missed")
	}
}
