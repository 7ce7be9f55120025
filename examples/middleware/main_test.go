package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestRun checks what holds on a machine of any speed: everybody has an answer, somebody a report, and health is never refused.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	var reports, refused, failed, health, arrived, left int
	_, err := fmt.Sscanf(out.String(), "%d reports, %d refused, %d failed; health %d; %d arrived, %d run\n", &reports, &refused, &failed, &health, &arrived, &left)
	if err != nil || reports+refused != callers || reports == 0 || failed != 0 || health != 200 || arrived != callers || left != 0 {
		t.Errorf("printed %q: %v", out.String(), err)
	}
}
