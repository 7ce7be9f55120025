//go:build linux

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The value of a service in the map: flags, at which the program does not look, and the queues whose packets are ours.
const (
	serviceOfLoader  uint32 = 0 // it stays until the program goes
	serviceOfAdopter uint32 = 1 // it goes with the process that registered it

	serviceFlags uint32 = 0xff
)

// Where the queues stand in it.
const (
	serviceFirstShift = 8
	serviceCountShift = 20
	serviceQueueMax   = 1<<12 - 1 // the largest number that there is room for
)

// Queues are those on which a service's packets go to sockets; on all others they are left to the kernel. The zero value means any.
type Queues struct {
	First, Count uint32
}

func (q Queues) value(flags uint32) (uint32, error) {
	if q.Count == 0 {
		return flags, nil
	}
	if q.First > serviceQueueMax || q.Count > serviceQueueMax {
		return 0, fmt.Errorf("%d queues from number %d on: a service has room for numbers up to %d", q.Count, q.First, serviceQueueMax)
	}
	return flags | q.First<<serviceFirstShift | q.Count<<serviceCountShift, nil
}

// adopted is the state of a program that another process loaded and attached, and may share with more.
type adopted struct {
	dir      string // of its pins
	id       ebpf.ProgramID
	ifindex  int             // 0 until it was looked for
	handle   *netlink.Handle // of the namespace where it was looked for
	services map[steerServiceKey]struct{}
	queues   map[uint32]struct{}
}

// Adopt opens the program that [Program.Pin] pinned in a directory. It needs no capability, only permission to read program and verdicts and
// to write xsks, services and queue_owners, as Pin gives a group; kernels before 5.19 ask for CAP_BPF all the same, unless the sysctl
// kernel.unprivileged_bpf_disabled is 0.
//
// What is put into its maps through the returned Program is taken out again by Close; all else is left alone.
func Adopt(dir string) (*Program, error) {
	p, err := openPinned(dir)
	if err != nil {
		return nil, err
	}
	info, err := p.objects.StillwaterXdp.Info()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bpf: adopt the program in %s: %w", dir, err), p.Close())
	}
	id, _ := info.ID() // known since 4.13
	p.adopted = &adopted{
		dir: dir, id: id, services: map[steerServiceKey]struct{}{}, queues: map[uint32]struct{}{},
	}
	return p, nil
}

// attach checks that the program is attached to an interface of the calling thread's network namespace.
func (a *adopted) attach(ifindex int) (Mode, error) {
	device, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return ModeAuto, fmt.Errorf("bpf: look for the program at interface %d: %w", ifindex, err)
	}
	attrs := device.Attrs()
	switch {
	case attrs.Xdp == nil || !attrs.Xdp.Attached:
		return ModeAuto, fmt.Errorf("%w to %s: attach the pinned one with `stillwater xdp attach %s --pin-path %s`",
			ErrNotAttached, attrs.Name, attrs.Name, a.dir)
	case ebpf.ProgramID(attrs.Xdp.ProgId) != a.id:
		status, err := Inspect(attrs.Name, a.dir)
		if err != nil {
			return ModeAuto, err
		}
		return ModeAuto, fmt.Errorf("bpf: it is not the program %d that is pinned in %s: %w", a.id, a.dir, status.Held())
	}
	if a.handle == nil {
		if a.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return ModeAuto, fmt.Errorf("bpf: watch %s: %w", attrs.Name, err)
		}
	}
	a.ifindex = ifindex
	return modeOf(attrs.Xdp), nil
}

// attached looks whether it is still there.
func (a *adopted) attached() (bool, error) {
	if a.ifindex == 0 {
		return false, nil
	}
	device, err := a.handle.LinkByIndex(a.ifindex)
	if _, gone := errors.AsType[netlink.LinkNotFoundError](err); gone {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("bpf: look for the program at interface %d: %w", a.ifindex, err)
	}
	xdp := device.Attrs().Xdp
	return xdp != nil && xdp.Attached && ebpf.ProgramID(xdp.ProgId) == a.id, nil
}

func (a *adopted) detach() error {
	if a.ifindex == 0 {
		return ErrNotAttached
	}
	a.ifindex = 0
	return nil
}

// putService registers a service. What the loader registered stays its own, on any queue.
func (p *Program) putService(key steerServiceKey, on Queues) error {
	flags := serviceOfLoader
	if p.adopted != nil {
		flags = serviceOfAdopter
	}
	value, err := on.value(flags)
	if err != nil {
		return err
	}
	if p.adopted == nil {
		return p.objects.Services.Put(key, value)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var present uint32
	switch err := p.objects.Services.Lookup(key, &present); {
	case err == nil && present&serviceFlags == serviceOfLoader:
		return nil
	case err != nil && !errors.Is(err, ebpf.ErrKeyNotExist):
		return err
	}
	if err := p.objects.Services.Put(key, value); err != nil {
		return err
	}
	p.adopted.services[key] = struct{}{}
	return nil
}

// mine reports whether a service may be taken out.
func (p *Program) mine(key steerServiceKey) bool {
	if p.adopted == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.adopted.services[key]
	return ok
}

// putSocket sets the socket of a queue, or in an adopted program adds it.
func (p *Program) putSocket(queue uint32, fd int) error {
	if p.adopted == nil {
		return p.objects.Xsks.Put(queue, uint32(fd))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.objects.Xsks.Update(queue, uint32(fd), ebpf.UpdateNoExist); err != nil {
		return err
	}
	p.adopted.queues[queue] = struct{}{}
	return nil
}

// holds reports whether the socket of a queue may be taken out.
func (p *Program) holds(queue uint32) bool {
	if p.adopted == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.adopted.queues[queue]
	return ok
}

// withdraw takes out of an adopted program's maps what was put in through it.
func (p *Program) withdraw() error {
	p.mu.Lock()
	a := p.adopted
	queues, services, handle := a.queues, a.services, a.handle
	p.mu.Unlock()
	var errs []error
	for queue := range queues {
		errs = append(errs, p.ClearSocket(queue))
	}
	for key := range services {
		if err := p.objects.Services.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("bpf: unregister a service: %w", err))
		}
	}
	if handle != nil {
		handle.Close()
	}
	return errors.Join(errs...)
}
