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

// Own runs a function as the user of all ports of an interface and waits for it; false when a user has stopped, and the function did not run.
type Own = func(func()) bool

// keeper follows what happens to a port's interface: it goes and comes back, under another index; it gets queues; its MTU changes;
// somebody detaches the program. It runs beside the port's user, and does what takes long (binding and closing sockets) by itself, so that the
// user polls on; only the exchange is the user's.
type keeper struct {
	*card
	own   Own
	probe *nic.Probe
	looks int
	said  string // the last trouble, which is said once
	// away: at the last look there was a trouble, or no carrier. When there is none any more, our addresses are announced.
	away bool
}

// resize is a request for another number of queues.
type resize struct {
	count int
	done  chan error
}

// ErrNotKept says that a port's queues cannot be changed, since nobody keeps it: it is closed, or was not started.
var ErrNotKept = errors.New("the port is closed")

// Keep looks after the port's interface until stop is closed. It returns when nothing is under way any more.
func (c *card) Keep(own Own, stop <-chan struct{}) {
	defer close(c.kept)
	k := &keeper{card: c, own: own}
	err := c.space.enter()
	if err == nil {
		k.probe, err = nic.NewProbe(c.device.name)
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
		case r := <-c.resize:
			r.done <- k.setQueues(r.count)
		case <-tick.C:
			if k.runs(stop) {
				err := k.look()
				k.away = k.away || err != nil
				k.say(err)
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
func (c *card) Resize(count int) error {
	r := resize{count, make(chan error, 1)}
	select {
	case c.resize <- r:
	case <-c.kept:
		return ErrNotKept
	}
	select {
	case err := <-r.done:
		return err
	case <-c.kept:
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
		slog.Info("the interface is whole again", "interface", k.device.name, "mode", k.mode())
	default:
		slog.Warn("the interface is not whole: what can, goes through the kernel", "interface", k.device.name, "error", text)
	}
	k.said = text
	k.trouble.Store(&text)
}

func (k *keeper) mode() (text string) {
	k.own(func() { text = k.Mode() })
	return text
}

// Trouble is what is wrong with the interface, in words; "" = nothing. It may be called from any goroutine.
func (c *card) Trouble() string {
	if text := c.trouble.Load(); text != nil {
		return *text
	}
	return ""
}

// look compares the interface with what the port believes, and mends what is different. The error is what could not be mended.
func (k *keeper) look() error {
	now, err := k.probe.Look()
	if errors.Is(err, unix.ENODEV) || err == nil && (now.Index != k.device.index || k.unbound()) {
		if k.ports[0].own == nil {
			return fmt.Errorf("%s was away, and sockets of %s are not opened anew: close the endpoint and open another", k.device.name, k.sockets)
		}
		if err := k.drop(); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("looking for %s: %w", k.device.name, err)
	}
	if k.served() == 0 {
		k.away = true
		return k.reopen(now)
	}
	k.resized(now.MTU)
	if !now.Up {
		return fmt.Errorf("%s is down", k.device.name)
	}
	if err := k.grown(now.Channels); err != nil {
		return err
	}
	if k.looks%searchEvery == 0 {
		if err := k.attached(); err != nil {
			return err
		}
	}
	return k.regained(now.Carrier)
}

// regained announces our addresses when the interface is back, or its carrier.
func (k *keeper) regained(carrier bool) error {
	if !carrier {
		return fmt.Errorf("%s has no carrier: nobody is at the other end, or down", k.device.name)
	}
	if !k.away {
		return nil
	}
	k.away = false
	return k.announce()
}

// unbound reports whether the kernel has unbound a socket, since its interface was away for a moment: it may be back under its old index.
func (k *keeper) unbound() bool {
	for _, p := range k.ports {
		for _, q := range p.queues.open {
			if q, ok := q.(*xsk.Queue); ok && q.SocketError() != nil {
				return true
			}
		}
	}
	return false
}

// attached attaches the program again if somebody has detached it. While it is not, the kernel's socket gets all packets.
func (k *keeper) attached() error {
	if attached, err := k.program.Attached(); attached || err != nil {
		return err
	}
	if err := k.program.Detach(); err != nil && !errors.Is(err, bpf.ErrNotAttached) {
		return err
	}
	mode, err := k.cfg.attach(k.program, k.device.index, k.cfg.Mode.program(k.bound()))
	if err != nil {
		return fmt.Errorf("the program was detached from %s: %w", k.device.name, err)
	}
	slog.Warn("the program was detached by somebody else, and is attached again", "interface", k.device.name)
	k.own(func() { k.device.xdp = mode })
	return nil
}

// grown looks whether the interface has another number of queues, and serves new ones if it is to serve all.
func (k *keeper) grown(channels nic.Channels) error {
	have := channels.Receive()
	if have == k.device.have && channels.Transmit() == k.ports[0].queues.transmit {
		return nil
	}
	k.own(func() {
		k.device.have = have
		k.setTransmit(channels.Transmit())
	})
	if k.cfg.Queues != 0 || have <= k.served() {
		return nil
	}
	return k.setQueues(min(have-int(k.cfg.Queue), k.room()))
}

// resized follows the MTU: longer packets would be lost.
func (k *keeper) resized(mtu int) {
	if size := k.payloadFor(mtu); size != k.payloadMax {
		k.own(func() { k.payloadMax = size })
	}
}

// payloadFor is what fits into a packet of the MTU and into a frame.
func (c *card) payloadFor(mtu int) int {
	return max(min(mtu+wire.EthernetHeaderBytes, c.ports[0].umem.PacketSizeMax())-c.local.headers(), 0)
}
