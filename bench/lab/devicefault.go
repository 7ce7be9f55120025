//go:build linux

package lab

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/hw/nic"
)

// DeviceFault is something that happens to end A's interface while it is in use, and how it ends.
type DeviceFault struct {
	Name   string
	Strike func(*Pair) error
	Mend   func(*Pair) error
}

// DeviceFaults are those that a veth pair can suffer. That of queues needs an end with four receive queues.
var DeviceFaults = []DeviceFault{
	{"link down", func(p *Pair) error { return p.A.setLink(netlink.LinkSetDown) }, func(p *Pair) error { return p.A.setLink(netlink.LinkSetUp) }},
	{"peer down", func(p *Pair) error { return p.B.setLink(netlink.LinkSetDown) }, func(p *Pair) error { return p.B.setLink(netlink.LinkSetUp) }},
	{"deleted and made again", (*Pair).Cut, (*Pair).Join},
	{"moved away and back", (*Pair).moveAway, (*Pair).moveBack},
	{"program detached", (*Pair).detach, func(*Pair) error { return nil }},
	{"MTU changed", func(p *Pair) error { return p.A.SetMTU(1000) }, func(p *Pair) error { return p.A.SetMTU(p.cfg.MTU) }},
}

// setLink changes the end's interface.
func (e *End) setLink(change func(netlink.Link) error) error {
	return e.Do(func() error {
		l, err := netlink.LinkByName(e.Interface)
		if err != nil {
			return err
		}
		return change(l)
	})
}

// SetMTU changes the MTU of the end's interface.
func (e *End) SetMTU(mtu int) error {
	return e.setLink(func(l netlink.Link) error { return netlink.LinkSetMTU(l, mtu) })
}

// SetQueues changes the number of receive queues of the end's interface. That of transmit queues must stay at most that of the peer's
// receive queues. The kernel refuses, with EINVAL, to take away a queue that a socket is bound to.
func (e *End) SetQueues(count int) error {
	return e.Do(func() error {
		c, err := nic.ChannelsOf(e.Interface)
		if err != nil {
			return err
		}
		c.RxCount = uint32(count)
		return nic.SetChannels(e.Interface, c)
	})
}

// moveAway puts A's interface into a namespace of its own.
func (p *Pair) moveAway() (err error) {
	if p.refuge, err = NewNamespace(); err != nil {
		return err
	}
	return p.A.setLink(func(l netlink.Link) error { return netlink.LinkSetNsFd(l, p.refuge.FD()) })
}

// moveBack brings it back, and gives it what it lost on the way.
func (p *Pair) moveBack() error {
	err := p.refuge.Do(func() error {
		l, err := netlink.LinkByName(p.A.Interface)
		if err != nil {
			return err
		}
		return netlink.LinkSetNsFd(l, p.A.Namespace.FD())
	})
	if err := errors.Join(err, p.refuge.Close()); err != nil {
		return err
	}
	p.refuge = nil
	return p.A.setLink(func(l netlink.Link) error {
		address, err := netlink.ParseAddr(p.A.Address.String())
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrAdd(l, address), netlink.LinkSetUp(l))
	})
}

// attachPatience is how long a program that was taken off is waited for, before it is taken off again.
const attachPatience = 5 * time.Second

// detach takes the XDP program off A's interface by force, as `bpftool link detach` does.
func (p *Pair) detach() error {
	for until := time.Now().Add(attachPatience); ; time.Sleep(10 * time.Millisecond) {
		err := p.detachNow()
		if !errors.Is(err, errNoProgram) || time.Now().After(until) {
			return err
		}
	}
}

var errNoProgram = errors.New("no program is on the interface")

func (p *Pair) detachNow() error {
	return p.A.setLink(func(l netlink.Link) error {
		xdp := l.Attrs().Xdp
		if xdp == nil || !xdp.Attached {
			return fmt.Errorf("%w: %s", errNoProgram, p.A.Interface)
		}
		links := new(link.Iterator)
		defer links.Close()
		for links.Next() {
			if info, err := links.Link.Info(); err == nil && uint32(info.Program) == xdp.ProgId && info.XDP() != nil {
				return links.Link.Detach()
			}
		}
		return errors.Join(links.Err(), fmt.Errorf("the program on %s is not there by a link", p.A.Interface))
	})
}
