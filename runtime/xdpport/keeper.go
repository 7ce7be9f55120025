//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/hw/nic"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/xsk"
)

const (
	// keepEvery is how often the keeper looks: whatever happens to the interface is noticed well within a second. A look is a few system
	// calls, and allocates nothing while all is as it was.
	keepEvery = 100 * time.Millisecond
	// searchEvery is how many looks apart it asks for what costs it some garbage: whether the program is attached, and whether the loop runs.
	searchEvery = 5
	// hungAfter is how long the loop may take to run what it was given. A handler cannot keep it for so long, unless it keeps the last P.
	hungAfter = time.Second
)

// Own runs a function as the port's user and waits for it; false when the user has stopped, and the function did not run.
type Own = func(func()) bool

// keeper follows what happens to a port's interface: it goes and comes back, under another index; it gets queues; its MTU changes;
// somebody detaches the program. It runs beside the port's user, and does what takes long (binding and closing sockets) by itself, so that the
// user polls on; only the exchange is the user's.
type keeper struct {
	port  *Port
	own   Own
	probe *nic.Probe
	looks int
	said  string // the last trouble, which is said once
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
		k.probe, err = nic.NewProbe(p.device.name)
	}
	if err != nil {
		k.say(fmt.Errorf("it is not watched: %w", err))
		<-stop
		return
	}
	defer k.probe.Close()
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case r := <-p.resize:
			r.done <- k.setQueues(r.count)
		case <-tick.C:
			if k.runs(stop) {
				k.say(k.look())
			}
		}
	}
}

// runs waits until the loop does something, and says so if that takes long: nothing that XDP brings is served then.
func (k *keeper) runs(stop <-chan struct{}) bool {
	if k.looks++; k.looks%searchEvery != 0 {
		return true
	}
	ran := make(chan struct{})
	go func() {
		k.own(func() {})
		close(ran)
	}()
	select {
	case <-ran:
		return true
	case <-stop:
		return false
	case <-time.After(hungAfter):
	}
	k.say(fmt.Errorf("the endpoint's loop has not run for %v: no handler may compute for so long on its last P", hungAfter))
	select {
	case <-ran:
		return true
	case <-stop:
		return false
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
	now, err := k.probe.Look()
	if errors.Is(err, unix.ENODEV) || err == nil && (now.Index != p.device.index || k.unbound()) {
		if p.own == nil {
			return fmt.Errorf("%s was away, and sockets of %s are not opened anew: close the endpoint and open another", p.device.name, p.sockets)
		}
		if err := k.drop(); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("looking for %s: %w", p.device.name, err)
	}
	if len(p.queues.ids) == 0 {
		return k.reopen(now)
	}
	k.resized(now.MTU)
	if !now.Up {
		return fmt.Errorf("%s is down", p.device.name)
	}
	if err := k.grown(now.Channels); err != nil {
		return err
	}
	if k.looks%searchEvery == 0 {
		return k.attached()
	}
	return nil
}

// unbound reports whether the kernel has unbound a socket, since its interface was away for a moment: it may be back under its old index.
func (k *keeper) unbound() bool {
	for _, q := range k.port.queues.open {
		if q, ok := q.(*xsk.Queue); ok && q.SocketError() != nil {
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
	mode, err := p.cfg.attach(p.program, p.device.index, p.cfg.Mode.program(p.queues.bound()))
	if err != nil {
		return fmt.Errorf("the program was detached from %s: %w", p.device.name, err)
	}
	slog.Warn("the program was detached by somebody else, and is attached again", "interface", p.device.name)
	k.own(func() { p.device.xdp = mode })
	return nil
}

// grown looks whether the interface has another number of queues, and serves new ones if it is to serve all.
func (k *keeper) grown(channels nic.Channels) error {
	p := k.port
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
	return max(min(mtu+wire.EthernetHeaderBytes, p.umem.PacketSizeMax())-p.local.headers(), 0)
}
