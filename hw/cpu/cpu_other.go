//go:build !linux

package cpu

import (
	"errors"
	"fmt"
	"runtime"
)

// Allowed fails: only Linux says which CPUs a thread may use.
func Allowed() ([]int, error) {
	return nil, fmt.Errorf("cpu: read the affinity of this thread: %w on %s", errors.ErrUnsupported, runtime.GOOS)
}

// PinProcess fails: only Linux lets a process choose its CPUs.
func PinProcess(...int) error {
	return fmt.Errorf("cpu: pin the process: %w on %s: leave the CPUs to its scheduler", errors.ErrUnsupported, runtime.GOOS)
}

// PinThread fails: only Linux lets a thread choose its CPUs.
func PinThread(...int) error {
	return fmt.Errorf("cpu: pin the thread: %w on %s: leave the CPUs to its scheduler", errors.ErrUnsupported, runtime.GOOS)
}
