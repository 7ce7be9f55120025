//go:build linux

package lab

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// NewBPFFS makes a BPF file system that is mounted nowhere, so that nothing is left however this process ends: the directory is reached through
// its descriptor, by [DescriptorPath], also by a child that inherits it.
func NewBPFFS() (*os.File, error) {
	fd, err := mountBPFFS()
	if err != nil {
		return nil, fmt.Errorf("lab: make a BPF file system: %w", err)
	}
	return os.NewFile(uintptr(fd), "bpffs"), nil
}

func mountBPFFS() (int, error) {
	context, err := unix.Fsopen("bpf", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return 0, err
	}
	return unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
}

// DescriptorPath is where a process finds a directory that it has open as a descriptor.
func DescriptorPath(fd uintptr) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
