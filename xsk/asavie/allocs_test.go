//go:build linux && !race

package asavie_test

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/asavie"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
	"github.com/stillwater-rpc/stillwater/xsk/xsktest/contract"
)

// TestPathDoesNotAllocate sends and receives often enough that the books are settled several times.
func TestPathDoesNotAllocate(t *testing.T) {
	contract.Apart(t, func(t *testing.T) {
		pair := labtest.NewPair(t, lab.PairConfig{})
		a := contract.NewSide(t, pair.A, xsk.Config{}, asavie.Open)
		b := contract.NewSide(t, pair.B, xsk.Config{}, asavie.Open)
		batch := make([]frame.Desc, 64)
		objects := testing.AllocsPerRun(1000, func() {
			for range 32 {
				a.Send(t, pair.B, 0, 64)
			}
			a.Drain(t)
			b.Queue.Release(batch[:b.Queue.Receive(batch)])
		})
		if objects != 0 {
			t.Errorf("%v objects for 32 packets", objects)
		}
	})
}
