package suite

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

const figure = "speed_per_s"

// tiny is a suite of one experiment, whose figure is the seed plus something.
func tiny(fail error) *Suite {
	play := func(plus float64) func(context.Context, uint64) (Sample, error) {
		return func(_ context.Context, seed uint64) (Sample, error) {
			return Sample{Figures: map[string]float64{figure: float64(seed) + plus}}, fail
		}
	}
	kinds := Kinds{figure: KindOf("speed", "/s", 8, 1, 1, report.Count)}
	e := &Experiment{
		ID: "T1", Title: "a tiny one", About: "Nothing happens.", Figures: []string{figure}, Charts: []Chart{{Figure: figure, Title: "Speed"}},
		Jobs: func(Size) []Job {
			return []Job{
				{Panel: "p", At: "here", X: 1, Arm: "slow", Play: play(0)}, {Panel: "p", At: "there", X: 2, Arm: "slow", Play: play(1), Seeds: 1},
				{Panel: "p", At: "here", X: 1, Arm: "fast", Play: play(100), Alone: true},
			}
		},
		Judge: func(t *Table) []Check {
			return []Check{kinds.Bound("fast", t.Of("fast"), figure, 100, true), kinds.Collapse(t.Of("slow"), figure, 1)}
		},
	}
	return &Suite{Title: "All", Schema: "s.v1", Arm: "arm", Conditions: "on a rainy day", Kinds: kinds, Experiments: []*Experiment{e}}
}

// Each line is the mean of its seeds, in every form.
func TestForms(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	var text, lines bytes.Buffer
	o := Options{Size: Size{Name: "small", Seeds: 3}, Seed: 5, Out: &text, HTML: page, Command: "the command"}
	tables, err := tiny(nil).Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if v := tables[0].Row("p, here", "slow").Mean(figure); v != 6 {
		t.Errorf("the mean of seeds 5 to 7 is %v", v)
	}
	if v := tables[0].Row("p, there", "slow").Mean(figure); v != 6 {
		t.Errorf("of the only seed 5 and one: %v", v)
	}
	if Missed(tables) != 1 || tables[0].Row("nowhere", "slow") != nil {
		t.Errorf("%v", tables[0].Checks)
	}
	for _, want := range []string{"T1  a tiny one", "size small; on a rainy day", "arm", "106.0", "ok      fast at least 100.0 /s", "MISSED  the control arm collapses"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, &text)
		}
	}
	o.JSON, o.Out, o.HTML = true, &lines, ""
	if _, err := tiny(nil).Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if want := `{"schema":"s.v1","experiment":"T1","point":"p, here","arm":"slow","seed_count":3,"speed_per_s":6}`; !strings.Contains(lines.String(), want) {
		t.Errorf("no %s in\n%s", want, &lines)
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "the command") || !strings.Contains(string(html), "1 of 2 checks are met") {
		t.Errorf("the page: %v", err)
	}
}

// An error names its line, and the end of the context is no fault of a line.
func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, err := tiny(broken).Run(t.Context(), Options{Size: Size{Seeds: 1}, Out: &bytes.Buffer{}}); !errors.Is(err, broken) || !strings.Contains(err.Error(), "T1, p, ") {
		t.Errorf("%v", err)
	}
	if _, err := tiny(nil).Run(t.Context(), Options{IDs: []string{"T2"}, Size: Size{Seeds: 1}, Out: &bytes.Buffer{}}); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "T1") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tiny(nil).Run(ctx, Options{Size: Size{Seeds: 1}, Out: &bytes.Buffer{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A line without the figure misses every bound.
func TestBoundOfNothing(t *testing.T) {
	k := Kinds{}
	row := &Row{At: "a", Arm: "x", Samples: []Sample{{}}}
	if c := k.Bound("it", []*Row{row}, figure, math.Inf(1), false); c.Met {
		t.Error(c)
	}
	if c := k.Bound("it", nil, figure, 0, true); c.Met || !strings.Contains(c.String(), "MISSED  it: nothing was run") {
		t.Error(c)
	}
}

// A chart over time for each point that has a series, of as many points as can be told apart, each the mean of its windows.
func TestCourse(t *testing.T) {
	long := make([]float64, 2*coursePoints+2)
	for i := range long {
		long[i] = float64(i)
	}
	row := func(at, arm string, series ...float64) *Row {
		return &Row{At: at, Arm: arm, Samples: []Sample{{Series: series}}}
	}
	table := &Table{
		Experiment: &Experiment{Course: &Course{Every: time.Second, Trouble: func(r *Row, length time.Duration) (from, to time.Duration, what string) {
			return length / 2, length, "trouble at " + r.At
		}}},
		Rows: []*Row{row("here", "slow", 1, 3), row("nowhere", "slow"), row("here", "fast", 2, 4, 6), row("there", "fast", long...)},
	}
	charts := table.courses()
	if len(charts) != 2 || len(charts[0].Series) != 2 || charts[0].Spans[0] != (report.Span{From: 1e9, To: 2e9, Label: "trouble at here"}) {
		t.Fatalf("%+v", charts)
	}
	if got, want := charts[0].Series[1], []report.Point{{X: 0.5e9, Y: 2}, {X: 1.5e9, Y: 4}, {X: 2.5e9, Y: 6}}; got.Name != "fast" || !slices.Equal(got.Points, want) {
		t.Errorf("%+v", got)
	}
	if got := charts[1].Series[0].Points; len(got) > coursePoints || got[0] != (report.Point{X: 1.5e9, Y: 1}) {
		t.Errorf("%d points, the first %v", len(got), got[0])
	}
	table.Course = nil
	if charts := table.courses(); charts != nil {
		t.Errorf("%d charts of an experiment without a course", len(charts))
	}
}
