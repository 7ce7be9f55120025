//go:build linux

package nic

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// State is what may change about an interface while it is in use.
type State struct {
	Index    int
	Up       bool // by its administrator; the carrier is another matter
	Carrier  bool // it is up, and so is whoever is at the other end
	MTU      int
	Channels Channels
}

// Probe reads the state of one interface by name, again and again, without an allocation. It belongs to the network namespace of the thread that
// made it, and to one goroutine.
type Probe struct {
	name     string
	fd       int
	request  ifRequest
	channels Channels
}

// ifRequest is struct ifreq of include/uapi/linux/if.h with the part of its union that is used here.
type ifRequest struct {
	name  [unix.IFNAMSIZ]byte
	value int32 // index or MTU; flags are in its first two bytes
	_     [20]byte
}

// NewProbe makes a probe; the interface need not be there.
func NewProbe(name string) (*Probe, error) {
	if len(name) >= unix.IFNAMSIZ {
		return nil, fmt.Errorf("nic: no interface has a name as long as %q", name)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("nic: watch %s: %w", name, err)
	}
	return &Probe{name: name, fd: fd}, nil
}

// Look reads the state: [unix.ENODEV] when there is no interface of that name.
func (p *Probe) Look() (s State, err error) {
	index, errno := p.ask(unix.SIOCGIFINDEX)
	if errno != 0 {
		return s, errno
	}
	flags, errno := p.ask(unix.SIOCGIFFLAGS)
	if errno != 0 {
		return s, errno
	}
	mtu, errno := p.ask(unix.SIOCGIFMTU)
	if errno != 0 {
		return s, errno
	}
	p.channels = Channels{command: unix.ETHTOOL_GCHANNELS}
	switch errno := ioctlEthtool(p.fd, p.name, unsafe.Pointer(&p.channels)); errno {
	case 0:
	case unix.EOPNOTSUPP:
		p.channels = oneQueue
	default:
		return s, errno
	}
	return State{Index: int(index), Up: flags&unix.IFF_UP != 0, Carrier: flags&unix.IFF_RUNNING != 0, MTU: int(mtu), Channels: p.channels}, nil
}

// ask makes one of the old ioctls.
func (p *Probe) ask(what uint) (int32, unix.Errno) {
	p.request = ifRequest{}
	copy(p.request.name[:], p.name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(p.fd), uintptr(what), uintptr(unsafe.Pointer(&p.request)))
	return p.request.value, errno
}

// Close gives the probe up.
func (p *Probe) Close() error { return unix.Close(p.fd) }
