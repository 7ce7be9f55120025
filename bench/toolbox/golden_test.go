package toolbox

import (
	"flag"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/suite/suitetest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata; read the difference before you commit it")

func TestGolden(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine runs each world, and the race detector makes it ten times slower")
	}
	suitetest.Golden(t, Experiments(), Small(), Run, *rewrite)
}

func TestPlansAreWhole(t *testing.T) {
	suitetest.Whole(t, Experiments(), []Size{Small(), Full()}, kinds)
}
