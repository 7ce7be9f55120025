package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestRun checks what holds on a machine of any speed: everybody has an answer, and not everybody a fresh one.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	var fresh, rejected, noCredit, late, failed int
	_, err := fmt.Sscanf(out.String(), "%d fresh, %d rejected, %d without credit, %d late, %d failed\n",
		&fresh, &rejected, &noCredit, &late, &failed)
	if err != nil || fresh+rejected+noCredit+late != callers || failed != 0 || fresh == callers {
		t.Errorf("printed %q: %v", out.String(), err)
	}
}
