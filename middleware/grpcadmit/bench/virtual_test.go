//go:build linux

package main

import (
	"runtime"
	"testing"
	"time"
)

// TestVirtual has each arm serve a little, on its own clock: all that arose is answered or refused, but for what is under way in the end.
func TestVirtual(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	o := &options{work: time.Microsecond, slo: 2 * time.Millisecond, conns: 2, length: 50 * time.Millisecond}
	for _, arm := range []string{"bare", "cap", "cap-workers", "ours", "ours-listener", "ours-tap"} {
		f, err := virtual(o, arm, 2000, 0, 1)
		if err != nil || f.Offered == 0 || f.Answered == 0 || f.Answered+f.Refused > f.Offered {
			t.Errorf("%s: %+v, %v", arm, f, err)
		}
	}
	if f, err := virtual(o, "bare", 0, 4, 1); err != nil || f.Answered == 0 {
		t.Errorf("closed loop: %+v, %v", f, err)
	}
	if _, err := virtual(o, "none", 1, 0, 1); err == nil {
		t.Error("an arm that is none")
	}
}
