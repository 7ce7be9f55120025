package sim

import (
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// hostPort is a host as its dispatcher sees it. It is a type of its own so that the methods of a port are none of the host's.
type hostPort Host

// Receive gives out one packet. Its buffer goes back to the world at the next call, as the interface promises.
func (p *hostPort) Receive(_ clock.Time, batch []dispatcher.Datagram) int {
	if p.taken != nil {
		p.w.free(p.taken)
	}
	in := p.inbox.take()
	p.taken = in
	if in == nil {
		return 0
	}
	batch[0] = dispatcher.Datagram{Payload: in.buf, From: in.from, Arrival: in.arrival}
	return 1
}

// Lend lends a packet; it never fails: a simulated host has as many buffers as it needs.
func (p *hostPort) Lend() (dispatcher.Buffer, bool) {
	token := uint64(len(p.lent))
	if n := len(p.spare); n > 0 {
		token, p.spare = p.spare[n-1], p.spare[:n-1]
	} else {
		p.lent = append(p.lent, nil)
	}
	out := p.w.packet()
	p.lent[token] = out
	return dispatcher.Buffer{Bytes: out.buf, Token: token}, true
}

// back takes what was lent.
func (p *hostPort) back(b dispatcher.Buffer) *packet {
	out := p.lent[b.Token]
	p.lent[b.Token] = nil
	p.spare = append(p.spare, b.Token)
	out.buf = b.Bytes
	return out
}

// Send queues a packet for the next kick.
func (p *hostPort) Send(b dispatcher.Buffer, to wire.Addr) {
	out := p.back(b)
	out.to = p.w.host(to)
	p.outbox.put(out)
}

// Drop takes a packet back unsent.
func (p *hostPort) Drop(b dispatcher.Buffer) { p.w.free(p.back(b)) }

// Kick puts what was queued on its way.
func (p *hostPort) Kick() {
	for out := p.outbox.take(); out != nil; out = p.outbox.take() {
		p.w.send(p.addr, out)
	}
}

// Outstanding is nothing: the network takes all at once.
func (p *hostPort) Outstanding() int { return 0 }

// Wait is for loops, of which there are none here.
func (p *hostPort) Wait(time.Duration, int) error { return nil }

// LocalAddr is the host's address.
func (p *hostPort) LocalAddr() wire.Addr { return p.addr }

// PayloadMax is that of Ethernet.
func (p *hostPort) PayloadMax() int { return payloadMax }

// Name says what kind of port this is.
func (p *hostPort) Name() string { return "sim" }

// Stats are the world's to keep.
func (p *hostPort) Stats() dispatcher.PortStats { return dispatcher.PortStats{} }

// Close has nothing to free.
func (p *hostPort) Close() error { return nil }
