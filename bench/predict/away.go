//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// away is what somebody did not have of a CPU for a while.
type away struct {
	Share float64       `json:"share"`   // of the time
	PerS  float64       `json:"per_s"`   // times
	Mean  time.Duration `json:"ns_mean"` // each time
}

// and is both.
func (a away) and(b away) away {
	sum := away{Share: a.Share + b.Share, PerS: a.PerS + b.PerS}
	if sum.PerS > 0 {
		sum.Mean = time.Duration(sum.Share / sum.PerS * float64(time.Second))
	}
	return sum
}

// usage is what a process has had of its CPU so far. Both children poll, so each wants its CPU all the time.
type usage struct {
	at       clock.Time
	cpu      time.Duration
	switches uint64 // times that somebody else was let in
}

// usageOf reads the usage of a process.
func usageOf(pid int) (u usage, err error) {
	// The clock of another process's CPU time: bits 0 and 1 say which of its clocks, the rest is its id, inverted (include/linux/posix-timers_types.h).
	const cpuClockSched = 2
	var spent unix.Timespec
	if err = unix.ClockGettime(int32(^pid<<3|cpuClockSched), &spent); err != nil {
		return u, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	u.at, u.cpu = clock.Now(), time.Duration(spent.Nano())
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return u, err
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // a thread that has just ended
		}
		u.switches += involuntary(string(text))
	}
	return u, nil
}

// involuntary reads out of a thread's status how often the kernel let somebody else run although it wanted to go on.
func involuntary(status string) uint64 {
	_, rest, _ := strings.Cut(status, "\nnonvoluntary_ctxt_switches:")
	line, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.ParseUint(strings.TrimSpace(line), 10, 64) // zero where a kernel does not say
	return n
}

// since is what was taken from u on.
func (u usage) since(before usage) away {
	wall := u.at.Sub(before.at)
	taken := max(wall-(u.cpu-before.cpu), 0)
	a := away{Share: float64(taken) / float64(max(wall, 1))}
	if n := u.switches - before.switches; n > 0 && u.switches > before.switches {
		a.PerS, a.Mean = float64(n)/wall.Seconds(), taken/time.Duration(n)
	}
	return a
}
