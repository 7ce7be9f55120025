package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// The toy ledger is small enough to be run in every form.
const small = "E15"

func TestFormsSayTheSame(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	var text, lines bytes.Buffer
	tables, err := Run(t.Context(), Options{IDs: []string{small}, Size: Small(), Out: &text, HTML: page, Command: "the command"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), Options{IDs: []string{small}, Size: Small(), Out: &lines, JSON: true}); err != nil {
		t.Fatal(err)
	}
	rows, checks := 0, 0
	for line := range strings.Lines(lines.String()) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if o["schema"] != Schema || o["experiment"] != small {
			t.Errorf("%s", line)
		}
		if check, found := o["check"]; found {
			checks++
			if !strings.Contains(text.String(), check.(string)) {
				t.Errorf("the table does not say %q", check)
			}
			continue
		}
		rows++
		row := tables[0].Row(o["point"].(string), o["scheme"].(string))
		if row == nil || o[figLater] != row.Mean(figLater) {
			t.Errorf("%s: %+v", line, row)
		}
	}
	if rows != len(tables[0].Rows) || checks != len(tables[0].Checks) || rows == 0 || checks == 0 {
		t.Errorf("%d rows and %d checks as JSON, %d and %d in the table", rows, checks, len(tables[0].Rows), len(tables[0].Checks))
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"E15: the toy ledger", "the command", "Acceptance", "fixed shares"} {
		if !strings.Contains(string(html), word) {
			t.Errorf("the page does not say %q", word)
		}
	}
}

func TestOptionsAndContext(t *testing.T) {
	if _, err := Run(t.Context(), Options{IDs: []string{"E99"}, Size: Small(), Out: &bytes.Buffer{}}); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "E12") {
		t.Errorf("an unknown experiment: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Options{Size: Full(), Out: &bytes.Buffer{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// rowOf is a line with these figures at each of its seeds.
func rowOf(at, scheme string, figure string, values ...float64) *Row {
	r := &Row{At: at, Arm: scheme, Derived: map[string]float64{}}
	for _, v := range values {
		r.Samples = append(r.Samples, Sample{Figures: map[string]float64{figure: v}})
	}
	return r
}

func TestBound(t *testing.T) {
	rows := []*Row{rowOf("a", "x", figDrops, 0.001, 0.003), rowOf("b", "x", figDrops, 0.02)}
	for _, c := range []struct {
		rows    []*Row
		limit   float64
		atLeast bool
		met     bool
		says    string
	}{
		{rows, 0.02, false, true, "2.00 % at b"},
		{rows, 0.01, false, false, "1 of 2 lines miss it"},
		{rows[:1], 0.002, false, true, "0.20 % at a"},
		{rows, 0.01, true, false, "0.20 % at a"},
		{rows, 0.001, true, true, "at least 0.10 %"},
		{nil, 1, false, false, "nothing was run"},
		{[]*Row{rowOf("a", "x", figP50, 1)}, 1, false, false, "nothing at a"},
	} {
		got := bound("drops", c.rows, figDrops, c.limit, c.atLeast)
		if got.Met != c.met || !strings.Contains(got.Text, c.says) {
			t.Errorf("limit %v: %v, want %v and %q", c.limit, got, c.met, c.says)
		}
	}
}

// The interval is Student's, of the differences seed by seed.
func TestAdvantage(t *testing.T) {
	ours, other := rowOf("a", "x", figGoodput, 101, 102, 103), rowOf("a", "y", figGoodput, 100, 100, 100)
	mean, half := advantage(ours, other)
	if math.Abs(mean-0.02) > 1e-12 || math.Abs(half-4.303*0.01/math.Sqrt(3)) > 1e-12 {
		t.Errorf("%v +- %v", mean, half)
	}
	// A common swing of the arrivals cancels out.
	ours, other = rowOf("a", "x", figGoodput, 50, 100, 200), rowOf("a", "y", figGoodput, 50, 100, 200)
	if mean, half = advantage(ours, other); mean != 0 || half != 0 {
		t.Errorf("%v +- %v", mean, half)
	}
}

func TestBehind(t *testing.T) {
	table := func(ours ...float64) *Table {
		return &Table{Size: Size{Seeds: len(ours)}, Rows: []*Row{
			rowOf("a", baseline.Stillwater, figGoodput, ours...),
			rowOf("a", "worse", figGoodput, 50, 50, 50), rowOf("a", "better", figGoodput, 100, 100, 100),
		}}
	}
	for _, c := range []struct {
		ours []float64
		met  bool
		says string
	}{
		{[]float64{100, 100, 100}, true, "+0.00 %"},
		{[]float64{99, 99.1, 98.9}, false, "1 of 1 points miss it"},
		{[]float64{99, 97, 101}, true, "of 1 more the interval reaches that far"},
		{[]float64{98}, true, "one seed cannot tell less"},
		{[]float64{97}, false, "-3.00 %"},
	} {
		got := behind(table(c.ours...))
		if !strings.Contains(got.Text, c.says) || got.Met != c.met {
			t.Errorf("%v: %v", c.ours, got)
		}
	}
}

// The spike's figures are read off the goodput over time.
func TestSpikeIsRead(t *testing.T) {
	const per = 60
	series := make([]float64, 0, 5*per)
	for stage, rate := range []float64{400, 800, 850, 800, 400} {
		for i := range per {
			v := rate
			switch {
			case stage == 2 && i < 7:
				v = 300 // the spike hurts for 7 ms
			case stage == 3 && i >= 20 && i < 30:
				v = 600 // and there is a dip of 10 ms after it
			}
			series = append(series, v)
		}
	}
	r := &Row{At: "staircase", Samples: []Sample{{Series: series}}, Derived: map[string]float64{}}
	e6Derive(r)
	if r.Derived[figRecovery] != 8e6 || math.Abs(r.Derived[figDip]-0.75) > 1e-9 {
		t.Errorf("%v", r.Derived)
	}
	for i := range per {
		series[2*per+i] = 300
	}
	if e6Derive(r); !math.IsNaN(r.Derived[figRecovery]) {
		t.Errorf("recovered by %v", r.Derived[figRecovery])
	}
}

func TestFlat(t *testing.T) {
	rows := []*Row{rowOf("100 clients", "x", figPackets, 2), rowOf("1000 clients", "x", figPackets, 2.1)}
	if c := flat("sparse", rows, figPackets); !c.Met {
		t.Error(c)
	}
	if c := flat("sparse", append(rows, rowOf("10000 clients", "x", figPackets, 2.3)), figPackets); c.Met || !strings.Contains(c.Text, "2.300 with 10000 clients") {
		t.Error(c)
	}
}
