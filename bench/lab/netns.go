//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// threadNamespace is the network namespace of the calling thread. It is thread-self and not self, because
// /proc/self/ns/net is that of the process's first thread, whatever thread asks.
const threadNamespace = "/proc/thread-self/ns/net"

// Namespace is an anonymous network namespace, kept alive by a descriptor alone: it has no name in /run/netns, so
// nothing is left behind when the process dies, however it dies.
type Namespace struct {
	file *os.File
}

// NewNamespace makes an empty network namespace (its loopback is down). It needs CAP_SYS_ADMIN.
func NewNamespace() (*Namespace, error) {
	var made *Namespace
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare the network namespace (needs CAP_SYS_ADMIN): %w", err)
		}
		file, err := os.Open(threadNamespace)
		if err != nil {
			return err
		}
		made = &Namespace{file: file}
		return nil
	})
	if err != nil {
		if made != nil {
			err = errors.Join(err, made.Close())
		}
		return nil, fmt.Errorf("lab: make a namespace: %w", err)
	}
	return made, nil
}

// Do runs fn on the calling goroutine, whose thread is locked and inside the namespace meanwhile. Sockets that fn opens stay
// in the namespace for life; goroutines that fn starts do not inherit it. Do may be nested.
func (ns *Namespace) Do(fn func() error) error {
	return onThread(func() error {
		if err := unix.Setns(ns.FD(), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("lab: enter a namespace: %w", err)
		}
		return fn()
	})
}

// FD returns the descriptor that keeps the namespace; it belongs to the Namespace.
func (ns *Namespace) FD() int { return int(ns.file.Fd()) }

// Close gives the descriptor up. The kernel removes the namespace, and every device made in it, when the last
// socket inside is closed too.
func (ns *Namespace) Close() error { return ns.file.Close() }

// onThread runs fn on a locked thread and restores that thread's network namespace after it, even when fn panics or
// leaves by Goexit (as t.Fatal does). A thread that cannot be restored stays locked, so that the runtime ends it with
// its goroutine instead of lending a thread in the wrong namespace to others.
func onThread(fn func() error) (err error) {
	runtime.LockOSThread()
	home, err := os.Open(threadNamespace)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() {
		restoreErr := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET)
		if restoreErr == nil || isIn(home) { // without rights it cannot go home, but then it never left
			runtime.UnlockOSThread()
		} else {
			err = errors.Join(err, fmt.Errorf("lab: thread is stuck in a namespace: %w", restoreErr))
		}
		err = errors.Join(err, home.Close())
	}()
	return fn()
}

// isIn reports whether the calling thread is in a namespace.
func isIn(namespace *os.File) bool {
	want, err := namespace.Stat()
	if err != nil {
		return false
	}
	got, err := os.Stat(threadNamespace)
	return err == nil && os.SameFile(want, got)
}
