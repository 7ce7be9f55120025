//go:build linux

package xdpport

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// space is the network namespace that a port was opened in, if it is another than the process's own: who works for the port later, on
// another thread, has to enter it.
type space struct {
	fd int // -1 = the process's own
}

// here is the namespace of the calling thread.
func here() (space, error) {
	var process, thread unix.Stat_t
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return space{-1}, fmt.Errorf("finding the network namespace: %w", err)
	}
	if unix.Stat("/proc/self/ns/net", &process) == nil && unix.Fstat(fd, &thread) == nil && process.Ino == thread.Ino && process.Dev == thread.Dev {
		unix.Close(fd)
		fd = -1
	}
	return space{fd}, nil
}

// enter moves the calling goroutine there, for the rest of its life: its thread ends with it.
func (s space) enter() error {
	if s.fd < 0 {
		return nil
	}
	runtime.LockOSThread() // never unlocked: the thread belongs to nowhere else any more
	if err := unix.Setns(s.fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the interface's network namespace: %w", err)
	}
	return nil
}

func (s space) close() error {
	if s.fd < 0 {
		return nil
	}
	return unix.Close(s.fd)
}
