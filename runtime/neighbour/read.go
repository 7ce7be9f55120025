//go:build linux

package neighbour

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/wire"
)

// ErrNotEthernet says that an interface has no Ethernet addresses, so that there are no frames for it to build.
var ErrNotEthernet = errors.New("not an Ethernet interface, so kernel UDP is all that can be had there")

// families are those whose tables are read. Where the kernel has no IPv6, these are empty.
var families = [...]int{netlink.FAMILY_V4, netlink.FAMILY_V6}

// policyRules counts the rules beyond the kernel's own. A kernel without policy routing has none.
func policyRules(handle *netlink.Handle) (count int, err error) {
	for _, family := range families {
		rules, err := handle.RuleList(family)
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) {
			continue
		}
		if err != nil {
			return count, err
		}
		for _, rule := range rules {
			switch {
			case rule.Priority <= 0 && rule.Table == unix.RT_TABLE_LOCAL: // the kernel leaves a priority of 0 out
			case rule.Priority == 32766 && rule.Table == unix.RT_TABLE_MAIN:
			case rule.Priority == 32767 && rule.Table == unix.RT_TABLE_DEFAULT && family == netlink.FAMILY_V4:
			default:
				count++
			}
		}
	}
	return count, nil
}

// readTables asks the kernel. An interface that is gone has an empty view.
func (w *watcher) readTables() (*view, error) {
	handle, ifindex := w.table.handle, w.table.ifindex
	link, err := handle.LinkByIndex(ifindex)
	if err != nil {
		if _, gone := errors.AsType[netlink.LinkNotFoundError](err); gone && w.started {
			return emptyView, nil
		}
		return nil, fmt.Errorf("read the link: %w", err)
	}
	if len(link.Attrs().HardwareAddr) != len(wire.MAC{}) {
		return nil, fmt.Errorf("%w: %s", ErrNotEthernet, link.Attrs().Name)
	}
	var k kernelTables
	for _, family := range families {
		if err := k.read(handle, link, family); err != nil {
			return nil, err
		}
	}
	next := &view{
		mac:        wire.MAC(link.Attrs().HardwareAddr),
		routing:    newRouting(ifindex, k.routes, k.addrs),
		neighbours: make(map[address]*neighbour, len(k.neighs)),
	}
	old := w.table.view.Load()
	for i := range k.neighs {
		if c, ok := changeOf(&k.neighs[i]); ok {
			c.apply(next.neighbours, old.neighbours[c.ip])
		}
	}
	return next, nil
}

// kernelTables is what the kernel has: addresses and neighbours of one interface, routes of all.
type kernelTables struct {
	addrs  []netlink.Addr
	routes []netlink.Route
	neighs []netlink.Neigh
}

// read adds one family's.
func (k *kernelTables) read(handle *netlink.Handle, link netlink.Link, family int) error {
	addrs, err := handle.AddrList(link, family)
	if err != nil {
		return fmt.Errorf("read the addresses: %w", err)
	}
	routes, err := handle.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("read the routes: %w", err)
	}
	neighs, err := handle.NeighList(link.Attrs().Index, family)
	if err != nil {
		return fmt.Errorf("read the neighbours: %w", err)
	}
	k.addrs, k.routes, k.neighs = append(k.addrs, addrs...), append(k.routes, routes...), append(k.neighs, neighs...)
	return nil
}
