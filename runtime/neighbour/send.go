//go:build linux

package neighbour

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// waitingMax is how many packets to one next hop may wait in the kernel until it is known, or until the kernel gives up: that is after 3 s (mcast_solicit questions,
// retrans_time_ms apart; arp(7)). They are charged to one socket for all next hops, which has room for 212,992 bytes (wmem_default), and a packet of 1500 bytes
// takes 2,304 of them: so of those that never answer it takes three to keep another from being reached at its first packet.
const waitingMax = 32

// Send has the kernel send a packet to ip, when Lookup doesn't know the next hop: the kernel resolves that, has the packet wait for it, for 3 s at most, and sends what it
// was given. The packet begins with its IP header, is complete, and is copied. Send reports whether the kernel took it. It does not if no way leads there through the
// interface; if a bound is reached, of packets that wait for this next hop (32) or of next hops that are asked for (64 at once, and 100 a second); or if it has no room
// or a firewall that forbids it.
//
// The kernel often knows the next hop when its [Table] doesn't yet, and sends at once. So each packet also has the watcher look what the kernel has
// said, without waiting for Go's poller: when it has, the next Lookup succeeds. Send neither blocks nor allocates, and is
// safe for concurrent use.
func (t *Table) Send(packet []byte, ip [16]byte) bool {
	next, _, ok := t.view.Load().routing.hop(addressOf(&ip))
	if !ok || !t.resolver.send(next, ip, packet, clock.Now()) {
		return false
	}
	t.catchUp()
	return true
}

// send gives the kernel a packet for a next hop, within the limits. A next hop that gets none, though it is due, is asked for all the same.
func (r *resolver) send(next address, ip [16]byte, packet []byte, now clock.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		return false
	}
	due := r.due(next, now)
	if due && !r.allow(next, now) {
		return false
	}
	if r.give(r.last(next), ip, packet) {
		return true
	}
	if due {
		r.datagram(next)
	}
	return false
}

// give gives the kernel a packet, unless too many wait. A firewall may refuse it too, though AF_XDP, once the next hop is known, passes none.
func (r *resolver) give(to *recent, ip [16]byte, packet []byte) bool {
	if to.given == waitingMax && r.nothingWaits() {
		to.given = 0
	}
	if to.given == waitingMax || r.raw(ip, packet) != nil {
		return false
	}
	to.given++
	return true
}

// nothingWaits reports whether the kernel has sent, or given up, all that it was given. Which next hop it is that something waits for, it doesn't say.
func (r *resolver) nothingWaits() bool {
	nothing := func(fd int) bool {
		bytes, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		return err == nil && bytes == 0
	}
	return nothing(r.sending.four) && (r.sending.six < 0 || nothing(r.sending.six))
}

// raw sends a packet as it is.
func (r *resolver) raw(ip [16]byte, packet []byte) error {
	if addressOf(&ip).isIPv4() {
		r.four.Addr = [4]byte(ip[12:])
		return unix.Sendto(r.sending.four, packet, unix.MSG_DONTWAIT, &r.four)
	}
	r.six.Addr, r.six.ZoneId = ip, uint32(r.ifindex)
	return unix.Sendto(r.sending.six, packet, unix.MSG_DONTWAIT, &r.six)
}

// past ends a wait at once.
var past = time.Unix(1, 0)

// catchUp makes the watcher runnable, whatever it waits for: before it waits again, it looks what the kernel has said. Otherwise it waits for Go's poller. On one P
// that a loop keeps busy, which yields but is runnable at once, nobody looks there but the scheduler's monitor, every 10 to 20 ms.
func (t *Table) catchUp() { _ = t.events.SetReadDeadline(past) } // fails only if the table is closed
