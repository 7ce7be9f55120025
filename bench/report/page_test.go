package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// samplePage is a page as the demo makes it, from a model: an arm that holds, an arm that collapses. Its numbers are
// made up and serve to look at: go test -run TestPage -artifacts -outputdir DIR keeps the file.
func samplePage() Page {
	const capacity = 92_400
	nan := math.NaN()
	credits, none := Arm{Name: "credits"}, Arm{Name: "no control"}
	for load := 0.2; load < 2.05; load += 0.2 {
		offered := load * capacity
		good := min(offered, capacity*0.97)
		over := max(offered-capacity*0.97, 0)
		queue := 4000 / max(1.05-load, 0.05)
		credits.Points = append(credits.Points, LoadPoint{
			OfferedPerS: offered, GoodputPerS: good * 0.99, RejectedPerS: over * 0.02, ExpiredPerS: over * 0.98,
			LatencyNsP99: min(60_000*(1+queue/40_000), 185_000), LatencyNsP999: min(90_000*(1+queue/30_000), 260_000),
			QueueDelayNs: min(queue, 82_000), CreditsPool: 1000/(0.5+load) + 12, CreditsIssued: min(990/(0.5+load), 700) * load / 2,
		})
		collapsed, p99 := offered, 70_000*(1+queue/40_000)
		if load > 0.95 {
			collapsed, p99 = capacity*0.02, 680e6
		}
		none.Points = append(none.Points, LoadPoint{
			OfferedPerS: offered, GoodputPerS: collapsed, LatencyNsP99: p99, LatencyNsP999: p99 * 1.3,
			QueueDelayNs: p99 * 0.9, RejectedPerS: 0, ExpiredPerS: 0, CreditsPool: nan, CreditsIssued: nan,
		})
	}
	sweep := Sweep{Arms: []Arm{credits, none}, CapacityPerS: capacity, SLO: 200 * time.Microsecond, TargetDelay: 80 * time.Microsecond}
	with, without := Timeline{Name: "credits", BucketWidth: 10 * time.Millisecond}, Timeline{Name: "no control", BucketWidth: 10 * time.Millisecond}
	for i := range 100 {
		a, b := 0.995, 0.99
		if i >= 30 && i < 50 {
			a, b = 0.48+0.01*float64(i%3), 0.01
		} else if i >= 50 && i < 75 {
			b = 0
		}
		with.Shares, without.Shares = append(with.Shares, a), append(without.Shares, b)
	}
	return Page{
		Title:   "Stillwater: goodput under overload",
		Verdict: "At twice its capacity the server with credits kept 96 % of its goodput within 200 µs; without control it kept 2 % <of & it>.",
		Passed:  true,
		Sections: []Section{
			{Title: "Sweep of the offered load", Text: "1,000 clients, exponential service of 10 µs.", Charts: []LineChart{sweep.Goodput(), sweep.Latency(), sweep.Refusals(), sweep.QueueDelay(), sweep.Credits()},
				Tables: []DataTable{{Title: "All numbers", Columns: []string{"arm", "load", "offered k/s", "goodput k/s", "p99 µs"}, Rows: [][]string{{"credits", "2.0", "184.8", "88.7", "185"}, {"no control", "2.0", "184.8", "1.8", "680000"}}}}},
			{Title: "A step up and back", Charts: []LineChart{StepChart([]Timeline{with, without}, 300*time.Millisecond, 500*time.Millisecond, "offered: 2 times the capacity")}},
		},
		Facts:   append(MachineFacts(), Fact{"seed", "42"}),
		Command: "go run ./cmd/stillwater demo --seed 42",
	}
}

