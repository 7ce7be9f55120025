//go:build linux

package neighbour

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// OpenProbing is Open with another probe interval.
func OpenProbing(ifindex int, interval time.Duration) (*Table, error) { return open(ifindex, interval) }

// LoseEvents makes the subscription's buffer so small that a burst of events overflows it.
func LoseEvents(t *Table) error {
	socket, err := t.events.SyscallConn()
	if err != nil {
		return err
	}
	set := error(nil)
	err = socket.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 0) })
	return errors.Join(err, set)
}
