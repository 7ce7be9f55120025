//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Attach attaches the program to an interface of the calling thread's network namespace and returns the mode in use. ModeAuto
// tries native mode, and generic mode where the driver has none. If another program is there the error is a
// [*HeldError] and nothing has changed. An adopted program is attached already: it is checked that it is there, whatever the mode.
func (p *Program) Attach(ifindex int, mode Mode) (Mode, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.adopted != nil {
		return p.adopted.attach(ifindex)
	}
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
			return status.Held()
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
	if p.adopted != nil {
		return p.adopted.attached()
	}
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

// Detach ends the program's attachment; registered services and sockets stay, and it may be attached again. An adopted one stays
// attached: it is whoever loaded it that detaches it.
func (p *Program) Detach() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.adopted != nil {
		return p.adopted.detach()
	}
	if p.attachment == nil {
		return ErrNotAttached
	}
	err := p.attachment.Close()
	p.attachment = nil
	return err
}
