package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	left := -1
	if _, err := fmt.Sscanf(out.String(), "behind the middle tier: %d s left of 10\n", &left); err != nil || left < 0 || left > 9 {
		t.Errorf("printed %q: %d s, %v", out.String(), left, err)
	}
}
