//go:build linux

// Package labtest makes labs for tests and what stands in them, and decides what becomes of a test where none can be made.
//
// Whether there are rights is found out by trying, and a skip is only honest without them. So whoever is not root and is refused skips, and
// the reason names what was refused; root that is refused fails, since a skip would hide that a capability or the kernel's help is missing.
package labtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/bench/lab"
)

// NewPair makes a veth pair for the length of the test, which is skipped without the rights for it.
func NewPair(t testing.TB, cfg lab.PairConfig) *lab.Pair {
	t.Helper()
	pair, err := lab.NewPair(cfg)
	Must(t, err)
	return closedAtEnd(t, pair)
}

// TryPair is NewPair for a test of which a part needs no lab: without the rights it returns nil, and the test's log says what is left out.
func TryPair(t testing.TB, cfg lab.PairConfig) *lab.Pair {
	t.Helper()
	pair, err := lab.NewPair(cfg)
	if err != nil {
		t.Log("what needs a lab is left out: " + excuse(t, err))
		return nil
	}
	return closedAtEnd(t, pair)
}

// Require is for a test that makes its lab by other means: it is skipped if it has no rights to make one.
func Require(t testing.TB) {
	t.Helper()
	pair, err := lab.NewPair(lab.PairConfig{})
	Must(t, err)
	if err := pair.Close(); err != nil {
		t.Fatal(err)
	}
}

// Stranger loads an XDP program that is not ours, whatever its name, for the length of the test. It lets every packet pass.
func Stranger(t testing.TB, name string) *ebpf.Program {
	t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: name, Type: ebpf.XDP, License: "MIT",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}, // XDP_PASS
	})
	Must(t, err)
	t.Cleanup(func() { program.Close() })
	return program
}

// BPFFS makes a BPF file system as [lab.NewBPFFS] does, for the length of the test.
func BPFFS(t testing.TB) *os.File {
	t.Helper()
	directory, err := lab.NewBPFFS()
	Must(t, err)
	t.Cleanup(func() { directory.Close() })
	return directory
}

// Introduce has each end's kernel know the other end's hardware address. What goes to a neighbour that isn't known is left to the kernel, which sends it from a queue
// of its choice: that is for tests in which the queue matters.
func Introduce(t testing.TB, pair *lab.Pair) {
	t.Helper()
	for _, ends := range [][2]*lab.End{{pair.A, pair.B}, {pair.B, pair.A}} {
		if err := ends[0].Do(func() error {
			return netlink.NeighSet(&netlink.Neigh{
				LinkIndex: ends[0].Index, State: netlink.NUD_PERMANENT, IP: ends[1].Address.Addr().AsSlice(), HardwareAddr: ends[1].Hardware,
			})
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// Must takes the error of what needs rights. If there is one, it ends the test.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Skip(excuse(t, err))
	}
}

// excuse says why something may be left out. Root has no excuse.
func excuse(t testing.TB, err error) string {
	t.Helper()
	uid := os.Geteuid()
	if uid == 0 {
		t.Fatalf("root was refused: %+v", err)
	}
	return fmt.Sprintf("it takes root, and uid %d was refused: %v", uid, err)
}

func closedAtEnd(t testing.TB, pair *lab.Pair) *lab.Pair {
	t.Cleanup(func() {
		if err := pair.Close(); err != nil {
			t.Error(err)
		}
	})
	return pair
}
