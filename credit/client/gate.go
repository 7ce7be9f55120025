package client

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Times of a gate.
const (
	// DefaultLease is half of the server's default: the other half is the margin for an answer's way to the
	// client, and for clocks that do not run alike.
	DefaultLease  = 500 * time.Millisecond
	ProbeTimeMin  = 50 * time.Microsecond  // the first probe waits this long, or one RTT if that is longer
	ProbeTimeMax  = 100 * time.Millisecond // the last one of a doubling; far below any lease
	probeOverload = 8                      // doublings after a refusal for overload: 12.8 ms at least
	probeDoubling = 20                     // doublings after which it is certainly above ProbeTimeMax
)

// Gate is the client's side of one session's credits. It holds plain numbers only. NewGate makes one.
//
// Numbers are those of requests: next is the one that the next request gets when it is transmitted, and all below limit
// may be sent. Between an expiry of the lease and the next limit that is applied, nothing may be.
type Gate struct {
	limit     uint64
	next      uint64
	seq       uint32
	doublings uint8
	forgotten bool
	lease     time.Duration
	rtt       time.Duration // floor of the probe timer
	applied   clock.Time    // when the server's word was last heard; zero before the first answer
	last      clock.Time    // when we last asked, or were last answered: the probe timer runs from here
}

// NewGate makes the gate of a session that is not registered yet: exactly one request may be sent, inside the
// registration. Unused credits are forgotten one lease after the last limit was applied; it must be at most half of the
// server's lease. Zero or less means DefaultLease.
func NewGate(lease time.Duration) Gate {
	if lease <= 0 {
		lease = DefaultLease
	}
	return Gate{limit: 1, lease: lease}
}

// Apply takes a limit and its sequence number from any answer or credit update, and reports whether the client may
// believe in it: an older one, overtaken on the way, is ignored. The same one again changes nothing, but renews the
// lease, and gives back what was forgotten, since the server still stands by it.
func (g *Gate) Apply(now clock.Time, limit uint64, seq uint32) bool {
	ahead := int32(seq - g.seq) // serial-number arithmetic: seq wraps
	if ahead < 0 || (ahead == 0 && limit != g.limit) {
		return false
	}
	g.limit, g.seq = limit, seq
	g.applied, g.last = now, now
	g.forgotten = false
	if g.CanSend() {
		g.doublings = 0
	}
	return true
}

// CanSend reports whether there is a credit for one more request.
func (g *Gate) CanSend() bool { return g.next < g.limit && !g.forgotten }

// Take spends one credit and returns the number of the request that is being transmitted. It panics when CanSend is
// false.
func (g *Gate) Take() uint64 {
	if !g.CanSend() {
		panic("client: a request without a credit")
	}
	g.next++
	return g.next - 1
}

// TakeInvited returns the number of a request that is being transmitted without a credit, at the server's invitation.
func (g *Gate) TakeInvited() uint64 {
	g.next++
	return g.next - 1
}

// Next is the number that the next request will have; every packet to the server carries it.
func (g *Gate) Next() uint64 { return g.next }

// Limit is the limit that was last applied, whether forgotten or not.
func (g *Gate) Limit() uint64 { return g.limit }

// Seq is the sequence number of the limit that was last applied; every packet to the server carries it.
func (g *Gate) Seq() uint32 { return g.seq }

// Heard reports whether a limit was ever applied.
func (g *Gate) Heard() bool { return g.applied != 0 }

// Forgotten reports whether the lease of the limit ran out since it was applied.
func (g *Gate) Forgotten() bool { return g.forgotten }

// Silent reports whether no limit has come for a lease, since the first: who waits for an answer to bring one may ask for it.
func (g *Gate) Silent(now clock.Time) bool { return g.applied != 0 && now >= g.applied.Add(g.lease) }

// Unused returns the number of credits. A limit below next, revoked too late, is none.
func (g *Gate) Unused() uint64 {
	if !g.CanSend() {
		return 0
	}
	return g.limit - g.next
}

// LeaseEnds is the instant at which the unused credits are forgotten; zero while there are none, or none that a
// server knows of.
func (g *Gate) LeaseEnds() clock.Time {
	if g.applied == 0 || !g.CanSend() {
		return 0
	}
	return g.applied.Add(g.lease)
}

// Expire forgets the unused credits if their lease has run out, and reports whether it did. Call it before CanSend
// when the session was idle. Only a limit that the server sends gives them back; until then the client must probe.
func (g *Gate) Expire(now clock.Time) bool {
	ends := g.LeaseEnds()
	if ends == 0 || now < ends {
		return false
	}
	g.forgotten = true
	return true
}

// SetRTT sets the floor of the probe timer: the smoothed round trip.
func (g *Gate) SetRTT(rtt time.Duration) { g.rtt = min(max(rtt, 0), ProbeTimeMax) }

// ProbeDue reports whether a probe is to be sent at now, given that the client has requests waiting (demand) and how
// many it has sent that have no answer yet (outstanding). True starts the next wait, twice as long, so the caller must
// send one. A client that has heard nothing for longer than the wait may ask at once.
//
// A session without an answer to its registration has nobody to probe: it sends the registration again.
func (g *Gate) ProbeDue(now clock.Time, demand, outstanding int) bool {
	if demand <= 0 || outstanding > 0 || g.CanSend() || now < g.NextProbe() {
		return false
	}
	g.last = now
	if g.doublings < probeDoubling {
		g.doublings++
	}
	return true
}

// Overloaded notes that the server refused a request because it has too much to do. It has listed the session by that, if it left it without a
// credit, so asking again soon tells it nothing, and would be work for it when it has most: the next wait is a long one.
func (g *Gate) Overloaded(now clock.Time) {
	g.last = now
	g.doublings = max(g.doublings, probeOverload)
}

// NextProbe is the earliest instant of the next probe, should the client then have demand, nothing outstanding and no
// credit; zero while there is a credit.
func (g *Gate) NextProbe() clock.Time {
	if g.CanSend() {
		return 0
	}
	floor := max(g.rtt, ProbeTimeMin)
	wait := min(floor<<g.doublings, ProbeTimeMax)
	return g.last.Add(wait)
}
