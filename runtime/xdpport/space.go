//go:build linux

package xdpport

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// space is the network namespace that a port was opened in. Who works for the port later, on another thread, has to be in it.
type space struct {
	fd int // -1 = unknown
}

// threadSpace is the file of the calling thread's namespace. That of the process is its main thread's, on which anybody may run just now.
const threadSpace = "/proc/thread-self/ns/net"

// here is the namespace of the calling thread.
func here() (space, error) {
	fd, err := unix.Open(threadSpace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return space{-1}, fmt.Errorf("finding the network namespace: %w", err)
	}
	return space{fd}, nil
}

// enter moves the calling goroutine there for the rest of its life, if its thread is not there anyhow: that thread ends with it.
func (s space) enter() error {
	runtime.LockOSThread()
	var is, want unix.Stat_t
	if unix.Stat(threadSpace, &is) == nil && unix.Fstat(s.fd, &want) == nil && is.Ino == want.Ino && is.Dev == want.Dev {
		// It may change threads all the same: those that Go starts have the namespace of the process, unless somebody moved a thread,
		// who then keeps it locked.
		runtime.UnlockOSThread()
		return nil
	}
	if err := unix.Setns(s.fd, unix.CLONE_NEWNET); err != nil { // the thread stays locked, since it belongs to nowhere else any more
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
