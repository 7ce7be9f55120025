package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	var b bytes.Buffer
	table := NewTable(&b, false,
		Column{Title: "arm", Width: 7, Left: true},
		Column{Title: "offered", Unit: "k/s", Decimals: 1, Divide: 1e3},
		Column{Title: "p99", Unit: "µs", Width: 6, Decimals: 1, Divide: 1e3},
		Column{Title: "drops", Width: 5},
	)
	rows := [][]any{
		{"credits", 18_480.0, 61_240, uint64(3)},
		{"no control", 184_800.0, int64(680_123_000_000), Cell{Value: 12, Tone: Bad}},
		{"none", math.NaN(), nil},
	}
	for _, r := range rows {
		if err := table.Row(r...); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Line("done"); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"arm      offered     p99  drops",
		"             k/s      µs       ",
		"───────  ───────  ──────  ─────",
		"credits     18.5    61.2      3",
		"no con…    184.8    680M     12",
		"none           –       –       ",
		"done", "",
	}, "\n")
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := table.Row(1, 2, 3, 4, 5); err == nil {
		t.Error("five cells fit four columns")
	}
}

func TestTableColour(t *testing.T) {
	var b bytes.Buffer
	table := NewTable(&b, true, Column{Title: "share", Width: 5})
	for _, c := range []Cell{{1.0, Good}, {0.0, Bad}, {0.5, Neutral}} {
		if err := table.Row(c); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{sgrBold + "share" + sgrReset, sgrGreen + "    1" + sgrReset, sgrRed + "    0" + sgrReset, "\n    0\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q lacks %q", b.String(), want)
		}
	}
}

// broken fails like a pipe whose reader went away.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteErrorsAreKept(t *testing.T) {
	for name, err := range map[string]error{
		"table": NewTable(broken{}, false, Column{Title: "x"}).Row(1),
		"json":  NewJSONLines(broken{}, "").Write(struct{}{}),
		"page":  Page{Title: "x"}.WriteHTML(broken{}),
		"svg":   LineChart{Title: "x"}.WriteSVG(broken{}),
	} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v; want the writer's error", name, err)
		}
	}
}

func TestJSONLines(t *testing.T) {
	var b bytes.Buffer
	j := NewJSONLines(&b, "stillwater.demo.v1")
	for _, v := range []any{struct {
		Arm string `json:"arm"`
	}{"credits"}, map[string]int{}, &struct{}{}} {
		if err := j.Write(v); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"schema":"stillwater.demo.v1","arm":"credits"}` + "\n" + `{"schema":"stillwater.demo.v1"}` + "\n" + `{"schema":"stillwater.demo.v1"}` + "\n"
	if b.String() != want {
		t.Errorf("got %q; want %q", b.String(), want)
	}
	for line := range strings.Lines(b.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q is not JSON", line)
		}
	}
	for _, v := range []any{3, []int{1}, nil, math.NaN(), func() {}} {
		if err := j.Write(v); err == nil {
			t.Errorf("%v was printed as an object", v)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, tt := range []struct {
		format Format
		v      float64
		want   string
	}{
		{Plain, 0, "0"}, {Plain, 12.5, "12.5"}, {Plain, 1500, "1500"}, {Plain, 0.05, "0.05"}, {Plain, -0.0000000001, "0"},
		{Count, 999.9, "1k"}, {Count, 92_400, "92.4k"}, {Count, 1.5e6, "1.5M"}, {Count, 7, "7"}, {Count, -2500, "-2.5k"},
		{Duration, 0, "0"}, {Duration, 850, "850 ns"}, {Duration, 200_000, "200 µs"}, {Duration, 2e10, "20 s"}, {Duration, 999_960, "1 ms"},
		{Percent, 0.95, "95 %"}, {Percent, 0.9512, "95.1 %"}, {Percent, 1, "100 %"},
		{Plain, math.NaN(), "–"}, {Duration, math.Inf(1), "–"},
	} {
		if got := strings.ReplaceAll(tt.format.Text(tt.v), "\u00a0", " "); got != tt.want {
			t.Errorf("format %d of %v is %q; want %q", tt.format, tt.v, got, tt.want)
		}
	}
}

// TestProgressStepsAside plays a terminal that both the bar and a table write to: whatever the bar left on a line is
// erased before a row is printed, so each row stands alone on its line.
func TestProgressStepsAside(t *testing.T) {
	var screen bytes.Buffer
	p := newProgress(&screen, true, 10, "sweep")
	table := NewTable(p.Around(&screen), false, Column{Title: "step", Width: 4})
	for i := range 4 {
		p.Set(int64(i + 1))
		p.Describe("step")
		if err := table.Row(i); err != nil {
			t.Fatal(err)
		}
	}
	p.Close()
	p.Set(9) // after Close it stays away
	var shown []string
	for line := range strings.Lines(screen.String()) {
		if at := strings.LastIndex(line, "\x1b[2K\r"); at >= 0 { // what a terminal shows of a line that was erased
			line = line[at+len("\x1b[2K\r"):]
		}
		shown = append(shown, strings.TrimRight(line, "\n"))
	}
	if got, want := strings.Join(shown, "|"), "step|────|   0|   1|   2|   3|"; got != want {
		t.Errorf("the screen shows %q; want %q", got, want)
	}
	if !strings.Contains(screen.String(), "sweep") {
		t.Error("the bar never appeared")
	}
}

// TestProgressMax has more steps than were said at first.
func TestProgressMax(t *testing.T) {
	var screen bytes.Buffer
	p := newProgress(&screen, true, 1, "sweep")
	p.Max(4)
	p.Set(2)
	p.Close()
	if !strings.Contains(screen.String(), "50%") {
		t.Errorf("two of four steps: %q", screen.String())
	}
}

func TestProgressOffATerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := NewProgress(f, 10, "sweep")
	p.Set(5)
	p.Describe("still")
	p.Close()
	if info, err := f.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("%d bytes in a log, %v; want none", info.Size(), err)
	}
}

func TestMachineFacts(t *testing.T) {
	names := map[string]string{}
	for _, f := range MachineFacts() {
		if f.Value == "" || names[f.Name] != "" {
			t.Errorf("fact %q is empty or twice there", f.Name)
		}
		names[f.Name] = f.Value
	}
	for _, want := range []string{"CPUs", "kernel", "memory", "Go", "GOMAXPROCS"} {
		if names[want] == "" {
			t.Errorf("no fact %q", want)
		}
	}
}
