package credit

import (
	"math"
	"time"
)

// Defaults of a Config.
const (
	DefaultMaxSessions      = 1 << 20
	DefaultLease            = time.Second
	DefaultPacketLife       = 100 * time.Millisecond
	DefaultDrainedPerUpdate = 16
)

// Config configures a Ledger. The zero value is usable.
type Config struct {
	// MaxSessions bounds the number of registered sessions. Zero or less means DefaultMaxSessions.
	MaxSessions int
	// Slots is the largest window of a session: what it may have outstanding. Zero or less means DefaultSlots, more
	// than 65535 means 65535.
	Slots int
	// Lease is how long unused credits outlive the last sign of life of their session. A client must give up its
	// own at most half as long after the last answer. Zero or less means DefaultLease.
	Lease time.Duration
	// PacketLife bounds how long a packet may be under way: so long a limit is honoured after its lease ran out.
	// Zero or less means DefaultPacketLife.
	PacketLife time.Duration
	// DrainedPerUpdate bounds the explicit credit updates per update of the pool. Zero or less means
	// DefaultDrainedPerUpdate.
	DrainedPerUpdate int
	// Asking is for clients that ask for each credit: a session without known demand is not woken up, since it will say when it has any.
	Asking bool
	// Checked audits the whole ledger before and after every change, and panics on the first contradiction. For
	// tests: it makes every event O(sessions).
	Checked bool
}

// slotsOrDefault bounds the slots of a session to what an entry can count.
func slotsOrDefault(slots int) uint64 {
	if slots <= 0 {
		return DefaultSlots
	}
	return uint64(min(slots, math.MaxUint16))
}
