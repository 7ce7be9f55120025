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
	// resolveInterval between two datagrams to one next hop: the kernel itself repeats its question at this pace
	// (retrans_time_ms, and three times as ucast_solicit and mcast_solicit say).
	resolveInterval = time.Second
	// resolveRate and resolveBurst bound all next hops together. Whoever forges on-link sources makes us ask for them;
	// with three seconds until the kernel gives up on one, 100 a second keep 300 entries, and its table has
	// room for 1,024 (gc_thresh3, arp(7); IPv6 has a table of its own of the same size).
	resolveRate  = 100
	resolveBurst = 64
)

// resolver sends datagrams, seldom.
type resolver struct {
	mu      sync.Mutex
	open    bool
	four    int // socket
	six     int // socket; -1 where the kernel has no IPv6
	ifindex int
	recent  [256]recent // by hash of the next hop: bounded, and a collision only forgets
	budget  int         // datagrams that may be sent at once
	filled  clock.Time  // when budget was last added to
}

// recent is a next hop and when it was last sent to.
type recent struct {
	next address
	at   clock.Time
}

// start opens a socket for each family.
func (r *resolver) start(ifindex int) (err error) {
	r.ifindex = ifindex
	if r.four, err = openResolver(unix.AF_INET, ifindex, unix.IPPROTO_IP, unix.IP_TTL); err != nil {
		return err
	}
	r.open = true
	r.six, err = openResolver(unix.AF_INET6, ifindex, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return nil
	}
	return err
}

// openResolver opens a socket whose datagrams leave through the interface only, and no further than the next hop: level and
// hops name the option that says how far. It returns -1 with an error.
func openResolver(family, ifindex, level, hops int) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_UDP)
	if err != nil {
		return -1, err
	}
	for _, option := range []struct{ level, name, value int }{
		{unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, ifindex},
		{level, hops, 1},
		{unix.SOL_SOCKET, unix.SO_RCVBUF, 0}, // the smallest: nothing is ever read
	} {
		if err := unix.SetsockoptInt(fd, option.level, option.name, option.value); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("option %d of level %d: %w", option.name, option.level, err)
		}
	}
	return fd, nil
}

// Resolve makes the kernel resolve the next hop towards ip, by sending it an empty datagram, and reports whether it
// was sent: not if there is no next hop, and not if one was sent to it within the last second. What comes of it
// shows in Lookup. It does not block, so the data path may call it whenever Lookup fails.
func (t *Table) Resolve(ip [16]byte) bool {
	next, _, ok := t.view.Load().routing.hop(addressOf(&ip))
	if !ok {
		return false
	}
	return t.resolver.ask(next, clock.Now())
}

// ask sends a datagram to a next hop, within the limits.
func (r *resolver) ask(next address, now clock.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open || !r.allow(next, now) {
		return false
	}
	ip := next.bytes()
	if next.isIPv4() {
		return unix.Sendto(r.four, nil, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Port: discardPort, Addr: [4]byte(ip[12:])}) == nil
	}
	// A link-local address means nothing without its link; with others the kernel does not look at that.
	return unix.Sendto(r.six, nil, unix.MSG_DONTWAIT, &unix.SockaddrInet6{Port: discardPort, Addr: ip, ZoneId: uint32(r.ifindex)}) == nil
}

// forget lets everybody be asked again at once: what a link that was down has swallowed says nothing about the one that is up.
func (r *resolver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.recent[:])
}

// allow says whether a datagram may be sent now, and if so counts it.
func (r *resolver) allow(next address, now clock.Time) bool {
	if r.filled.IsZero() {
		r.budget, r.filled = resolveBurst, now
	}
	if earned := now.Sub(r.filled) * resolveRate / time.Second; earned > 0 {
		r.budget = int(min(time.Duration(r.budget)+earned, resolveBurst))
		r.filled = now
	}
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: multiplicative hashing
	last := &r.recent[(next.high*golden^next.low)*golden>>56]
	if r.budget == 0 || (last.next == next && now.Sub(last.at) < resolveInterval) {
		return false
	}
	r.budget--
	*last = recent{next: next, at: now}
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
	err := unix.Close(r.four)
	if r.six >= 0 {
		err = errors.Join(err, unix.Close(r.six))
	}
	return err
}
