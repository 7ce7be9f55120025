//go:build linux

package neighbour

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/wire"
)

// Hop is what the headers of a frame need. IPv4 addresses are IPv4-mapped.
type Hop struct {
	SrcIP   [16]byte // the kernel's choice of a source address for this destination
	NextHop [16]byte // the destination itself, or its gateway
	SrcMAC  wire.MAC
	DstMAC  wire.MAC // the next hop's
}

// neighbour is an entry of the kernel's table with a usable address.
type neighbour struct {
	mac   wire.MAC
	stale bool
	used  atomic.Bool // since it was last probed; what Lookup tells the watcher
}

// view is everything that Lookup needs. It is immutable, but for the neighbours' used marks: changes replace it.
type view struct {
	mac        wire.MAC
	routing    *routing
	neighbours map[address]*neighbour
}

// Table mirrors the kernel's routes and neighbours for one interface. Lookup and Send are safe for concurrent use.
type Table struct {
	ifindex int
	view    atomic.Pointer[view]
	handle  *netlink.Handle // asks
	events  *os.File        // listens
	done    chan struct{}
	closed  atomic.Bool
	rules   int

	probeInterval time.Duration
	resolver      resolver
}

// Open mirrors the tables of the network namespace of the calling thread: who is in another one has locked the
// goroutine to its thread. The watcher works on sockets that are opened here, so it may run on any thread. It needs CAP_NET_RAW.
func Open(ifindex int) (*Table, error) { return open(ifindex, probeInterval) }

func open(ifindex int, probeInterval time.Duration) (_ *Table, err error) {
	t := &Table{ifindex: ifindex, probeInterval: probeInterval, done: make(chan struct{})}
	t.view.Store(emptyView)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("neighbour: open interface %d: %w", ifindex, err), t.free())
			if t.events != nil {
				err = errors.Join(err, t.events.Close())
			}
		}
	}()
	if t.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	// Listening begins before reading, so that no change falls between.
	if t.events, err = subscribe(); err != nil {
		return nil, fmt.Errorf("subscribe to changes: %w", err)
	}
	if err = t.resolver.start(ifindex); err != nil {
		return nil, err
	}
	if t.rules, err = policyRules(t.handle); err != nil {
		return nil, fmt.Errorf("read the routing rules: %w", err)
	}
	w := &watcher{table: t}
	if w.socket, err = t.events.SyscallConn(); err != nil {
		return nil, fmt.Errorf("subscription: %w", err)
	}
	if err = w.reload(); err != nil {
		return nil, err
	}
	go w.run()
	return t, nil
}

// Lookup returns the hop towards ip, and false if there is none: no route out of this interface, an address of
// our own, unspecified, broadcast or multicast, or a next hop that the kernel does not know (see [Table.Send]). It takes no lock
// and does not allocate.
func (t *Table) Lookup(ip [16]byte) (Hop, bool) {
	hop, _, ok := t.view.Load().lookup(ip)
	return hop, ok
}

func (v *view) lookup(ip [16]byte) (Hop, *neighbour, bool) {
	next, source, ok := v.routing.hop(addressOf(&ip))
	if !ok {
		return Hop{}, nil, false
	}
	n := v.neighbours[next]
	if n == nil {
		return Hop{}, nil, false
	}
	n.use()
	return Hop{SrcIP: source.bytes(), NextHop: next.bytes(), SrcMAC: v.mac, DstMAC: n.mac}, n, true
}

// use marks the neighbour; there is no store if it is marked, so that the cache line stays shared.
func (n *neighbour) use() {
	if !n.used.Load() {
		n.used.Store(true)
	}
}

// PolicyRuleCount is how many routing rules (ip-rule(8)) of either family the host had at Open beyond the kernel's own. The
// table does not follow them: above 0, compare its answers with `ip route get`.
func (t *Table) PolicyRuleCount() int { return t.rules }

// Close stops the watcher and waits for it. Lookup then finds nothing.
func (t *Table) Close() error {
	if t.closed.Swap(true) {
		return nil
	}
	err := t.events.Close() // ends the watcher
	<-t.done
	t.view.Store(emptyView)
	if err = errors.Join(err, t.free()); err != nil {
		return fmt.Errorf("neighbour: close: %w", err)
	}
	return nil
}

// free closes what is open, but for the subscription.
func (t *Table) free() error {
	if t.handle != nil {
		t.handle.Close()
	}
	return t.resolver.close()
}

// emptyView is what is known of an interface that is gone.
var emptyView = &view{routing: new(routing)}
