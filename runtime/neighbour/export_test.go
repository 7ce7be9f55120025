//go:build linux

package neighbour

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// OpenProbing is Open with another probe interval.
func OpenProbing(ifindex int, interval time.Duration) (*Table, error) { return open(ifindex, interval) }

// Resolve makes the kernel resolve the next hop towards ip, and reports whether it was asked to. What comes of it shows in Lookup.
func (t *Table) Resolve(ip [16]byte) bool {
	next, _, ok := t.view.Load().routing.hop(addressOf(&ip))
	return ok && t.resolver.ask(next, clock.Now())
}

// SendAt is Send at a time.
func (t *Table) SendAt(packet []byte, ip [16]byte, now clock.Time) bool {
	next, _, ok := t.view.Load().routing.hop(addressOf(&ip))
	return ok && t.resolver.send(next, ip, packet, now)
}

// The bounds of what the kernel is given.
const (
	WaitingMax      = waitingMax
	DiscardPort     = discardPort
	ResolveInterval = resolveInterval
	ResolveBurst    = resolveBurst
)

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
