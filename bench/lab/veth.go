//go:build linux

package lab

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// linkUpTimeout bounds the wait for the carrier; a veth pair has it within a millisecond of both ends being up.
const linkUpTimeout = 5 * time.Second

// PairConfig describes a veth pair; the zero value is the usual one.
type PairConfig struct {
	// RxQueueCount and TxQueueCount are set on both ends; 0 means 1. XDP needs at least as many receive queues at an
	// end as the other end has transmit queues (drivers/net/veth.c, veth_xdp_set).
	RxQueueCount, TxQueueCount int
	// MTU of both ends; 0 means 1500.
	MTU int
	// AddressA and AddressB default to 10.77.0.1/24 and 10.77.0.2/24.
	AddressA, AddressB netip.Prefix
	// IPv6 leaves IPv6 on, and gives the ends fd77::1/64 and fd77::2/64 besides, at once: nothing waits until they are known to be
	// unique. It is off by default, so that no multicast report is on the link.
	IPv6 bool
	// NamespaceA and NamespaceB are where the ends are made, and NameA and NameB what they are called there; nil = a new one for this pair, which Close gives up,
	// and "" = veth0. A namespace that has several links needs several names.
	NamespaceA, NamespaceB *Namespace
	NameA, NameB           string
	// TxChecksumOffload leaves the offload on. It is off by default, because a kernel sender on veth then puts only the
	// pseudo-header's sum into a packet, and an AF_XDP receiver sees a wrong checksum.
	TxChecksumOffload bool
}

// End is one end of a pair.
type End struct {
	Namespace *Namespace
	Interface string           // name inside its namespace
	Index     int              // index inside its namespace
	Hardware  net.HardwareAddr // Ethernet address
	Address   netip.Prefix
	Address6  netip.Prefix // not valid without PairConfig.IPv6
}

// Do runs fn inside the end's namespace; see [Namespace.Do].
func (e *End) Do(fn func() error) error { return e.Namespace.Do(fn) }

// Pair is two namespaces joined by a veth pair.
type Pair struct {
	A, B   *End
	cfg    PairConfig
	refuge *Namespace // where a moved interface is
}

// NewPair makes two namespaces and a veth pair between them, each end created directly in its namespace: the host's own is
// never touched. It returns when both ends have their carrier. It needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
func NewPair(cfg PairConfig) (*Pair, error) {
	cfg.RxQueueCount = cmp.Or(cfg.RxQueueCount, 1)
	cfg.TxQueueCount = cmp.Or(cfg.TxQueueCount, 1)
	cfg.MTU = cmp.Or(cfg.MTU, 1500)
	cfg.AddressA = cmp.Or(cfg.AddressA, netip.MustParsePrefix("10.77.0.1/24"))
	cfg.AddressB = cmp.Or(cfg.AddressB, netip.MustParsePrefix("10.77.0.2/24"))
	pair := &Pair{
		A: &End{Namespace: cfg.NamespaceA, Interface: cmp.Or(cfg.NameA, "veth0"), Address: cfg.AddressA},
		B: &End{Namespace: cfg.NamespaceB, Interface: cmp.Or(cfg.NameB, "veth0"), Address: cfg.AddressB}, cfg: cfg,
	}
	if cfg.IPv6 {
		pair.A.Address6, pair.B.Address6 = netip.MustParsePrefix("fd77::1/64"), netip.MustParsePrefix("fd77::2/64")
	}
	if err := pair.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: make a veth pair: %w", err), pair.Close())
	}
	return pair, nil
}

// Close removes the link and gives both namespaces up. Sockets still open keep an (empty) namespace until they are closed.
func (p *Pair) Close() error {
	var errs []error
	if p.A.Namespace != nil && p.A.Index != 0 {
		// Deleting one end deletes both, at once: an open socket would otherwise keep the namespace and its devices.
		errs = append(errs, p.Cut())
	}
	for _, end := range []*End{p.A, p.B} {
		if ns := end.Namespace; ns != nil && ns != p.cfg.NamespaceA && ns != p.cfg.NamespaceB {
			errs = append(errs, ns.Close())
		}
		end.Namespace = nil
	}
	return errors.Join(errs...)
}

// Cut deletes the link, as a driver that is unloaded does.
func (p *Pair) Cut() error {
	return p.A.withHandle(func(h *netlink.Handle) error {
		link, err := h.LinkByIndex(p.A.Index)
		if _, gone := errors.AsType[netlink.LinkNotFoundError](err); gone {
			return nil // the test deleted it
		}
		if err != nil {
			return err
		}
		return h.LinkDel(link)
	})
}

func (p *Pair) build() error {
	for _, end := range []*End{p.A, p.B} {
		if end.Namespace == nil {
			namespace, err := NewNamespace()
			if err != nil {
				return err
			}
			end.Namespace = namespace
		}
		if err := end.Do(func() error { return setIPv6(p.cfg.IPv6) }); err != nil {
			return err
		}
	}
	return p.Join()
}

