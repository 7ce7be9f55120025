//go:build linux

package bpf_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
)

// TestVerdictsOf reads the counters by the program's id, as another process would.
func TestVerdictsOf(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	program := load(t)
	inside(t, pair, func() error {
		_, err := program.Attach(pair.A.Index, bpf.ModeAuto)
		return err
	})
	// Nothing is on the link but what a test sends, so the counters stand still.
	want, err := program.Verdicts()
	if err != nil {
		t.Fatal(err)
	}
	got, err := bpf.VerdictsOf(inspect(t, pair).ProgramID)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("by id %v, %v; by the program itself %v", got, err, want)
	}
	other := labtest.Stranger(t, "stillwater_xdp")
	info, err := other.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	if _, err := bpf.VerdictsOf(uint32(id)); !errors.Is(err, bpf.ErrNoCounters) {
		t.Errorf("a stranger under our name: %v", err)
	}
}
