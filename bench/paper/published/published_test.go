package published

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
)

// TestRows counts the rows of each figure against the table that came with the data.
func TestRows(t *testing.T) {
	rows, err := Rows()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4905 {
		t.Errorf("%d rows, want 4905", len(rows))
	}
	got := map[string]int{}
	for i, r := range rows {
		got[r.Figure]++
		if r.Line != i+2 {
			t.Fatalf("row %d is on line %d", i, r.Line)
		}
		if r.LowerBound() != (r.Panel == "b-offchart-lb") {
			t.Errorf("line %d, panel %s: lower bound is %v", r.Line, r.Panel, r.LowerBound())
		}
	}
	want := map[string]int{
		"F1": 44, "F3": 112, "F4": 45, "F5": 205, "F6": 18, "F7": 4020, "F8": 112, "F9": 110, "S7": 14, "F10": 10, "F11": 83, "F12": 132,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rows per figure %v, want %v", got, want)
	}
}

// TestRowsAreTheCallers changes what one caller got, and looks at what the next one gets.
func TestRowsAreTheCallers(t *testing.T) {
	first, err := Rows()
	if err != nil {
		t.Fatal(err)
	}
	first[0].Figure = "changed"
	if second, _ := Rows(); second[0].Figure != "F1" {
		t.Errorf("the next caller got %q", second[0].Figure)
	}
}

func TestBase(t *testing.T) {
	rows, err := Rows()
	if err != nil {
		t.Fatal(err)
	}
	// One point of each unit, as the text of the paper prints it.
	want := map[string]float64{
		"F3 a Breakwater 0.9 goodput":                    800.68e3,
		"F3 b Breakwater 1.6 p99_latency":                205.98e3,
		"F3 c Breakwater 1.6 drop_rate":                  0.018896,
		"F8 b sync-RX 1.6 msg_rate":                      2.7289e6,
		"F9 a credit+spec 1.6 throughput":                852.8e3,
		"F7 b Breakwater 4.02 p99_latency":               0.2781e6,
		"F12 b SEDA 6.0 median_latency":                  15.986e3,
		"F9 b-offchart-lb no control 0.8514 p99_latency": 750300e3,
	}
	for _, r := range rows {
		key := fmt.Sprintf("%s %s %s %s %s", r.Figure, r.Panel, r.Scheme, r.X, r.Metric)
		if v, found := want[key]; found {
			if math.Abs(r.Base()-v) > 1e-9*v {
				t.Errorf("%s: %v, want %v", key, r.Base(), v)
			}
			delete(want, key)
		}
	}
	for key := range want {
		t.Errorf("no row %s", key)
	}
	if r := rows[0]; math.Abs(r.BaseError()-1300) > 1e-9 {
		t.Errorf("error %v of the first row, want 1300/s", r.BaseError())
	}
}

const goodHeader = "figure,panel,scheme,x_name,x,y_name,y,unit,error\n"

func TestMalformed(t *testing.T) {
	const good = "F3,a,DAGOR,demand_Mrps,0.1,goodput,100.1,kreqs/s,0.95\n"
	for _, tt := range []struct {
		name, text string
		line       int
		words      string
	}{
		{"nothing", "", 1, "no header"},
		{"another header", strings.Replace(goodHeader, "panel", "pane", 1), 1, "header"},
		{"no figure", goodHeader + good + ",a,DAGOR,demand_Mrps,0.1,goodput,1,kreqs/s,1\n", 3, "figure is empty"},
		{"no scheme", goodHeader + "F3,a,,demand_Mrps,0.1,goodput,1,kreqs/s,1\n", 2, "scheme is empty"},
		{"too few", goodHeader + good + "F3,a,DAGOR\n", 3, "wrong number of fields"},
		{"quote", goodHeader + good + good + "F3,\"a,DAGOR\n", 4, "\""},
		{"metric", goodHeader + "F3,a,DAGOR,demand_Mrps,0.1,badput,1,kreqs/s,1\n", 2, "unknown metric \"badput\""},
		{"unit", goodHeader + "F3,a,DAGOR,demand_Mrps,0.1,goodput,1,us,1\n", 2, "unknown unit \"us\" of goodput"},
		{"axis", goodHeader + "F3,a,DAGOR,load,0.1,goodput,1,kreqs/s,1\n", 2, "unknown axis \"load\""},
		{"x", goodHeader + "F3,a,DAGOR,demand_Mrps,much,goodput,1,kreqs/s,1\n", 2, "x: \"much\""},
		{"x where there is none", goodHeader + "F3,a,DAGOR,,1,goodput,1,kreqs/s,1\n", 2, "on no axis"},
		{"shape", goodHeader + "F3,a,DAGOR,service_dist,pareto,goodput,1,kreqs/s,1\n", 2, "\"pareto\""},
		{"alpha", goodHeader + "F3,a,DAGOR,alpha/beta,a1/b2%,goodput,1,kreqs/s,1\n", 2, "a0.1%/b2%"},
		{"beta", goodHeader + "F3,a,DAGOR,alpha/beta,a1%,goodput,1,kreqs/s,1\n", 2, "a0.1%/b2%"},
		{"negative", goodHeader + "F3,a,DAGOR,demand_Mrps,1,goodput,-1,kreqs/s,1\n", 2, "y: \"-1\""},
		{"not a number", goodHeader + "F3,a,DAGOR,demand_Mrps,1,goodput,NaN,kreqs/s,1\n", 2, "y: \"NaN\""},
		{"infinite error", goodHeader + "F3,a,DAGOR,demand_Mrps,1,goodput,1,kreqs/s,Inf\n", 2, "error: \"Inf\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows, err := Parse(strings.NewReader(tt.text))
			var fault *ParseError
			if !errors.As(err, &fault) || fault.Line != tt.line || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%d rows, error %v; want line %d and %q", len(rows), err, tt.line, tt.words)
			}
		})
	}
}

func TestReaderFails(t *testing.T) {
	broken := errors.New("broken")
	_, err := Parse(io.MultiReader(strings.NewReader(goodHeader), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("%v, want the reader's error", err)
	}
}

// FuzzParse checks that whatever is accepted keeps what the rest relies on.
func FuzzParse(f *testing.F) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		f.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		f.Fatal(err)
	}
	for i, line := range strings.SplitAfter(string(all), "\n") {
		if i > 0 && i%400 == 1 {
			f.Add(goodHeader + line)
		}
	}
	f.Add(goodHeader + "F11,ideal,ideal,,,throughput,851.1,kreqs/s,\n\nF10,-,B,alpha/beta,a0.1%/b2%,drop_rate,1.9,%,0.002\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := Parse(strings.NewReader(text))
		if err != nil {
			if rows != nil {
				t.Errorf("%d rows beside the error %v", len(rows), err)
			}
			return
		}
		last := 1
		for _, r := range rows {
			if r.Line <= last || r.Figure == "" || r.Scheme == "" || units[r.Metric][r.Unit] == 0 || math.IsNaN(r.Base()) || r.Base() < 0 || r.Error < 0 {
				t.Errorf("row %+v after line %d", r, last)
			}
			last = r.Line
		}
	})
}
