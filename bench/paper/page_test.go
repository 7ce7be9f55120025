package paper

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// scatter makes a fake that is a few percent off, so that a picture of it shows something.
func scatter(f *fake) {
	f.change = func(p Point, r *Result) {
		rng := rand.New(rand.NewPCG(p.seed(1), uint64(len(p.Scheme))))
		noise := func(v float64, by float64) float64 { return v * (1 + by*rng.NormFloat64()) }
		r.GoodputPerS, r.ThroughputPerS = noise(r.GoodputPerS, 0.012), noise(r.ThroughputPerS, 0.012)
		r.LatencyNsP99, r.LatencyNsP50, r.DropRatioServer = noise(r.LatencyNsP99, 0.06), noise(r.LatencyNsP50, 0.06), noise(r.DropRatioServer, 0.1)
		r.RxPerS, r.TxPerS = noise(r.RxPerS, 0.02), noise(r.TxPerS, 0.02)
		for i := range r.Series {
			w := &r.Series[i]
			w.GoodputPerS, w.LatencyNsP99 = noise(w.GoodputPerS, 0.02), noise(w.LatencyNsP99, 0.1)
			w.RejectDelayNsAvg = noise(w.RejectDelayNsAvg, 0.1)
		}
		if p.Tuning.SEDA.AdjD != 0 && p.Figure == "F11" {
			r.ThroughputPerS = noise(r.ThroughputPerS, 0.15)
		}
	}
}

// TestPage writes the page of a fake: go test -run TestPage -artifacts -outputdir DIR keeps it to look at.
func TestPage(t *testing.T) {
	f := newFake(t, Full())
	scatter(f)
	var text bytes.Buffer
	file := filepath.Join(t.ArtifactDir(), "paper.html")
	r, err := Run(context.Background(), Options{
		Runner: f, Out: &text, HTML: file, Costs: "a fake: <none> & nothing", Command: "stillwater sim paper --html paper.html",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "paper.txt"), text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, page)
	for _, want := range []string{"a fake: &lt;none&gt; &amp; nothing", "stillwater sim paper", r.Verdict, "prefers-color-scheme:dark", "Checks of order"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, f := range figures {
		if !strings.Contains(string(page), "<h2>"+f.name+": ") || !strings.Contains(string(page), f.name+" residuals of ") {
			t.Errorf("%s has no section, or no residuals", f.name)
		}
	}
	if found := regexp.MustCompile(`(?i)<script|<link|<img|src=|url\(|@import|href=`).FindString(string(page)); found != "" {
		t.Errorf("the page contains %q", found)
	}
	_, body, _ := strings.Cut(string(page), "<body>")
	if found := regexp.MustCompile(`#[0-9A-Fa-f]{6}`).FindString(body); found != "" {
		t.Errorf("the colour %s is fixed", found)
	}
	if strings.Contains(body, "NaN") || strings.Contains(body, "Inf") {
		t.Error("a number that is none on the page")
	}
}

func wellFormed(t *testing.T, page []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(page))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}

// TestChartsHoldThePublishedPoints counts, over all charts but F7's, the markers: each row is drawn once, but for drops beyond the picture.
func TestChartsHoldThePublishedPoints(t *testing.T) {
	plan := plan(t, nil, nil, Full())
	r := newReport(plan, fakeResults(t, plan))
	for _, f := range figures {
		var all []Comparison
		for _, c := range r.Comparisons {
			if c.Figure == f.name {
				all = append(all, c)
			}
		}
		markers, ours := 0, 0
		for _, chart := range r.charts(f, all) {
			if chart.XLabel == "" || chart.YLabel == "" {
				t.Errorf("%s: an axis has no name", chart.Title)
			}
			for _, s := range chart.Series {
				switch {
				case s.Reference || s.Name == "published":
					markers += len(s.Points) + len(s.Markers)
				case f.name == "F11":
					ours += len(s.Markers)
				default:
					markers += len(s.Markers)
					ours += len(s.Points)
				}
				for _, p := range s.Points {
					if math.IsNaN(p.X) || len(chart.XNames) > 0 && (p.X < 0 || p.X >= float64(len(chart.XNames))) {
						t.Errorf("%s: a point at %v", chart.Title, p.X)
					}
				}
			}
		}
		want := len(numbered(all))
		if f.name == "F11" {
			want = 81 // 27 of three schemes
		}
		if markers != want || ours == 0 {
			t.Errorf("%s: %d published and %d of our points are drawn, want %d published", f.name, markers, ours, want)
		}
	}
}
