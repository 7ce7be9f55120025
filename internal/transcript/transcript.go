// Package transcript plays stories: files of commands with what each must print, which are read like a log and compared byte for byte.
//
// A file is a list of blocks with empty lines between them. A block is comments (lines that begin with #), one command, a line of dashes, and what the
// command prints:
//
//	# B was lost: the limit comes again with the next answer.
//	answer A success
//	----
//	packet 3: limit 4 seq 2 to A
//
// A block of comments alone has no dashes.
package transcript

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// -rewrite replaces the expected output by the actual one. Commit only a difference that you can explain.
var rewrite = flag.Bool("rewrite", false, "rewrite testdata")

// Play plays testdata/*.txt of the package under test, each as a test of its own. begin makes what a story is about, and returns what runs one command,
// given as its fields, and returns what it prints.
func Play(t *testing.T, begin func(t *testing.T) (run func(fields []string) string)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			played := play(string(text), begin(t), func(command, got, want string) {
				if !*rewrite {
					t.Errorf("%s: %s\ngot:\n%s\nwant:\n%s", file, command, got, want)
				}
			})
			if !*rewrite {
				return
			}
			if err := os.WriteFile(file, []byte(played), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// play runs the commands of a text and returns it with what they print. differs is told of each that prints something else than it says.
func play(text string, run func(fields []string) string, differs func(command, got, want string)) string {
	var out []string
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		command, want, found := strings.Cut(block, "\n----")
		line := command[strings.LastIndex(command, "\n")+1:]
		if !found && strings.HasPrefix(line, "#") {
			out = append(out, block)
			continue
		}
		got := strings.TrimRight(run(strings.Fields(line)), "\n")
		if want = strings.Trim(want, "\n"); got != want || !found {
			differs(line, got, want)
		}
		out = append(out, strings.TrimRight(command+"\n----\n"+got, "\n"))
	}
	return strings.Join(out, "\n\n") + "\n"
}
