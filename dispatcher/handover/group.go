package handover

import (
	"errors"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// AwayMax is how many packets of one dispatcher can be at others. A port that keeps them needs that many buffers more than without.
const AwayMax = 1024

// laneSlots is the room between two of so many dispatchers: all lanes of one together hold AwayMax.
func laneSlots(count int) int { return 1 << (bits.Len(uint(AwayMax/(count-1))) - 1) }

// Group are the ports of an endpoint's dispatchers.
type Group struct {
	ports  []*Port
	bare   []dispatcher.Port
	rouse  []func()
	waited []func(arrival clock.Time) time.Duration
	open   atomic.Int64
}

// Join joins at least two ports and at most [session.OwnersMax], the first of which is that of dispatcher 0.
func Join(ports []dispatcher.Port) *Group {
	count := len(ports)
	if count < 2 || count > session.OwnersMax {
		panic("handover: a group is of 2 to 64 ports")
	}
	g := &Group{bare: ports, rouse: make([]func(), count), waited: make([]func(clock.Time) time.Duration, count)}
	g.open.Store(int64(count))
	for i, port := range ports {
		holder, _ := port.(Holder)
		g.Serve(i, func() {}, func(clock.Time) time.Duration { return 0 })
		g.ports = append(g.ports, &Port{
			Port: port, group: g, self: i, holder: holder, copies: newCopies(), out: make([]*lane, count), in: make([]*lane, count),
		})
	}
	for from, p := range g.ports {
		for to, other := range g.ports {
			if from != to {
				l := newLane(laneSlots(count))
				p.out[to], other.in[from] = l, l
			}
		}
	}
	return g
}

// Port is that of a dispatcher.
func (g *Group) Port(i int) *Port { return g.ports[i] }

// Serve says whose a port is. It must be called before any port is used. The first function wakes the dispatcher when it waits in its port; users of the
// other ports call it, after each batch with something for the dispatcher. The second is how long a packet of the batch that the dispatcher is just
// receiving has waited for it while it worked: what it waited for the return of one that was away is no load of the next one's either.
func (g *Group) Serve(i int, rouse func(), waited func(arrival clock.Time) time.Duration) {
	g.rouse[i], g.waited[i] = rouse, waited
}

// leave closes the ports once nobody uses one any more.
func (g *Group) leave() error {
	if g.open.Add(-1) > 0 {
		return nil
	}
	var errs []error
	for _, port := range g.bare {
		errs = append(errs, port.Close())
	}
	return errors.Join(errs...)
}

// shut stands for a port that its dispatcher has closed. The port itself may be open still, or be closed by another dispatcher at any moment.
type shut struct {
	dispatcher.Port // for what does not change: addresses, sizes, the name
	stats           dispatcher.PortStats
}

// Receive receives nothing.
func (shut) Receive(clock.Time, []dispatcher.Datagram) int { return 0 }

// Lend lends nothing.
func (shut) Lend() (dispatcher.Buffer, bool) { return dispatcher.Buffer{}, false }

// Send does nothing.
func (shut) Send(dispatcher.Buffer, wire.Addr) {}

// Drop does nothing: the buffer went with the port.
func (shut) Drop(dispatcher.Buffer) {}

// Kick does nothing.
func (shut) Kick() {}

// Outstanding is 0.
func (shut) Outstanding() int { return 0 }

// Wait does not.
func (shut) Wait(time.Duration, int) error { return nil }

// Stats are those of the end.
func (s shut) Stats() dispatcher.PortStats { return s.stats }

// SendRefused is that of the end: see [dispatcher.SendRefused].
func (s shut) SendRefused() uint64 { return s.stats.SendDropped }

// Close does nothing: the group closes the port.
func (shut) Close() error { return nil }
