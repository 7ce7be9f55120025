//go:build linux && !portable

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One object a line, with the fields that scripts read.
func TestSimPaperLines(t *testing.T) {
	page := filepath.Join(t.TempDir(), "paper.html")
	r := cliRun(t, "sim", "paper", "--figures", "F10", "--schemes", "breakwater-artifact", "--size", "small", "-o", "jsonl", "--html", page)
	r.check(t, exitOK) // nothing of F10 is judged
	lines := 0
	for s := bufio.NewScanner(strings.NewReader(r.stdout)); s.Scan(); lines++ {
		var o map[string]any
		if err := json.Unmarshal(s.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{
			"experiment", "point", "scheme", "goodput_per_s", "published_goodput_per_s", "capacity_per_s", "latency_ns_p99", "slo_ns", "drop_ratio",
		} {
			if o[key] == nil {
				t.Errorf("no %s in %s", key, s.Text())
			}
		}
	}
	if lines != 5 {
		t.Errorf("%d lines, want the 5 points of F10", lines)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "<svg") {
		t.Errorf("page: %v", err)
	}
}

// A small run does not match, and says so by its exit code.
func TestSimPaperJudges(t *testing.T) {
	r := cliRun(t, "sim", "paper", "--figures", "F6", "--schemes", "breakwater-artifact", "--size", "small")
	r.check(t, exitCheck, "published figures")
	if !strings.Contains(r.stdout, "published beside ours") {
		t.Errorf("no table: %s", r.stdout)
	}
}

func TestSimPaperUsage(t *testing.T) {
	for _, x := range []struct{ args, word string }{
		{"--figures F2", "F2"}, {"--schemes best", "best"}, {"--size large", "large"}, {"--seed 0", "seed"}, {"--parallel -1", "-1"},
	} {
		cliRun(t, append([]string{"sim", "paper"}, strings.Fields(x.args)...)...).check(t, exitUsage, x.word)
	}
}
