//go:build linux

package main

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// serverCPU is where package child has the server, on machines with two CPUs or more.
const serverCPU = 1

// stallMin is longer than an interrupt of the kernel's clock.
const stallMin = 20 * time.Microsecond

// stalls counts the times for which a spinning thread was kept away by what the kernel knows nothing of: the host of a virtual machine, mostly. What
// the kernel gives to others is in the usage of the process that wanted it.
type stalls struct {
	count int
	sum   time.Duration
}

// see notes a gap between two readings of the clock, of which the kernel says how long it had the thread wait.
func (s *stalls) see(gap, waited time.Duration) {
	if gap >= stallMin && waited < gap/2 {
		s.count++
		s.sum += gap
	}
}

// over is what they come to.
func (s *stalls) over(span time.Duration) (a away) {
	if s.count > 0 {
		a = away{Share: float64(s.sum) / float64(span), PerS: float64(s.count) / span.Seconds(), Mean: s.sum / time.Duration(s.count)}
	}
	return a
}

// hostStalls spins on the server's CPU.
func hostStalls(span time.Duration) (a away, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the pinned thread ends with its goroutine
		if runtime.NumCPU() > serverCPU {
			var set unix.CPUSet
			set.Set(serverCPU)
			if err = unix.SchedSetaffinity(0, &set); err != nil {
				err = fmt.Errorf("spinning on CPU %d: %w", serverCPU, err)
				return
			}
		}
		var s stalls
		begin, cpu := clock.Now(), threadTime()
		marked := begin
		for last := begin; last.Sub(begin) < span; {
			now := clock.Now()
			if gap := now.Sub(last); gap >= stallMin {
				spent := threadTime()
				s.see(gap, now.Sub(marked)-(spent-cpu))
				now = clock.Now()
				marked, cpu = now, spent
			}
			last = now
		}
		a = s.over(span)
	}()
	<-done
	return a, err
}

// threadTime is the CPU time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // which every Linux has
	return time.Duration(t.Nano())
}
