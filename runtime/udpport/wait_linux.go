//go:build linux && !portable

package udpport

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Wait blocks in ppoll(2) until the socket or wake is readable, or the timeout is over; a negative timeout never is.
// It leaves wake readable: who owns it resets it.
func (p *Port) Wait(timeout time.Duration, wake int) error {
	fds := [...]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
	deadline := clock.Now().Add(timeout)
	for {
		limit := unix.NsecToTimespec(int64(max(timeout, 0)))
		within := &limit
		if timeout < 0 {
			within = nil
		}
		_, err := unix.Ppoll(fds[:], within, nil)
		if err != unix.EINTR { // the Go runtime interrupts by SIGURG
			if err != nil {
				return fmt.Errorf("udpport: wait: ppoll: %w", err)
			}
			return nil
		}
		if timeout >= 0 {
			timeout = max(deadline.Sub(clock.Now()), 0)
		}
	}
}