func TestPage(t *testing.T) {
	var b bytes.Buffer
	page := samplePage()
	if err := page.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "page.html"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	checkXML(t, text)
	for _, want := range []string{page.Title, "&lt;of &amp; it&gt;", "CPUs", page.Command, "prefers-color-scheme:dark", "680000"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	charts := 0
	for _, s := range page.Sections {
		charts += len(s.Charts)
	}
	if got := strings.Count(text, "<svg "); got != charts {
		t.Errorf("%d charts in the page; want %d", got, charts)
	}
	// Self-contained: nothing is fetched, nothing runs.
	if found := regexp.MustCompile(`(?i)<script|<link|<img|src=|url\(|@import|href=`).FindString(text); found != "" {
		t.Errorf("the page contains %q", found)
	}
	// Colours follow the theme: a colour of the light one outside the style sheet would stay light in the dark.
	_, body, _ := strings.Cut(text, "<body>")
	if found := regexp.MustCompile(`#[0-9A-Fa-f]{6}`).FindString(body); found != "" {
		t.Errorf("the colour %s is fixed", found)
	}
}

// checkXML fails unless text is well-formed but for the doctype.
func checkXML(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
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

// figures returns the SVG of every chart of the sample by title.
func figures(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, s := range samplePage().Sections {
		for _, c := range s.Charts {
			var b bytes.Buffer
			if err := c.WriteSVG(&b); err != nil {
				t.Fatal(err)
			}
			checkXML(t, b.String())
			all[c.Title] = b.String()
		}
	}
	return all
}

func TestChartsNameEverySeries(t *testing.T) {
	all := figures(t)
	for _, s := range samplePage().Sections {
		for _, c := range s.Charts {
			svg := all[c.Title]
			names := []string{c.YLabel, c.XLabel}
			for _, x := range c.Series {
				names = append(names, x.Name)
			}
			for _, h := range c.HLines {
				names = append(names, h.Label)
			}
			for _, span := range c.Spans {
				names = append(names, span.Label)
			}
			for _, name := range names {
				if !strings.Contains(svg, ">"+name+"<") {
					t.Errorf("%s: %q is not in the picture", c.Title, name)
				}
			}
		}
	}
}

// TestCurvesAreDrawn looks for a path in each series' colour, longer than a sample in the legend.
func TestCurvesAreDrawn(t *testing.T) {
	path := regexp.MustCompile(`<path d="([^"]*)"[^>]*?stroke:(#[0-9A-F]{6})`)
	for title, svg := range figures(t) {
		lines := map[string]int{}
		for _, m := range path.FindAllStringSubmatch(strings.ReplaceAll(svg, "\n", " "), -1) {
			lines[m[2]] = max(lines[m[2]], strings.Count(m[1], "L"))
		}
		if lines[seriesRoles[0].light] < 5 {
			t.Errorf("%s: no curve in the first colour: %v", title, lines)
		}
	}
}

func TestChartsOfAwkwardData(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []LineChart{
		{Title: "nothing"},
		{Title: "nothing, logarithmic", LogY: true},
		{Title: "an empty series", Series: []Series{{Name: "empty"}}},
		{Title: "one point", Series: []Series{{Name: "one", Points: []Point{{5, 5}}}}},
		{Title: "all the same", Series: []Series{{Name: "flat", Points: []Point{{1, 0}, {2, 0}}}}},
		{Title: "not finite", LogY: true, Series: []Series{{Name: "holes", Points: []Point{{1, nan}, {2, inf}, {3, 0}, {4, -1}, {5, 7}}}}},
		{Title: "lines at nowhere", LogY: true, HLines: []HLine{{0, "zero"}, {nan, "nan"}}},
		{Title: "negative", Series: []Series{{Name: "below", Points: []Point{{-3, -7}, {4, 9}}}}},
		{Title: "more series than colours", Series: make([]Series, 20)},
		{Title: "a span outside", Spans: []Span{{50, 60, "away"}, {-1, 0.5, "half"}}},
	} {
		var b bytes.Buffer
		if err := c.WriteSVG(&b); err != nil {
			t.Errorf("%s: %v", c.Title, err)
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%s: a number that is none in the picture", c.Title)
		}
		checkXML(t, b.String())
	}
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		lo, hi float64
		log    bool
		format Format
		want   string
	}{
		{0, 1, false, Percent, "0|20 %|40 %|60 %|80 %|100 %"},
		{0, 184_800, false, Count, "0|50k|100k|150k"},
		{1e4, 1e9, true, Duration, "10 µs|100 µs|1 ms|10 ms|100 ms|1 s"},
		{5e4, 5e5, true, Duration, "50 µs|100 µs|200 µs|500 µs"},
	} {
		var labels []string
		ticks := linearTicks{tt.format}.Ticks(tt.lo, tt.hi)
		if tt.log {
			ticks = logTicks{tt.format}.Ticks(tt.lo, tt.hi)
		}
		for _, tick := range ticks {
			if tick.Label != "" {
				labels = append(labels, strings.ReplaceAll(tick.Label, "\u00a0", " "))
			}
		}
		if got := strings.ReplaceAll(strings.Join(labels, "|"), "0 %|20", "0|20"); got != tt.want {
			t.Errorf("ticks of %v..%v: %s; want %s", tt.lo, tt.hi, got, tt.want)
		}
	}
}

// TestMarkersApart draws a curve whose markers are somebody else's points, and one of markers alone.
func TestMarkersApart(t *testing.T) {
	c := LineChart{Title: "apart", XNames: []string{"alpha", "beta", "gamma"}, Series: []Series{
		{Name: "ours", Points: []Point{{0, 1}, {1, 2}, {2, 3}}, Markers: []Point{{1, 9}}},
		{Name: "alone", Color: 9, Markers: []Point{{0, 4}, {2, 4}}},
	}}
	var b bytes.Buffer
	if err := c.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	checkXML(t, b.String())
	for _, name := range c.XNames {
		if !strings.Contains(b.String(), ">"+name+"<") {
			t.Errorf("%q does not stand on the axis", name)
		}
	}
	// One disc of the curve and one in its legend; two diamonds alone and one in the legend.
	for shape, want := range map[string]int{"fill:" + seriesRoles[0].light: 2, "stroke:" + seriesRoles[8].light: 3} {
		if got := strings.Count(b.String(), shape); got != want {
			t.Errorf("%d times %s, want %d", got, shape, want)
		}
	}
}

// TestAxisBelowZero: an axis whose end is not fixed holds what is above and below zero.
func TestAxisBelowZero(t *testing.T) {
	c := LineChart{HLines: []HLine{{0, "zero"}, {0.05, "range"}, {-0.05, ""}}, Series: []Series{{Name: "a", Markers: []Point{{1, 0.08}, {2, -0.02}}}}}
	if _, _, lo, hi := c.extent(c.curves()); lo > -0.05 || hi < 0.08 {
		t.Errorf("from %v to %v", lo, hi)
	}
	c.YMin, c.YMax = -0.06, 0.06
	if _, _, lo, hi := c.extent(c.curves()); lo != -0.06 || hi != 0.06 {
		t.Errorf("fixed: from %v to %v", lo, hi)
	}
	var b bytes.Buffer
	if err := c.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(b.String(), "<text"); !strings.Contains(b.String(), ">range<") || strings.Contains(b.String(), "></text>") {
		t.Errorf("%d texts, of which one is empty or none is the range", got)
	}
}

func TestFoldedTable(t *testing.T) {
	var b bytes.Buffer
	p := Page{Sections: []Section{{Tables: []DataTable{{Title: "rarely read", Folded: true, Columns: []string{"a"}}, {Title: "always", Text: 2, Columns: []string{"b", "c", "d"}, Rows: [][]string{{"x", "y", "1"}}}}}}}
	if err := p.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	checkXML(t, b.String())
	for _, want := range []string{"<summary>rarely read</summary>", "<caption>always</caption>", `<td class="text">y</td><td>1</td>`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(b.String(), "<caption>rarely") {
		t.Error("a folded table has its title twice")
	}
}
