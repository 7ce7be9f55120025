//go:build linux

package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

const (
	protocolUDP = unix.IPPROTO_UDP

	serviceCountDefault = 64
	queueCountDefault   = 256
	// packetSizeMaxDefault is what a frame of 2048 bytes holds after XDP's headroom (256) and the stamp (8).
	packetSizeMaxDefault = 2048 - unix.XDP_PACKET_HEADROOM - 8
)

var (
	// ErrAttached means that this Program is attached already; one Program serves one interface.
	ErrAttached = errors.New("bpf: program is attached already")
	// ErrNotAttached means that no program is attached where one was expected.
	ErrNotAttached = errors.New("bpf: no program is attached")
	// ErrAddress means an address that cannot be steered: only unicast can, IPv4 or IPv6.
	ErrAddress = errors.New("bpf: address cannot be steered (unicast only)")
)

// Options sizes a [Program]; the zero value is good for one interface of up to 256 queues.
type Options struct {
	// ServiceCount is how many (address, port) pairs can be registered at once; 0 means 64.
	ServiceCount int
	// QueueCount is the number of receive queues that can have a socket; 0 means 256.
	QueueCount int
	// PacketSizeMax is the longest packet, from the Ethernet header on, that a frame holds; longer ones are left to
	// the kernel. 0 means 1784, for frames of 2048 bytes.
	PacketSizeMax int
}

// Program is the steering program in the kernel, with its maps and its attachment. Its methods may be called by
// any goroutine; none is on the packet path.
type Program struct {
	objects steerObjects

	mu         sync.Mutex // over the fields below
	attachment link.Link  // referenced here so that the collector cannot close, and so detach, it
}

// Load verifies the program and makes its maps. It needs CAP_BPF and CAP_NET_ADMIN.
func Load(opts Options) (*Program, error) {
	spec, err := loadSteer()
	if err != nil {
		return nil, fmt.Errorf("bpf: parse the program: %w", err)
	}
	spec.Maps[steerMapServices].MaxEntries = uint32(cmp.Or(opts.ServiceCount, serviceCountDefault))
	spec.Maps[steerMapXsks].MaxEntries = uint32(cmp.Or(opts.QueueCount, queueCountDefault))
	packetSizeMax := uint32(cmp.Or(opts.PacketSizeMax, packetSizeMaxDefault))
	if err := spec.Variables[steerVarPacketSizeMax].Set(packetSizeMax); err != nil {
		return nil, fmt.Errorf("bpf: set the packet size: %w", err)
	}
	program := &Program{}
	if err := spec.LoadAndAssign(&program.objects, nil); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w (run with CAP_BPF and CAP_NET_ADMIN)", err)
		}
		return nil, fmt.Errorf("bpf: load the program: %w", err)
	}
	return program, nil
}

// Attach attaches the program to an interface of the calling thread's network namespace and returns the mode in use. ModeAuto
// tries native mode, and generic mode where the driver has none. If another program is there the error is a
// [*HeldError] and nothing has changed.
func (p *Program) Attach(ifindex int, mode Mode) (Mode, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attachment != nil {
		return mode, ErrAttached
	}
	attempts := []Mode{mode}
	if mode == ModeAuto {
		attempts = []Mode{ModeNative, ModeGeneric}
	}
	var err error
	for _, attempt := range attempts {
		p.attachment, err = link.AttachXDP(link.XDPOptions{
			Program:   p.objects.StillwaterXdp,
			Interface: ifindex,
			Flags:     attempt.flags(),
		})
		if err == nil {
			return attempt, nil
		}
		p.attachment = nil
		if !errors.Is(err, unix.EOPNOTSUPP) {
			mode = attempt
			break // a fault that generic mode would only hide
		}
	}
	return mode, attachError(ifindex, mode, err)
}

