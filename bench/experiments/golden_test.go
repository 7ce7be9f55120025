package experiments

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata; read the difference before you commit it")

// TestGolden runs every experiment at the small size and compares its table byte for byte: a change of a law, of the sessions or of the simulator
// shows as a changed number.
func TestGolden(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine runs each world, and the race detector makes it ten times slower")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("other compilers may fuse a product and a sum, and round once where amd64 rounds twice")
	}
	known := map[string]bool{}
	for _, e := range Experiments() {
		file := filepath.Join("testdata", e.ID+".txt")
		known[file] = true
		t.Run(e.ID, func(t *testing.T) {
			var got bytes.Buffer
			if _, err := Run(t.Context(), Options{IDs: []string{e.ID}, Size: Small(), Out: &got}); err != nil {
				t.Fatal(err)
			}
			if *rewrite {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: go test -run TestGolden -rewrite makes it", err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("not as in %s; go test -run TestGolden -rewrite takes it over:\n%s", file, &got)
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
