package workload

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

func TestParseServiceTime(t *testing.T) {
	for _, tt := range []struct {
		text string
		want ServiceTime
		fail string
	}{
		{text: "constant:10us", want: ServiceTime{Constant, 10 * time.Microsecond}},
		{text: "exponential:1ms", want: ServiceTime{Exponential, time.Millisecond}},
		{text: "bimodal:100us", want: ServiceTime{Bimodal, 100 * time.Microsecond}},
		{text: "lognormal:100us", want: ServiceTime{Lognormal, 100 * time.Microsecond}},
		{text: "constant:0s", want: ServiceTime{}},
		{text: "exponential", fail: "mean is missing"},
		{text: "", fail: "mean is missing"},
		{text: "pareto:10us", fail: `unknown shape "pareto"`},
		{text: "constant:10", fail: "missing unit"},
		{text: "constant:-1us", fail: "out of range"},
		{text: "constant:11s", fail: "out of range"},
	} {
		got, err := ParseServiceTime(tt.text)
		if tt.fail == "" {
			if err != nil || got != tt.want {
				t.Errorf("ParseServiceTime(%q) = %v, %v; want %v", tt.text, got, err, tt.want)
			}
			if again, err := ParseServiceTime(got.String()); err != nil || again != got {
				t.Errorf("%v does not survive String and Parse: %v, %v", got, again, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.fail) || !strings.Contains(err.Error(), legalServiceTimes) {
			t.Errorf("ParseServiceTime(%q) error = %v; want %q and the legal forms", tt.text, err, tt.fail)
		}
	}
}

func TestTextForms(t *testing.T) {
	type config struct {
		Service  ServiceTime `json:"service"`
		Arrivals Process     `json:"arrivals"`
	}
	in := config{ServiceTime{Bimodal, time.Microsecond}, Fixed}
	text, err := json.Marshal(in)
	if err != nil || string(text) != `{"service":"bimodal:1µs","arrivals":"fixed"}` {
		t.Fatalf("Marshal = %s, %v", text, err)
	}
	var out config
	if err := json.Unmarshal(text, &out); err != nil || out != in {
		t.Errorf("Unmarshal = %v, %v; want %v", out, err, in)
	}
	if err := json.Unmarshal([]byte(`{"arrivals":"bursty"}`), &out); err == nil || !strings.Contains(err.Error(), "poisson or fixed") {
		t.Errorf("an unknown process must name the legal ones, got %v", err)
	}
}

// TestSampleMean checks the mean of every shape and the spread that tells them apart. The draws are seeded, so the
// bounds can be tight without the test ever failing by chance.
func TestSampleMean(t *testing.T) {
	const n = 200_000
	mean := 10 * time.Microsecond
	for _, tt := range []struct {
		shape     Shape
		deviation float64 // standard deviation over mean
	}{{Constant, 0}, {Exponential, 1}, {Bimodal, 1.5}, {Lognormal, 1.311}} {
		service := ServiceTime{tt.shape, mean}
		r := ServiceRand(7)
		var sum, squares float64
		for range n {
			x := float64(service.Sample(r)) / float64(mean)
			sum += x
			squares += x * x
		}
		got := sum / n
		deviation := math.Sqrt(max(squares/n-got*got, 0))
		if math.Abs(got-1) > 0.01 || math.Abs(deviation-tt.deviation) > 0.02 {
			t.Errorf("%v: mean %.4f, deviation %.4f; want 1 and %.2f", service, got, deviation, tt.deviation)
		}
	}
}

func TestSampleIsSeededAndBounded(t *testing.T) {
	long := ServiceTime{Bimodal, MaxWork}
	a, b, c := ServiceRand(1), ServiceRand(1), ServiceRand(2)
	same := true
	for range 1000 {
		x, y, z := long.Sample(a), long.Sample(b), long.Sample(c)
		if x != y {
			t.Fatalf("one seed, two sequences: %v and %v", x, y)
		}
		same = same && x == z
		if x > MaxWork {
			t.Fatalf("sample %v is above MaxWork", x)
		}
	}
	if same {
		t.Error("two seeds gave one sequence")
	}
}

func TestWorkRoundTrip(t *testing.T) {
	payload := make([]byte, 64)
	for _, d := range []time.Duration{0, 1, 10 * time.Microsecond, MaxWork} {
		if err := EncodeWork(payload, d); err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeWork(payload); err != nil || got != d {
			t.Errorf("DecodeWork = %v, %v; want %v", got, err, d)
		}
	}
}

func TestWorkRefusals(t *testing.T) {
	if err := EncodeWork(make([]byte, 7), 1); err == nil {
		t.Error("seven bytes cannot carry work")
	}
	for _, d := range []time.Duration{-1, MaxWork + 1} {
		if err := EncodeWork(make([]byte, 8), d); err == nil {
			t.Errorf("work of %v must be refused", d)
		}
	}
	for _, payload := range [][]byte{nil, make([]byte, 7), {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0x80, 0, 0, 0, 0, 0, 0, 0}} {
		if _, err := DecodeWork(payload); !errors.Is(err, ErrWork) {
			t.Errorf("DecodeWork(%x) = %v; want ErrWork", payload, err)
		}
	}
}

func TestSpinLastsAtLeastAsLong(t *testing.T) {
	for _, d := range []time.Duration{-1, 0, 50 * time.Microsecond} {
		before := clock.Now()
		Spin(d)
		if took := clock.Now().Sub(before); took < d {
			t.Errorf("Spin(%v) took %v", d, took)
		}
	}
	before := clock.Now()
	Sleep(time.Millisecond)
	if took := clock.Now().Sub(before); took < time.Millisecond {
		t.Errorf("Sleep(1ms) took %v", took)
	}
}

func TestFixedArrivalsKeepTheGrid(t *testing.T) {
	a := NewArrivals(Fixed, 1000, 1e6, 1)
	for i := range 100_000 {
		if want := clock.Time(1000 + (i+1)*1000); a.Due() != want {
			t.Fatalf("arrival %d is due at %d; want %d", i, a.Due(), want)
		}
		a.Advance()
	}
}

func TestPoissonArrivals(t *testing.T) {
	const n = 200_000
	a, b := NewArrivals(Poisson, 5, 1e5, 3), NewArrivals(Poisson, 5, 1e5, 3)
	var squares float64
	last := clock.Time(5)
	for range n {
		due := a.Due()
		if due != b.Due() {
			t.Fatal("one seed, two sequences")
		}
		if due < last {
			t.Fatalf("arrivals run backwards: %d after %d", due, last)
		}
		gap := float64(due-last) / 1e4
		squares += gap * gap
		last = due
		a.Advance()
		b.Advance()
	}
	mean := float64(last) / 1e4 / n
	if variance := squares/n - mean*mean; math.Abs(mean-1) > 0.01 || math.Abs(variance-1) > 0.03 {
		t.Errorf("gaps have mean %.4f and variance %.4f of the unit exponential", mean, variance)
	}
}

func TestSetRate(t *testing.T) {
	a := NewArrivals(Fixed, 0, 1e6, 1) // one per us
	a.Advance()                        // the first, at 1000
	a.SetRate(1500, 0.5e6)             // half of the gap is left, and now takes twice as long
	if got := a.Due(); got != 2500 {
		t.Errorf("due = %d after halving the rate; want 2500", got)
	}
	a.SetRate(2000, 0)
	if got := a.Due(); got != never {
		t.Errorf("due = %d at rate zero; want never", got)
	}
	a.Advance() // nothing to take
	a.SetRate(10_000, 1e6)
	if got := a.Due(); got != 10_250 { // a quarter of the gap was left at 2000
		t.Errorf("due = %d after the pause; want 10250", got)
	}
}

func TestNothingAllocates(t *testing.T) {
	service, r := ServiceTime{Bimodal, time.Microsecond}, ServiceRand(1)
	arrivals := NewArrivals(Poisson, 0, 1e6, 1)
	payload := make([]byte, WorkBytes)
	allocs := testing.AllocsPerRun(1000, func() {
		if err := EncodeWork(payload, service.Sample(r)); err != nil {
			t.Fatal(err)
		}
		d, err := DecodeWork(payload)
		if err != nil {
			t.Fatal(err)
		}
		_ = d
		_ = arrivals.Due()
		arrivals.Advance()
	})
	if allocs != 0 {
		t.Errorf("%v allocations per request; want none", allocs)
	}
}
