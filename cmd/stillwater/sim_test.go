//go:build linux && !portable

package main

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
)

// simPoints reads the objects of -o jsonl.
func simPoints(t *testing.T, text string) (points []simPoint) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		var p simPoint
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil || !strings.HasPrefix(lines.Text(), `{"schema":"`+schemaSim+`"`) {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		points = append(points, p)
	}
	return points
}

// TestSim has a question answered in each form, and replays it from its file: the same seed, the same bytes.
func TestSim(t *testing.T) {
	folder := t.TempDir()
	file, page := filepath.Join(folder, "scenario.json"), filepath.Join(folder, "page.html")
	small := []string{"--calls", "20000", "--warmup", "5ms", "--clients", "200"}
	written := cliRun(t, append([]string{"sim", "-o", "jsonl", "--load", "0.5,2", "--write", file, "--html", page}, small...)...)
	written.check(t, exitOK)
	played := cliRun(t, "sim", "-o", "jsonl", "--scenario", file)
	played.check(t, exitOK)
	if written.stdout != played.stdout {
		t.Errorf("written:\n%splayed:\n%s", written.stdout, played.stdout)
	}
	points := simPoints(t, played.stdout)
	if len(points) != 4 {
		t.Fatalf("%d points: %s", len(points), played.stdout)
	}
	for _, p := range points {
		good := p.GoodputPerS / p.CapacityPerS
		if p.Load == 0.5 && (good < 0.45 || good > 0.55) || p.Load == 2 && (p.Scheme == "none") != (good < 0.5) {
			t.Errorf("%+v", p)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"<svg", "Goodput", "SLO 200", "At 2 times its capacity"} {
		if !strings.Contains(string(text), word) {
			t.Errorf("the page does not say %q", word)
		}
	}
	table := cliRun(t, "sim", "--scenario", file)
	table.check(t, exitOK, "10 workers, service exponential:10µs; 200 clients", "of cap.", "stillwater", "none")
	if strings.Contains(table.stdout, "\x1b") {
		t.Errorf("colours without a terminal: %q", table.stdout)
	}
	cliRun(t, "sim", "--scenario", file, "--color", "always").check(t, exitOK, "\x1b[31m", "\x1b[32m")
	var whole struct{ Points []simPoint }
	cliRun(t, "sim", "--scenario", file, "-o", "json").decode(t, &whole)
	if len(whole.Points) != 4 {
		t.Errorf("json has %d points", len(whole.Points))
	}
}

// TestSimDemand plays a curve with service times from a file.
func TestSimDemand(t *testing.T) {
	folder := t.TempDir()
	samples, page := filepath.Join(folder, "samples.txt"), filepath.Join(folder, "page.html")
	if err := os.WriteFile(samples, []byte("# of a Tuesday\n5us\n\n15us # slow\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	curve := []string{"sim", "--service-samples", samples, "--demand", "0s:300k,10ms:1.2M,20ms:300k", "--warmup", "5ms", "--scheme", "stillwater", "--html", page}
	cliRun(t, curve...).check(t, exitOK, "2 samples of 10µs in the mean", "10ms", "20ms")
	points := simPoints(t, cliRun(t, append(curve, "-o", "jsonl")...).stdout)
	if len(points) != 1 || len(points[0].Windows) != 100 || points[0].Load != 0 {
		t.Fatalf("%d points: %+v", len(points), points)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "Goodput over time") {
		t.Errorf("the page shows no curve: %v", err)
	}
	// 300k for 20 ms and the capacity, about 850k, for 10 ms are what can be had.
	s := &simulation{Sweep: simulate.Sweep{Scenario: simulate.Scenario{
		Demand: []simulate.Step{{PerS: 300e3}, {At: 10, PerS: 1.2e6}, {At: 20, PerS: 300e3}}, Measure: 30,
	}}}
	if got := s.attainable(850e3); math.Abs(got-1450e3/3) > 1 {
		t.Errorf("%v can be had", got)
	}
	bad := filepath.Join(folder, "bad.txt")
	if err := os.WriteFile(bad, []byte("5us\n12\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, "sim --service-samples "+bad, "line 2")
}

func TestSimUsageErrors(t *testing.T) {
	for line, word := range map[string]string{
		"sim nonsense":                           "unknown command",
		"sim --service-time constant:0s":         "like exponential:10us",
		"sim --service-samples nosuch.txt":       "no such file",
		"sim --workers 0":                        "at least 1",
		"sim --rtt 0":                            "like 10us",
		"sim --load 0":                           "above 0",
		"sim --load x":                           "invalid argument",
		"sim --scheme magic":                     "it must be stillwater",
		"sim --demand 400k":                      "0s:400k,2s:1.2M",
		"sim --demand 0s:400k":                   "one step is no curve",
		"sim --demand 1s:400k,2s:1k":             "demand must begin at 0",
		"sim --demand 0s:1k,1s:2k --load 1":      "leave --load",
		"sim --demand 0s:1k,1s:2k --duration 1s": "make it longer",
		"sim --demand 0s:1k,1s:2k --window 1us":  "make it longer",
		"sim --duration 1s --calls 7":            "contradict",
		"sim --duration -1s":                     "cannot be negative",
		"sim --window 1ms":                       "give a --demand",
		"sim --scenario nosuch.json":             "no such file",
		"sim --scenario nosuch.json --seed 2":    "the file says all of it",
	} {
		refused(t, line, word)
	}
}

// TestSimExperiments runs the smallest one in each form.
func TestSimExperiments(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	cliRun(t, "sim", "experiments", "E15", "--html", page).check(t, exitOK, "E15  the toy ledger", "fixed shares", "ok  ")
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "stillwater sim experiments E15") {
		t.Errorf("the page does not say its command: %v", err)
	}
	lines := cliRun(t, "sim", "experiments", "E15", "-o", "jsonl")
	lines.check(t, exitOK, `{"schema":"stillwater.experiments.v1","experiment":"E15","point":"backlog","scheme":"stillwater"`, `"met":true`)
	checked := cliRun(t, "sim", "experiments", "E15", "--check", "-o", "jsonl")
	if missed := strings.Contains(lines.stdout, `"met":false`); missed != (checked.code == exitCheck) || checked.stdout != lines.stdout {
		t.Errorf("--check: exit code %d; misses: %v", checked.code, missed)
	}
	refused(t, "sim experiments E99", "E12")
	cliRun(t, "sim", "toolbox", "E8").check(t, exitOK, "E8  jitter", "decorrelated", "ok  ")
	toolbox := cliRun(t, "sim", "toolbox", "E4", "-o", "jsonl")
	toolbox.check(t, exitOK, `{"schema":"stillwater.toolbox.v1","experiment":"E4","point":"burst of 100","arm":"CoDel"`, `"met":true`)
	refused(t, "sim toolbox E99", "E20")
	refused(t, "sim experiments --size huge", "small or full")
	refused(t, "sim experiments --seed 0", "at least 1")
}
