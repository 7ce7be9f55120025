//go:build linux

package lab

import (
	"fmt"
	"os"
	"syscall"
)

// Stdin is standard input for [ServeChild] in a process that polls on its only P: a read of it waits in Go's poller. os.Stdin is read by a
// system call that blocks, and that keeps the P until the scheduler's monitor takes it away, which looks every 10 to 20 ms: each
// request of the parent would stop everything for so long.
func Stdin() (*os.File, error) {
	if err := syscall.SetNonblock(syscall.Stdin, true); err != nil {
		return nil, fmt.Errorf("lab: making standard input pollable: %w", err)
	}
	return os.NewFile(uintptr(syscall.Stdin), "stdin"), nil
}
