//go:build linux && !portable

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/faultsim"
)

// TestSimFaults plays a few seeds in each form; one of them says the same by its number, and by its file.
func TestSimFaults(t *testing.T) {
	cliRun(t, "sim", "faults", "--seeds", "20").check(t, exitOK, "20 seeds from 1", "0 violated", "outcomes: ", "seeds/s")
	var all faultsData
	cliRun(t, "sim", "faults", "--seeds", "20", "-o", "json").decode(t, &all)
	if all.Seeds != 20 || all.First != 1 || all.Calls == 0 || all.Faults == 0 || all.Outcomes["ok"] == 0 || len(all.Failures) != 0 {
		t.Errorf("%+v", all)
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	one := cliRun(t, "sim", "faults", "--seed", "7", "--write", file, "-o", "jsonl")
	one.check(t, exitOK, `"schema":"`+schemaSimFaults+`"`, `"seed":7`)
	if again := cliRun(t, "sim", "faults", "--plan", file, "-o", "jsonl"); again.stdout != one.stdout {
		t.Errorf("by its number:\n%sby its file:\n%s", one.stdout, again.stdout)
	}
	lines := bufio.NewScanner(strings.NewReader(cliRun(t, "sim", "faults", "--first", "3", "--seeds", "4", "--parallel", "2", "-o", "jsonl").stdout))
	seeds := map[uint64]bool{}
	for lines.Scan() {
		var r faultsim.Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		seeds[r.Seed] = true
	}
	if len(seeds) != 4 || !seeds[3] || !seeds[6] {
		t.Errorf("seeds %v", seeds)
	}
}

// TestSimFaultsViolated prints what it says of a violation. It is made up: there is none to be had.
func TestSimFaultsViolated(t *testing.T) {
	plan := faultsim.Draw(5)
	var text strings.Builder
	f := faultsFailure{&faultsim.Result{Seed: 5, Scheme: "dagor", Faults: 2, Calls: 9, Violations: []string{"at 1ms: one\nand two"}}, &plan}
	f.describe(&text)
	for _, words := range []string{"seed 5 (dagor, 2 faults, 9 calls) is violated", "  at 1ms: one\n  and two", "--seed 5 --shrink", `"scheme": "`} {
		if !strings.Contains(text.String(), words) {
			t.Errorf("does not say %q:\n%s", words, text.String())
		}
	}
}

func TestSimFaultsUsage(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"hosts": 0}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for words, args := range map[string][]string{
		"at least 1":          {"--seeds", "0"},
		"--parallel -1":       {"--parallel", "-1"},
		"--write needs":       {"--write", "plan.json"},
		"bad plan":            {"--plan", bad},
		"unknown flag":        {"--weather", "fine"},
		"--tries 0":           {"--tries", "0"},
		"it must be one of":   {"-o", "yaml"},
		"invalid argument":    {"--seed", "first"},
		`unknown command "a"`: {"a"},
	} {
		cliRun(t, append([]string{"sim", "faults"}, args...)...).check(t, exitUsage, words)
	}
	cliRun(t, "sim", "faults", "--plan", bad+".none").check(t, exitInternal, "no such file")
}
