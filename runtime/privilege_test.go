package runtime_test

import (
	"os"
	"testing"
)

// requireUnprivileged fails a test that could not make a lab although it is root: a skip is only honest without rights.
func requireUnprivileged(t *testing.T, err error) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Fatalf("root cannot make namespaces: %v", err)
	}
	t.Logf("AF_XDP left out: not root (%v)", err)
}
