//go:build linux && !portable

package dispatcher

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// waker is what a leader waits for beside its port: an eventfd.
type waker struct{ fd int }

func newWaker() (waker, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return waker{}, fmt.Errorf("making the loop's eventfd: %w", err)
	}
	return waker{fd}, nil
}

// signal makes fd readable until reset.
func (w *waker) signal() {
	one := [8]byte{0: 1}
	_, _ = unix.Write(w.fd, one[:]) // EAGAIN: the counter is full, so the reader wakes anyway
}

// reset takes all signals off.
func (w *waker) reset() {
	var count [8]byte
	_, _ = unix.Read(w.fd, count[:])
}

func (w *waker) close() { unix.Close(w.fd) }
