//go:build linux && !portable

package main

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// dropPrivileges gives up every capability of every thread, and the way back to them: what is executed from here on gains none, not even as
// root. Descriptors that are open keep what they can do.
//
// Threads have capabilities of their own, and the runtime's are not ours to visit. Package psx has each of them make the call, also where cgo
// is linked, as it is by default on a host with a C compiler; syscall.AllThreadsSyscall refuses that.
func dropPrivileges() error {
	steps := []struct {
		what string
		call func() syscall.Errno
	}{
		{"forbid new privileges", func() syscall.Errno { return prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0) }},
		{"drop the ambient capabilities", func() syscall.Errno { return prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0) }},
		{"drop the bounding set", dropBoundingSet},
		{"drop the capabilities", clearCapabilities},
	}
	for _, step := range steps {
		if errno := step.call(); errno != 0 {
			return fmt.Errorf("%s: %w", step.what, errno)
		}
	}
	return nil
}

// prctl calls prctl(2) on every thread.
func prctl(option, argument, argument2 uintptr) syscall.Errno {
	_, _, errno := psx.Syscall6(unix.SYS_PRCTL, option, argument, argument2, 0, 0, 0)
	return errno
}

// dropBoundingSet leaves the set alone without the right to shrink it: then nothing of it could be gained either, once new privileges are forbidden.
func dropBoundingSet() syscall.Errno {
	for capability := uintptr(0); ; capability++ {
		switch errno := prctl(unix.PR_CAPBSET_DROP, capability, 0); {
		case errors.Is(errno, unix.EINVAL), errors.Is(errno, unix.EPERM): // EINVAL: the kernel knows no more of them
			return 0
		case errno != 0:
			return errno
		}
	}
}

// clearCapabilities empties the effective, permitted and inheritable sets.
func clearCapabilities() syscall.Errno {
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{}
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)), 0)
	runtime.KeepAlive(header)
	runtime.KeepAlive(data)
	return errno
}
