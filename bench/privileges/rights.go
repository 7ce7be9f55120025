//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// wanted is what /proc shows of each thread of nobody's (Documentation/filesystems/proc.rst): one user in all four places, and CAP_NET_RAW, bit 13.
var wanted = map[string]string{
	"Uid":    "65534\t65534\t65534\t65534",
	"Gid":    "65534\t65534\t65534\t65534",
	"CapPrm": "0000000000002000",
	"CapEff": "0000000000002000",
}

// checkRights fails if a thread of the process may do more, or less.
func checkRights(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return err
	}
	checked := 0
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		if err := checkStatus(string(text)); err != nil {
			return fmt.Errorf("%s: %w", thread, err)
		}
		checked++
	}
	if checked == 0 {
		return fmt.Errorf("process %d has no thread to look at", pid)
	}
	return nil
}

// checkStatus looks at what one thread's status says.
func checkStatus(text string) error {
	found := 0
	for line := range strings.Lines(text) {
		name, got, _ := strings.Cut(line, ":")
		want, ok := wanted[name]
		if !ok {
			continue
		}
		if got = strings.TrimSpace(got); got != want {
			return fmt.Errorf("%s is %q, it has to be %q", name, got, want)
		}
		found++
	}
	if found != len(wanted) {
		return fmt.Errorf("%d of %d rights are shown", found, len(wanted))
	}
	return nil
}
