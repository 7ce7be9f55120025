//go:build !linux || portable

package udpport

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Wait blocks in poll(2) until the socket or wake is readable, or the timeout, rounded up to milliseconds, is over; a negative timeout
// never is. It leaves wake readable: who owns it resets it.
func (p *Port) Wait(timeout time.Duration, wake int) error {
	fds := [...]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
	deadline := clock.Now().Add(timeout)
	for {
		limit := -1
		if timeout >= 0 {
			limit = int((timeout + time.Millisecond - 1) / time.Millisecond)
		}
		_, err := unix.Poll(fds[:], limit)
		if err != unix.EINTR { // the Go runtime interrupts by SIGURG
			if err != nil {
				return fmt.Errorf("udpport: wait: poll: %w", err)
			}
			return nil
		}
		if timeout >= 0 {
			timeout = max(deadline.Sub(clock.Now()), 0)
		}
	}
}