// Join makes the link, and waits until both ends have their carrier. It may follow a Cut: names and addresses are the same then, indices and Ethernet
// addresses are not.
func (p *Pair) Join() error {
	cfg := p.cfg
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = p.A.Interface, cfg.MTU
	attrs.NumRxQueues, attrs.NumTxQueues = cfg.RxQueueCount, cfg.TxQueueCount
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: p.B.Interface, PeerNamespace: netlink.NsFd(p.B.Namespace.FD())}
	if err := p.A.withHandle(func(h *netlink.Handle) error { return h.LinkAdd(veth) }); err != nil {
		return fmt.Errorf("create the link (needs CAP_NET_ADMIN): %w", err)
	}
	for _, end := range []*End{p.A, p.B} {
		if err := end.configure(cfg); err != nil {
			return err
		}
	}
	for _, end := range []*End{p.A, p.B} {
		if err := end.waitUp(); err != nil {
			return err
		}
	}
	return nil
}

// withHandle runs fn with a netlink handle that lives in the end's namespace.
func (e *End) withHandle(fn func(*netlink.Handle) error) error {
	return e.Do(func() error {
		handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer handle.Close()
		return fn(handle)
	})
}

func (e *End) configure(cfg PairConfig) error {
	return e.withHandle(func(h *netlink.Handle) error {
		link, err := h.LinkByName(e.Interface)
		if err != nil {
			return err
		}
		e.Index, e.Hardware = link.Attrs().Index, link.Attrs().HardwareAddr
		if !cfg.TxChecksumOffload {
			if err := disableTxChecksum(e.Interface); err != nil {
				return err
			}
		}
		for _, address := range []netip.Prefix{e.Address, e.Address6} {
			if err := addAddress(h, link, address); err != nil {
				return err
			}
		}
		loopback, err := h.LinkByName("lo")
		if err != nil {
			return err
		}
		return errors.Join(h.LinkSetUp(loopback), h.LinkSetUp(link))
	})
}

// addAddress gives a link an address, if it is one.
func addAddress(h *netlink.Handle, link netlink.Link, address netip.Prefix) error {
	if !address.IsValid() {
		return nil
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{
		IP:   address.Addr().AsSlice(),
		Mask: net.CIDRMask(address.Bits(), address.Addr().BitLen()),
	}}
	if address.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	if err := h.AddrAdd(link, addr); err != nil {
		return fmt.Errorf("add address %v: %w", address, err)
	}
	return nil
}

// waitUp waits until the link is operationally up: before that, transmission fails with ENETDOWN or is lost. With IPv6 it has a
// link-local address then, which the kernel makes a moment later.
func (e *End) waitUp() error {
	return e.withHandle(func(h *netlink.Handle) error {
		for deadline := time.Now().Add(linkUpTimeout); ; time.Sleep(time.Millisecond) {
			link, err := h.LinkByName(e.Interface)
			if err != nil {
				return err
			}
			usable, err := e.usable(h, link)
			if err != nil || usable {
				return err
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s is %v after %v, or has no link-local address yet", e.Interface, link.Attrs().OperState, linkUpTimeout)
			}
		}
	})
}

// usable reports whether waitUp's wait is over.
func (e *End) usable(h *netlink.Handle, link netlink.Link) (bool, error) {
	if link.Attrs().OperState != netlink.OperUp || !e.Address6.IsValid() {
		return link.Attrs().OperState == netlink.OperUp, nil
	}
	addrs, err := h.AddrList(link, netlink.FAMILY_V6)
	for _, a := range addrs {
		if a.IP.IsLinkLocalUnicast() && a.Flags&unix.IFA_F_TENTATIVE == 0 {
			return true, nil
		}
	}
	return false, err
}

// setIPv6 works on the namespace of the calling thread, as all of /proc/sys/net does. Nobody there looks for routers, and no address waits
// for the second in which another host might object to it (RFC 4862, section 5.4), link-local ones included.
func setIPv6(on bool) error {
	settings := []string{"disable_ipv6=1"}
	if on {
		settings = []string{"disable_ipv6=0", "accept_dad=0", "router_solicitations=0"}
	}
	for _, scope := range []string{"all", "default"} {
		for _, setting := range settings {
			name, value, _ := strings.Cut(setting, "=")
			err := os.WriteFile("/proc/sys/net/ipv6/conf/"+scope+"/"+name, []byte(value), 0)
			if err != nil && (on || !errors.Is(err, os.ErrNotExist)) { // a kernel without IPv6 has nothing to disable
				return err
			}
		}
	}
	return nil
}

// ethtoolValue is struct ethtool_value of include/uapi/linux/ethtool.h.
type ethtoolValue struct {
	command uint32
	data    uint32
}

// ifreqPointer is struct ifreq of include/uapi/linux/if.h with the pointer arm of its union.
type ifreqPointer struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [24 - unsafe.Sizeof(uintptr(0))]byte
}

// disableTxChecksum does what `ethtool -K name tx off` does.
func disableTxChecksum(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	value := ethtoolValue{command: unix.ETHTOOL_STXCSUM}
	request := ifreqPointer{data: unsafe.Pointer(&value)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(&value)
	if errno != 0 {
		return fmt.Errorf("turn tx checksum offload of %s off: %w", name, errno)
	}
	return nil
}
