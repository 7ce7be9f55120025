//go:build linux

package neighbour

import (
	"errors"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

const (
	// probeInterval is how often stale neighbours that are in use are probed. The kernel then waits 5 s
	// (delay_first_probe_time) before it asks, so more often gains nothing.
	probeInterval = 5 * time.Second
	// reloadDelay is the wait before reading the tables again after that failed.
	reloadDelay = 100 * time.Millisecond
	// reloadTries bounds how often one reload starts again because the tables changed under it.
	reloadTries = 5
	// eventBufferBytes holds some thousand events; more than that at once costs a reload.
	eventBufferBytes = 1 << 20

	// usable are the states of a neighbour whose address may be sent to: NUD_VALID of include/net/neighbour.h without
	// NUD_NOARP, which is the state of destinations that have no neighbour.
	usable = netlink.NUD_PERMANENT | netlink.NUD_REACHABLE | netlink.NUD_PROBE | netlink.NUD_STALE | netlink.NUD_DELAY
)

// subscribe opens a socket for the changes of links, addresses, routes and neighbours. It waits in Go's poller: a goroutine that waits in
// a system call keeps its P until the scheduler's monitor takes it away, which looks every 10 to 20 ms. On one P, each
// event would stop the loop for so long. An event that waits as long for the poller, since a loop spins, costs nothing, unless a packet needs it: see catchUp.
func subscribe() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	groups := uint32(0)
	for _, group := range []uint{
		unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE,
		unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE,
	} {
		groups |= 1 << (group - 1)
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, eventBufferBytes),
		unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}),
	)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "netlink"), nil
}

// watcher keeps a table's view as the kernel's tables are. It alone writes it.
type watcher struct {
	table    *Table
	socket   syscall.RawConn // of the table's events
	buffer   [64 << 10]byte  // above what the kernel puts into one datagram
	outdated bool            // the last reload failed, or events were lost
	started  bool            // the interface was there once
	probed   clock.Time      // when stale neighbours were last looked at
}

// run is the watcher's goroutine. It ends when the subscription is closed.
func (w *watcher) run() {
	defer close(w.table.done)
	for w.table.events.SetReadDeadline(w.again()) == nil {
		if err := w.read(); errors.Is(err, os.ErrClosed) {
			return
		}
		if w.outdated {
			w.outdated = w.reload() != nil
			w.table.resolver.forget()
		}
		w.probe(clock.Now())
	}
}

// again is when to look without an event; the zero time means never.
func (w *watcher) again() time.Time {
	if w.outdated {
		return time.Now().Add(reloadDelay)
	}
	for _, n := range w.table.view.Load().neighbours {
		if n.stale {
			return time.Now().Add(w.table.probeInterval)
		}
	}
	return time.Time{}
}

// read waits for an event, and takes all that there are. Neighbours, which change most, are applied one by one; everything else is rare,
// and read anew.
func (w *watcher) read() error {
	var changed []change
	events := 0
	err := w.socket.Read(func(fd uintptr) (done bool) {
		for {
			n, _, err := unix.Recvfrom(int(fd), w.buffer[:], unix.MSG_DONTWAIT)
			if err == unix.EAGAIN {
				return events > 0
			}
			events++
			changed = w.take(changed, n, err)
		}
	})
	if !w.outdated && len(changed) > 0 {
		w.apply(changed)
	}
	return err
}

// take adds what a datagram says about our neighbours, and outdates the view for anything else.
func (w *watcher) take(changed []change, n int, err error) []change {
	if err != nil {
		// ENOBUFS: the kernel had more to say than there was room for. What waits is older than what was lost, so
		// all of it is taken off before the tables are read; it would undo what they say.
		w.outdated = w.outdated || err != unix.EINTR
		return changed
	}
	messages, err := syscall.ParseNetlinkMessage(w.buffer[:n])
	if err != nil {
		w.outdated = true
	}
	for i := range messages {
		if c, ok := w.classify(&messages[i]); ok {
			changed = append(changed, c)
		}
	}
	return changed
}

// change is what the kernel says of one neighbour. It aliases nothing, since the buffer of events is used again.
type change struct {
	ip    address
	mac   wire.MAC
	known bool // false: the neighbour has no usable address
	stale bool
}

// changeOf reads the kernel's entry; false if it is about nobody that Lookup could return.
func changeOf(neigh *netlink.Neigh) (c change, ok bool) {
	if c.ip, ok = addressFrom(neigh.IP); !ok || neigh.Flags&netlink.NTF_PROXY != 0 {
		return change{}, false
	}
	if neigh.State&usable != 0 && len(neigh.HardwareAddr) == len(c.mac) {
		c.mac, c.known, c.stale = wire.MAC(neigh.HardwareAddr), true, neigh.State == netlink.NUD_STALE
	}
	return c, true
}

// classify returns the change that an event is about, if it is of one of our neighbours; other events outdate the
// view.
func (w *watcher) classify(message *syscall.NetlinkMessage) (change, bool) {
	switch message.Header.Type {
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		neigh, err := netlink.NeighDeserialize(message.Data)
		if err != nil {
			w.outdated = true
			return change{}, false
		}
		if neigh.LinkIndex != w.table.ifindex || !slices.Contains(families[:], neigh.Family) {
			return change{}, false
		}
		if message.Header.Type == unix.RTM_DELNEIGH {
			neigh.State = netlink.NUD_NONE
		}
		return changeOf(neigh)
	case unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_NEWADDR, unix.RTM_DELADDR, unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		// Links too: the kernel doesn't announce the routes that vanish when one goes down.
		w.outdated = true
	}
	return change{}, false
}

// apply publishes a view with changed neighbours.
func (w *watcher) apply(changed []change) {
	old := w.table.view.Load()
	next := *old
	next.neighbours = maps.Clone(old.neighbours)
	if next.neighbours == nil {
		next.neighbours = make(map[address]*neighbour)
	}
	for _, c := range changed {
		c.apply(next.neighbours, next.neighbours[c.ip])
	}
	w.table.view.Store(&next)
}

// apply puts the change into a map that is not published yet. The mark of use is carried over from the entry before.
func (c *change) apply(neighbours map[address]*neighbour, before *neighbour) {
	if !c.known {
		delete(neighbours, c.ip)
		return
	}
	n := &neighbour{mac: c.mac, stale: c.stale}
	if before != nil {
		n.used.Store(before.used.Load())
	}
	neighbours[c.ip] = n
}

// reload reads everything and publishes it.
func (w *watcher) reload() error {
	for range reloadTries {
		next, err := w.readTables()
		if errors.Is(err, netlink.ErrDumpInterrupted) {
			continue
		}
		if err != nil {
			return err
		}
		w.table.view.Store(next)
		w.started = true
		return nil
	}
	return netlink.ErrDumpInterrupted
}

// probe has the kernel confirm stale neighbours that were used since they were last probed.
func (w *watcher) probe(now clock.Time) {
	if now.Sub(w.probed) < w.table.probeInterval {
		return
	}
	w.probed = now
	for ip, n := range w.table.view.Load().neighbours {
		if n.stale && n.used.Load() && w.table.resolver.ask(ip, now) {
			n.used.Store(false)
		}
	}
}
