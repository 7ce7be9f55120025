//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/hw/nic"
	"github.com/stillwater-rpc/stillwater/wire"
)

// keepEvery is how often the keeper looks: whatever happens to the interface is noticed well within a second. One look is four system calls.
const keepEvery = 250 * time.Millisecond

// Own runs a function as the port's user and waits for it; false when the user has stopped, and the function did not run.
type Own func(func()) bool

// keeper follows what happens to a port's interface: it goes and comes back, under another index; it gets queues; its MTU changes;
// somebody detaches the program. It runs beside the port's user, and does what takes long (binding and closing sockets) by itself, so that the
// user polls on; only the exchange is the user's.
type keeper struct {
	port   *Port
	own    Own
	handle *netlink.Handle
	said   string // the last trouble, which is said once
}

// resize is a request for another number of queues.
type resize struct {
	count int
	done  chan error
}

// ErrNotKept says that a port's queues cannot be changed, since nobody keeps it: it is closed, or was not started.
var ErrNotKept = errors.New("the port is closed")

// Keep looks after the port's interface until stop is closed. It returns when nothing is under way any more.
func (p *Port) Keep(own Own, stop <-chan struct{}) {
	defer close(p.kept)
	k := &keeper{port: p, own: own}
	err := p.space.enter()
	if err == nil {
		k.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
	}
	if err != nil {
		k.say(fmt.Errorf("it is not watched: %w", err))
		<-stop
		return
	}
	defer k.handle.Close()
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case r := <-p.resize:
			r.done <- k.setQueues(r.count)
		case <-tick.C:
			k.say(k.look())
		}
	}
}

// Resize gives the port another number of queues, from the first one on, while it works. Packets of a queue that is given up go through the
// kernel's socket. It waits until that is done; the keeper must run.
func (p *Port) Resize(count int) error {
	r := resize{count, make(chan error, 1)}
	select {
	case p.resize <- r:
	case <-p.kept:
		return ErrNotKept
	}
	select {
	case err := <-r.done:
		return err
	case <-p.kept:
		return ErrNotKept
	}
}

// say reports a trouble once, and its end.
func (k *keeper) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == k.said:
		return
	case text == "":
		slog.Info("the interface is whole again", "interface", k.port.device.name, "mode", k.mode())
	default:
		slog.Warn("the interface is not whole: what can, goes through the kernel", "interface", k.port.device.name, "error", text)
	}
	k.said = text
	k.port.trouble.Store(&text)
}

func (k *keeper) mode() (text string) {
	k.own(func() { text = k.port.Mode() })
	return text
}

// Trouble is what is wrong with the interface, in words; "" = nothing. It may be called from any goroutine.
func (p *Port) Trouble() string {
	if text := p.trouble.Load(); text != nil {
		return *text
	}
	return ""
}

// look compares the interface with what the port believes, and mends what is different. The error is what could not be mended.
func (k *keeper) look() error {
	p := k.port
	link, err := k.handle.LinkByName(p.device.name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing || err == nil && (link.Attrs().Index != p.device.index || k.unbound()) {
		if err := k.drop(); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("looking for %s: %w", p.device.name, err)
	}
	if len(p.queues.ids) == 0 {
		return k.reopen(link)
	}
	k.resized(link.Attrs().MTU)
	if link.Attrs().Flags&net.FlagUp == 0 {
		return fmt.Errorf("%s is down", p.device.name)
	}
	return errors.Join(k.attached(), k.grown())
}

// unbound reports whether the kernel has unbound a socket, since its interface was away for a moment: it may be back under its old index.
func (k *keeper) unbound() bool {
	for _, q := range k.port.queues.open {
		if q.SocketError() != nil {
			return true
		}
	}
	return false
}

// attached attaches the program again if somebody has detached it. While it is not, the kernel's socket gets all packets.
func (k *keeper) attached() error {
	p := k.port
	if attached, err := p.program.Attached(); attached || err != nil {
		return err
	}
	if err := p.program.Detach(); err != nil && !errors.Is(err, bpf.ErrNotAttached) {
		return err
	}
	mode, err := p.program.Attach(p.device.index, bpf.ModeAuto)
	if err != nil {
		return fmt.Errorf("the program was detached from %s: %w", p.device.name, err)
	}
	slog.Warn("the program was detached by somebody else, and is attached again", "interface", p.device.name)
	k.own(func() { p.device.xdp = mode })
	return nil
}

// grown looks whether the interface has another number of queues, and serves new ones if it is to serve all.
func (k *keeper) grown() error {
	p := k.port
	channels, err := nic.ChannelsOf(p.device.name)
	if err != nil {
		return err
	}
	have := channels.Receive()
	if have == p.device.have && channels.Transmit() == p.queues.transmit {
		return nil
	}
	k.own(func() {
		p.device.have = have
		p.queues.setTransmit(channels.Transmit())
	})
	if p.cfg.Queues != 0 || have <= len(p.queues.ids) {
		return nil
	}
	return k.setQueues(min(have-int(p.cfg.Queue), p.queuesRoom))
}

// resized follows the MTU: longer packets would be lost.
func (k *keeper) resized(mtu int) {
	p := k.port
	if size := p.payloadFor(mtu); size != p.payloadMax {
		k.own(func() { p.payloadMax = size })
	}
}

// payloadFor is what fits into a packet of the MTU and into a frame.
func (p *Port) payloadFor(mtu int) int {
	return max(min(mtu+wire.EthernetHeaderBytes, p.umem.PacketSizeMax())-wire.FrameHeaderBytes, 0)
}
