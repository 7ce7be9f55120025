//go:build linux

package contract

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// world is what a case works in: a fresh veth pair, and the implementation.
type world struct {
	*lab.Pair
	open func(xsk.Config) (Queue, error)
}

// side opens a queue at an end.
func (w *world) side(t *testing.T, end *lab.End, cfg xsk.Config) *Side[Queue] {
	t.Helper()
	return NewSide(t, end, cfg, w.open)
}

var cases = []struct {
	name string
	pair lab.PairConfig
	run  func(*testing.T, *world)
}{
	{"Across", lab.PairConfig{}, across},
	{"KernelPeer", lab.PairConfig{}, kernelPeer},
	{"LongestPacket", lab.PairConfig{MTU: 3000}, longestPacket},
	{"FramesAreOwnedOnce", lab.PairConfig{}, framesAreOwnedOnce},
	{"SubmitRefuses", lab.PairConfig{}, submitRefuses},
	{"HeldPacketsStay", lab.PairConfig{}, heldPacketsStay},
	{"TxRingOverflow", lab.PairConfig{}, txRingOverflow},
	{"ReceiveOverload", lab.PairConfig{}, receiveOverload},
	{"LinkDownAndGone", lab.PairConfig{}, linkDownAndGone},
	{"AtRandom", lab.PairConfig{}, atRandom},
	{"Close", lab.PairConfig{}, closes},
}

// Test holds an implementation to the contract. open opens a queue in the network namespace of the calling thread.
func Test[Q Queue](t *testing.T, open func(xsk.Config) (Q, error)) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, newWorld(t, c.pair, open)) })
	}
}

func newWorld[Q Queue](t *testing.T, cfg lab.PairConfig, open func(xsk.Config) (Q, error)) *world {
	return &world{labtest.NewPair(t, cfg), func(cfg xsk.Config) (Queue, error) { return open(cfg) }}
}

// apart is set in the environment of a process that runs one case.
const apart = "STILLWATER_CONTRACT_APART"

// TestApart is Test with each case in a process of its own, for an implementation that keeps something until its process ends.
func TestApart[Q Queue](t *testing.T, open func(xsk.Config) (Q, error)) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			Apart(t, func(t *testing.T) { c.run(t, newWorld(t, c.pair, open)) })
		})
	}
}

// Apart runs f in a process of its own: the test's program once more, with this test alone. It must be all that the test does, and the test
// needs the rights to make a lab.
func Apart(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if os.Getenv(apart) != "" {
		f(t)
		return
	}
	labtest.Require(t)
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Each part of the name is matched by itself, in full.
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	command := exec.CommandContext(t.Context(), executable, "-test.run", pattern, "-test.v", "-test.count=1", "-test.timeout=2m")
	command.Env = append(os.Environ(), apart+"=1", "GORACE=atexit_sleep_ms=0")
	output, err := command.CombinedOutput()
	// A pattern that finds nothing passes as well, so the test must say that it has.
	if err != nil || !strings.Contains(string(output), "--- PASS: "+t.Name()+" ") {
		t.Errorf("in a process of its own: %v\n%s", err, output)
	}
}
