//go:build linux && !portable

package dispatcher

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestLoopLateSignal is a poster that found the leader asleep, and lost its CPU until the loop was gone and the eventfd's number
// was somebody else's.
func TestLoopLateSignal(t *testing.T) {
	loop, _ := newTestLoop(t, 0)
	number := loop.wake.fd
	if err := loop.Stop(patience); err != nil {
		t.Fatal(err)
	}
	stranger, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(stranger)
	if stranger != number {
		if err := unix.Dup3(stranger, number, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(number)
	}
	loop.sleeping.Store(true)
	loop.Rouse()
	var value [8]byte
	if _, err := unix.Read(stranger, value[:]); err != unix.EAGAIN {
		t.Errorf("another's eventfd was written: %v, %v", value, err)
	}
}
