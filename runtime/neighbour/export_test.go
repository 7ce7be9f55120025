//go:build linux

package neighbour

import (
	"time"

	"golang.org/x/sys/unix"
)

// OpenProbing is Open with another probe interval.
func OpenProbing(ifindex int, interval time.Duration) (*Table, error) { return open(ifindex, interval) }

// LoseEvents makes the subscription's buffer so small that a burst of events overflows it.
func LoseEvents(t *Table) error {
	return unix.SetsockoptInt(t.events, unix.SOL_SOCKET, unix.SO_RCVBUF, 0)
}
