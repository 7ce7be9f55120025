//go:build !linux || portable

package dispatcher

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// waker is what a leader waits for beside its port: a pipe, where there is no eventfd.
type waker struct{ fd, write int }

func newWaker() (waker, error) {
	var ends [2]int
	syscall.ForkLock.RLock() // a child that is forked between the calls would inherit the ends
	defer syscall.ForkLock.RUnlock()
	if err := unix.Pipe(ends[:]); err != nil {
		return waker{}, fmt.Errorf("making the loop's pipe: %w", err)
	}
	w := waker{fd: ends[0], write: ends[1]}
	for _, end := range ends {
		unix.CloseOnExec(end)
		if err := unix.SetNonblock(end, true); err != nil {
			w.close()
			return waker{}, fmt.Errorf("making the loop's pipe non-blocking: %w", err)
		}
	}
	return w, nil
}

// signal makes fd readable until reset.
func (w *waker) signal() {
	_, _ = unix.Write(w.write, []byte{1}) // EAGAIN: the pipe is full, so the reader wakes anyway
}

// reset takes all signals off. The pipe holds few: who signals has found the leader asleep, and each sleep ends here.
func (w *waker) reset() {
	var signals [64]byte
	for {
		if n, err := unix.Read(w.fd, signals[:]); err != unix.EINTR && n < len(signals) {
			return
		}
	}
}

func (w *waker) close() {
	unix.Close(w.fd)
	unix.Close(w.write)
}
