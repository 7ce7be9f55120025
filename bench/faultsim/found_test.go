package faultsim

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFound plays the shortest plans of the defects that were found by these runs, one a file with the defect's name. Each has a test of its own in the
// package that had it; here it stands with all that is around it.
func TestFound(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans: %v", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			file, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			plan, err := Read(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Play(t.Context(), plan)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range r.Violations {
				t.Error(v)
			}
		})
	}
}
