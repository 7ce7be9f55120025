//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// program is the one that brings the packets: our own, which goes with the port, or one that is shared. Of that, Attach only checks
// that it is attached, and Close only takes out what was put in through it.
func (c *Config) program(packetSizeMax int) (*bpf.Program, error) {
	if c.PinPath != "" {
		return bpf.Adopt(c.PinPath)
	}
	return bpf.Load(bpf.Options{PacketSizeMax: packetSizeMax})
}

// register tells the program of our addresses. In one that is shared, only packets on our own queues are for our sockets: on another's they would
// be dropped, and so they go through the kernel.
func (c *card) register() error {
	var on bpf.Queues
	if ids := c.ids(); c.cfg.PinPath != "" && len(ids) > 0 {
		on.First = slices.Min(ids)
		on.Count = slices.Max(ids) - on.First + 1
	}
	for _, local := range c.local.all() {
		if err := c.program.RegisterServiceOn(local.AddrPort().Addr(), local.Port, on); err != nil {
			return err
		}
	}
	return nil
}

// holder says who has a queue that is busy: those who share the program have said so, otherwise it is most likely who
// has the program on the interface.
func (c *Config) holder(err error) error {
	if !errors.Is(err, xsk.ErrQueueBusy) {
		return nil
	}
	if c.PinPath != "" {
		return c.owner()
	}
	status, err := bpf.Inspect(c.Interface)
	if err != nil || !status.Attached {
		return nil // the first error says it all
	}
	return status.Held()
}

// owner finds the first of our queues that one of those who share the program has.
func (c *Config) owner() error {
	program, err := bpf.Adopt(c.PinPath)
	if err != nil {
		return nil // the first error says it all
	}
	owners, err := program.Owners()
	if err := errors.Join(err, program.Close()); err != nil {
		return err
	}
	owners = slices.DeleteFunc(owners, func(o bpf.Owner) bool {
		return o.Queue < c.Queue || c.Queues != 0 && o.Queue >= c.Queue+uint32(c.Queues)
	})
	if len(owners) == 0 {
		return fmt.Errorf("no process that shares the program in %s says that it has the queue", c.PinPath)
	}
	// Whoever died without crossing itself out does not keep a queue busy; but one in another PID namespace does not show either.
	at := max(slices.IndexFunc(owners, func(o bpf.Owner) bool { return o.Alive() }), 0)
	return &bpf.QueueError{Queue: owners[at].Queue, Owner: owners[at].Process}
}
