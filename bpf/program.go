//go:build linux

package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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

// Program is the steering program in the kernel, with its maps and its attachment: loaded here, or adopted from pins. Its
// methods may be called by any goroutine; none is on the packet path.
type Program struct {
	objects steerObjects // of a user's program services and verdicts may be nil
	owners  *ebpf.Map    // who put a socket where; see owners.go
	adopted *adopted     // nil: loaded here

	mu         sync.Mutex // over the fields below, and what is adopted
	attachment link.Link  // referenced here so that the collector cannot close, and so detach, it
}

// Load verifies the program and makes its maps. It needs CAP_BPF, CAP_PERFMON (the program subtracts pointers) and CAP_NET_ADMIN.
func Load(opts Options) (*Program, error) {
	spec, err := loadSteer()
	if err != nil {
		return nil, fmt.Errorf("bpf: parse the program: %w", err)
	}
	queueCount := cmp.Or(opts.QueueCount, queueCountDefault)
	spec.Maps[steerMapServices].MaxEntries = uint32(cmp.Or(opts.ServiceCount, serviceCountDefault))
	spec.Maps[steerMapXsks].MaxEntries = uint32(queueCount)
	packetSizeMax := uint32(cmp.Or(opts.PacketSizeMax, packetSizeMaxDefault))
	if err := spec.Variables[steerVarPacketSizeMax].Set(packetSizeMax); err != nil {
		return nil, fmt.Errorf("bpf: set the packet size: %w", err)
	}
	program := &Program{}
	if err := spec.LoadAndAssign(&program.objects, nil); err != nil {
		return nil, loadError(err)
	}
	if err := program.bindOwners(queueCount); err != nil {
		return nil, errors.Join(err, program.Close())
	}
	return program, nil
}

func loadError(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w (run with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN)", err)
	}
	return fmt.Errorf("bpf: load the program: %w", err)
}

// RegisterService makes UDP datagrams for addr and port ours. A zone is not looked at. Registering twice is no error. A program without a map of services
// decides by itself what is ours; then this does nothing.
func (p *Program) RegisterService(addr netip.Addr, port uint16) error {
	return p.RegisterServiceOn(addr, port, Queues{})
}

// RegisterServiceOn is RegisterService for packets that come in on certain queues. Others are left to the kernel, so that a program that several
// processes share does not hand them to the socket of another one. Registering again changes the queues.
func (p *Program) RegisterServiceOn(addr netip.Addr, port uint16, on Queues) error {
	key, err := serviceKey(addr, port)
	if err != nil || p.objects.Services == nil {
		return err
	}
	if err := p.putService(key, on); err != nil {
		if errors.Is(err, unix.E2BIG) {
			err = fmt.Errorf("%w (raise Options.ServiceCount above %d)", err, p.objects.Services.MaxEntries())
		}
		return fmt.Errorf("bpf: register %v port %d: %w", addr, port, err)
	}
	return nil
}

// UnregisterService leaves datagrams for addr and port to the kernel again. Unknown ones are no error. In an adopted program only what was
// registered through it goes.
func (p *Program) UnregisterService(addr netip.Addr, port uint16) error {
	key, err := serviceKey(addr, port)
	if err != nil || p.objects.Services == nil || !p.mine(key) {
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

// SetSocket registers the AF_XDP socket of a receive queue. It must be bound to exactly that queue of the interface. In an adopted
// program the socket of somebody else is never replaced: the error is a [*QueueError].
func (p *Program) SetSocket(queue uint32, fd int) error {
	if err := p.putSocket(queue, fd); err != nil {
		switch {
		case errors.Is(err, unix.E2BIG):
			err = fmt.Errorf("%w (raise Options.QueueCount above %d)", err, p.objects.Xsks.MaxEntries())
		case errors.Is(err, ebpf.ErrKeyExist):
			return p.taken(queue)
		}
		return fmt.Errorf("bpf: register the socket of queue %d: %w", queue, err)
	}
	return p.own(queue)
}

// ClearSocket leaves our packets of a queue to the kernel. A queue without a socket is no error. In an adopted program only what was set
// through it goes.
func (p *Program) ClearSocket(queue uint32) error {
	if !p.holds(queue) {
		return nil
	}
	if err := p.objects.Xsks.Delete(queue); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("bpf: clear the socket of queue %d: %w", queue, err)
	}
	return p.disown(queue)
}

// Services returns the registered addresses and ports, in order; none of a program without a map of services.
func (p *Program) Services() ([]netip.AddrPort, error) {
	if p.objects.Services == nil {
		return nil, nil
	}
	return readServices(p.objects.Services)
}

// Verdicts returns one count per reason, in order of the reasons, zero counts included. A program without counters is [ErrNoCounters].
func (p *Program) Verdicts() ([]VerdictCount, error) {
	if p.objects.Verdicts == nil {
		return nil, ErrNoCounters
	}
	return readVerdicts(p.objects.Verdicts)
}

// Close detaches the program, if it is attached, and frees it and its maps. What was put into the maps of an adopted one is taken out
// of them, and the rest of it stays.
func (p *Program) Close() error {
	var errs []error
	if p.adopted != nil {
		errs = append(errs, p.withdraw())
	} else if err := p.Detach(); !errors.Is(err, ErrNotAttached) {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, p.objects.Close(), p.owners.Close())...)
}
