package clock

import (
	"time"
	_ "unsafe" // for go:linkname
)

// Time is a monotonic instant in nanoseconds; zero is "unset".
type Time int64

// nanotime is CLOCK_MONOTONIC by way of the vDSO. time.Now reads two clocks and costs twice as much, and
// unix.ClockGettime is a real system call.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

// Now reads the clock. Only shells call it.
func Now() Time { return Time(nanotime()) }

// Add returns t + d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns t - u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t < u }

// After reports whether t is later than u.
func (t Time) After(u Time) bool { return t > u }

// IsZero reports whether t is unset.
func (t Time) IsZero() bool { return t == 0 }

// Earliest returns the earlier of two instants, ignoring unset ones.
func Earliest(t, u Time) Time {
	if t == 0 || (u != 0 && u < t) {
		return u
	}
	return t
}