// attachError adds the holder or the cure to what the kernel answered.
func attachError(ifindex int, mode Mode, err error) error {
	device, lookupErr := net.InterfaceByIndex(ifindex)
	if lookupErr != nil {
		return fmt.Errorf("bpf: attach to interface %d: %w", ifindex, errors.Join(err, lookupErr))
	}
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) {
		status, inspectErr := Inspect(device.Name)
		if inspectErr == nil && status.Attached {
			return status.held()
		}
		err = errors.Join(err, inspectErr)
	}
	cure := ""
	switch {
	case errors.Is(err, unix.ENOSPC):
		cure = " (give the interface at least as many rx queues as its peer has tx queues)"
	case errors.Is(err, unix.ERANGE):
		cure = fmt.Sprintf(" (lower the MTU of %d, on a veth pair at both ends: a page must hold a packet and XDP's room "+
			"around it, which leaves 3506 of 4096 bytes on veth; or use generic mode)", device.MTU)
	case errors.Is(err, unix.EOPNOTSUPP):
		cure = " (the driver has no such mode: use generic mode)"
	case errors.Is(err, fs.ErrPermission):
		cure = " (run with CAP_NET_ADMIN)"
	}
	return fmt.Errorf("bpf: attach to %s in %v mode: %w%s", device.Name, mode, err, cure)
}

// Attached reports whether the kernel still runs the program where it was attached. It is false after the interface
// was deleted or moved to another namespace, or the link was detached by force.
func (p *Program) Attached() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attachment == nil {
		return false, nil
	}
	info, err := p.attachment.Info()
	if err != nil {
		return false, fmt.Errorf("bpf: look at the link: %w", err)
	}
	// The kernel reports index 0 once the device is gone (net/core/dev.c, bpf_xdp_link_fill_link_info).
	return info.XDP() != nil && info.XDP().Ifindex != 0, nil
}

// Detach ends the program's attachment; registered services and sockets stay, and it may be attached again.
func (p *Program) Detach() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attachment == nil {
		return ErrNotAttached
	}
	err := p.attachment.Close()
	p.attachment = nil
	return err
}

// RegisterService makes UDP datagrams for addr and port ours. A zone is not looked at. Registering twice is no error.
func (p *Program) RegisterService(addr netip.Addr, port uint16) error {
	key, err := serviceKey(addr, port)
	if err != nil {
		return err
	}
	if err := p.objects.Services.Put(key, uint32(0)); err != nil {
		if errors.Is(err, unix.E2BIG) {
			err = fmt.Errorf("%w (raise Options.ServiceCount above %d)", err, p.objects.Services.MaxEntries())
		}
		return fmt.Errorf("bpf: register %v port %d: %w", addr, port, err)
	}
	return nil
}

// UnregisterService leaves datagrams for addr and port to the kernel again. Unknown ones are no error.
func (p *Program) UnregisterService(addr netip.Addr, port uint16) error {
	key, err := serviceKey(addr, port)
	if err != nil {
		return err
	}
	if err := p.objects.Services.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("bpf: unregister %v port %d: %w", addr, port, err)
	}
	return nil
}

func serviceKey(addr netip.Addr, port uint16) (steerServiceKey, error) {
	addr = addr.Unmap()
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() || port == 0 {
		return steerServiceKey{}, fmt.Errorf("%w: %v port %d", ErrAddress, addr, port)
	}
	return steerServiceKey{
		Address:  addr.As16(), // IPv4-mapped, as the program writes it
		Port:     [2]byte{byte(port >> 8), byte(port)},
		Protocol: protocolUDP,
	}, nil
}

// SetSocket registers the AF_XDP socket of a receive queue. It must be bound to exactly that queue of the interface.
func (p *Program) SetSocket(queue uint32, fd int) error {
	if err := p.objects.Xsks.Put(queue, uint32(fd)); err != nil {
		if errors.Is(err, unix.E2BIG) {
			err = fmt.Errorf("%w (raise Options.QueueCount above %d)", err, p.objects.Xsks.MaxEntries())
		}
		return fmt.Errorf("bpf: register the socket of queue %d: %w", queue, err)
	}
	return nil
}

// ClearSocket leaves our packets of a queue to the kernel. A queue without a socket is no error.
func (p *Program) ClearSocket(queue uint32) error {
	if err := p.objects.Xsks.Delete(queue); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("bpf: clear the socket of queue %d: %w", queue, err)
	}
	return nil
}

// Verdicts returns one count per reason, in order of the reasons, zero counts included.
func (p *Program) Verdicts() ([]VerdictCount, error) {
	return readVerdicts(p.objects.Verdicts)
}

// Close detaches the program, if it is attached, and frees it and its maps.
func (p *Program) Close() error {
	err := p.Detach()
	if errors.Is(err, ErrNotAttached) {
		err = nil
	}
	return errors.Join(err, p.objects.Close())
}
