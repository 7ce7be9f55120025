// Package suitetest compares the tables of a suite with files.
package suitetest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/suite"
)

// Golden runs every experiment at a size and compares its table byte for byte with testdata/ID.txt: a change of a law, of a policy, of the sessions or of the
// simulator shows as a changed number. With rewrite it writes the files instead.
func Golden(t *testing.T, all []*suite.Experiment, size suite.Size, run func(context.Context, suite.Options) ([]*suite.Table, error), rewrite bool) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("other compilers may fuse a product and a sum, and round once where amd64 rounds twice")
	}
	known := map[string]bool{}
	for _, e := range all {
		file := filepath.Join("testdata", e.ID+".txt")
		known[file] = true
		t.Run(e.ID, func(t *testing.T) {
			var got bytes.Buffer
			if _, err := run(t.Context(), suite.Options{IDs: []string{e.ID}, Size: size, Out: &got}); err != nil {
				t.Fatal(err)
			}
			if rewrite {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: go test -run TestGolden . -rewrite makes it", err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("not as in %s; go test -run TestGolden . -rewrite takes it over:\n%s", file, &got)
			}
		})
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[file] {
			t.Errorf("%s is of no experiment: delete it", file)
		}
	}
}

// Whole checks that every figure of the tables has a kind, and that every point stands in its table once for each arm, at least two of them.
func Whole(t *testing.T, all []*suite.Experiment, sizes []suite.Size, kinds suite.Kinds) {
	t.Helper()
	for _, size := range sizes {
		for _, e := range all {
			for _, f := range e.Figures {
				if _, found := kinds[f]; !found {
					t.Errorf("%s: figure %s has no title", e.ID, f)
				}
			}
			seen := map[[2]string]bool{}
			for _, j := range e.Jobs(size) {
				key := [2]string{(&suite.Row{Panel: j.Panel, At: j.At}).Point(), j.Arm}
				if seen[key] || j.Arm == "" || j.Play == nil {
					t.Errorf("%s: %v is there twice, or not to be played", e.ID, key)
				}
				seen[key] = true
			}
			if len(seen) < 2 {
				t.Errorf("%s compares nothing", e.ID)
			}
		}
	}
}
