//go:build linux

// Package labtest has what tests need to know before they use a lab.
package labtest

import (
	"os"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
)

// Require skips the test without the rights to make namespaces, which is found out by making some. Root that cannot is a failure: a skip is only
// honest without rights.
func Require(t testing.TB) {
	t.Helper()
	pair, err := lab.NewPair(lab.PairConfig{})
	switch {
	case err == nil:
		if err := pair.Close(); err != nil {
			t.Fatal(err)
		}
	case os.Geteuid() == 0:
		t.Fatalf("root cannot make namespaces: %v", err)
	default:
		t.Skipf("not root, and namespaces cannot be made: %v", err)
	}
}
