//go:build linux && !portable

package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata/help; read the difference before you commit it")

// eachCommand calls f with every command that a person can see, the root first.
func eachCommand(f func(cmd *cobra.Command)) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		f(cmd)
		for _, child := range cmd.Commands() {
			if !child.Hidden {
				walk(child)
			}
		}
	}
	walk(newRoot(&cli{env: env{stdout: io.Discard, stderr: io.Discard}}))
}

// TestHelp asks every command for help. What it says is part of the interface, so each change of it shows in a review.
func TestHelp(t *testing.T) {
	known := map[string]bool{}
	eachCommand(func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		r := cliRun(t, append(path, "--help")...)
		r.check(t, exitOK, "Usage:")
		if r.stderr != "" {
			t.Errorf("%v: help on standard error: %s", path, r.stderr)
		}
		file := filepath.Join("testdata", "help", strings.Join(append([]string{"stillwater"}, path...), "_")+".txt")
		known[file] = true
		if *rewrite {
			if err := os.WriteFile(file, []byte(r.stdout), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v: go test -run TestHelp -rewrite makes it", err)
		} else if r.stdout != string(want) {
			t.Errorf("%v: help is not as in %s; go test -run TestHelp -rewrite takes it over:\n%s", path, file, r.stdout)
		}
	})
	files, err := filepath.Glob("testdata/help/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[file] {
			t.Errorf("%s is of no command: delete it", file)
		}
	}
}

// TestCompletion asks for what cobra brings along.
func TestCompletion(t *testing.T) {
	cliRun(t, "completion", "--help").check(t, exitOK, "bash")
	cliRun(t, "completion", "bash").check(t, exitOK, "stillwater")
	cliRun(t).check(t, exitOK, "Available Commands")
}
