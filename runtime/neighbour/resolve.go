//go:build linux

package neighbour

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

const (
	// discardPort is where the datagrams go that make the kernel resolve (RFC 863). Who does not listen there answers
	// by ICMP, to a socket that does not ask for it.
	discardPort = 9
	// resolveInterval between two questions for one next hop: the kernel itself repeats its question at this pace
	// (retrans_time_ms, and three times as ucast_solicit and mcast_solicit say).
	resolveInterval = time.Second
	// resolveRate and resolveBurst bound all next hops together. Whoever forges on-link sources makes us ask for them;
	// with three seconds until the kernel gives up on one, 100 a second keep 300 entries, and its table has
	// room for 1,024 (gc_thresh3, arp(7); IPv6 has a table of its own of the same size).
	resolveRate  = 100
	resolveBurst = 64
)

// resolver has the kernel resolve, seldom, and send what waits for that.
type resolver struct {
	mu      sync.Mutex
	open    bool
	asking  sockets // of datagrams
	sending sockets // of whole packets
	ifindex int
	recent  [256]recent // by hash of the next hop: bounded, and a collision only forgets
	budget  int         // next hops that may be asked for at once
	filled  clock.Time  // when budget was last added to

	four unix.SockaddrInet4 // of sending, so that none is allocated
	six  unix.SockaddrInet6
}

// recent is a next hop, when it was last asked for, and how many packets the kernel was given for it since none was waiting.
type recent struct {
	next  address
	at    clock.Time
	given int
}

// start opens the sockets.
func (r *resolver) start(ifindex int) (err error) {
	r.ifindex = ifindex
	if r.asking, err = openAsking(ifindex); err != nil {
		return fmt.Errorf("socket to make the kernel resolve: %w", err)
	}
	if r.sending, err = openSending(ifindex); err != nil {
		return errors.Join(fmt.Errorf("raw socket for what waits until the kernel has resolved: %w", err), r.asking.close())
	}
	r.open = true
	return nil
}

// ask sends an empty datagram to a next hop, within the limits, and reports whether it did.
func (r *resolver) ask(next address, now clock.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open && r.due(next, now) && r.allow(next, now) && r.datagram(next)
}

// datagram sends one.
func (r *resolver) datagram(next address) bool {
	ip := next.bytes()
	if next.isIPv4() {
		return unix.Sendto(r.asking.four, nil, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Port: discardPort, Addr: [4]byte(ip[12:])}) == nil
	}
	// A link-local address means nothing without its link; with others the kernel does not look at that.
	return unix.Sendto(r.asking.six, nil, unix.MSG_DONTWAIT, &unix.SockaddrInet6{Port: discardPort, Addr: ip, ZoneId: uint32(r.ifindex)}) == nil
}

// forget lets everybody be asked again at once: what a link that was down has swallowed says nothing about the one that is up.
func (r *resolver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.recent[:])
}

// last is where a next hop is noted, if it was not forgotten.
func (r *resolver) last(next address) *recent {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: multiplicative hashing
	return &r.recent[(next.high*golden^next.low)*golden>>56]
}

// due reports whether a next hop was not asked for within the last second.
func (r *resolver) due(next address, now clock.Time) bool {
	last := r.last(next)
	return last.next != next || now.Sub(last.at) >= resolveInterval
}

// allow says whether one more next hop may be asked for now, and if so counts it.
func (r *resolver) allow(next address, now clock.Time) bool {
	if r.filled.IsZero() {
		r.budget, r.filled = resolveBurst, now
	}
	if earned := now.Sub(r.filled) * resolveRate / time.Second; earned > 0 {
		r.budget = int(min(time.Duration(r.budget)+earned, resolveBurst))
		r.filled = now
	}
	if r.budget == 0 {
		return false
	}
	r.budget--
	last := r.last(next)
	if last.next != next {
		*last = recent{next: next}
	}
	last.at = now
	return true
}

// close closes the sockets.
func (r *resolver) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		return nil
	}
	r.open = false
	return errors.Join(r.asking.close(), r.sending.close())
}
