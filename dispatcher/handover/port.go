package handover

import (
	"math/bits"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// Holder is a port whose packets can outlive its next Receive, so that nobody need copy them. What a port without it received is copied.
type Holder interface {
	// Hold keeps the payload of the i-th datagram of the last Receive as it is, until Return is called with the token, which is below 1<<63. It
	// reports false if that one cannot be kept.
	Hold(i int) (token uint64, ok bool)
	// Return gives a packet that was kept back.
	Return(token uint64)
}

// Port is the port of one of several dispatchers. It has one user, as every port; what it shares with the other ones is lock-free.
type Port struct {
	dispatcher.Port // the dispatcher's own, of its queues
	group           *Group
	self            int
	holder          Holder  // the same; nil = what is handed over is copied
	out, in         []*lane // by dispatcher, to it and from it; nil for our own
	next            int     // of in, to be asked first by the next receive
	roused          uint64  // dispatchers that got something in this turn, a bit for each
	copies          copies
	handed, dropped uint64
	closed          bool
}

var _ dispatcher.Port = (*Port)(nil)

// Receive takes packets from the other dispatchers, at most for half of the batch, and from our own port, whose packets for others it hands over.
func (p *Port) Receive(now clock.Time, batch []dispatcher.Datagram) int {
	p.comeHome()
	taken := p.takeOver(batch[:(len(batch)+1)/2])
	got := p.Port.Receive(now, batch[taken:])
	return taken + p.sort(now, batch[taken:taken+got])
}

// comeHome takes back what the others have handled.
func (p *Port) comeHome() {
	for _, l := range p.out {
		if l == nil {
			continue
		}
		for token, ok := l.back(); ok; token, ok = l.back() {
			if token&copyMark != 0 {
				p.copies.put(token)
			} else {
				p.holder.Return(token)
			}
		}
	}
}

// takeOver gives back what was taken the last time, and takes what the other dispatchers have for us. It begins with another one each time, so that none
// starves behind a busy one.
func (p *Port) takeOver(batch []dispatcher.Datagram) (taken int) {
	n := len(p.in)
	for i := range n {
		l := p.in[(p.next+i)%n]
		if l == nil {
			continue
		}
		l.release()
		taken += l.take(batch[taken:])
	}
	if p.next++; p.next == n {
		p.next = 0
	}
	return taken
}

// sort hands over what is for others, and moves what is ours to the front. It returns how many those are.
func (p *Port) sort(now clock.Time, batch []dispatcher.Datagram) (own int) {
	for i := range batch {
		d := &batch[i]
		owner := route(d.Payload, len(p.out))
		ours := owner == p.self || owner == anywhere
		if !ours {
			d.Since = now.Add(-p.group.waited[p.self](d.Arrival))
		}
		switch {
		case owner == dialers:
			ours = p.spread(d)
		case !ours:
			p.handOver(i, d, owner)
		}
		if ours {
			batch[own] = *d
			batch[own].Since = 0 // it waited for us alone
			own++
		}
	}
	for ; p.roused != 0; p.roused &= p.roused - 1 {
		p.group.rouse[bits.TrailingZeros64(p.roused)]()
	}
	return own
}

// spread hands copies of a packet to all dispatchers that may have dialed its sender, and reports whether we may.
func (p *Port) spread(d *dispatcher.Datagram) (ours bool) {
	for n := range session.Dialers(len(p.out)) {
		owner := session.Dialer(&d.From, n, len(p.out))
		if owner == p.self {
			ours = true
		} else if l := p.out[owner]; l.full() {
			p.dropped++
		} else {
			p.copyTo(l, d, owner)
		}
	}
	return ours
}

// handOver hands the i-th packet of the port's batch to its owner.
func (p *Port) handOver(i int, d *dispatcher.Datagram, owner int) {
	l := p.out[owner]
	if l.full() {
		p.dropped++
		return
	}
	if p.holder != nil {
		if token, ok := p.holder.Hold(i); ok {
			p.send(l, d, token, owner)
			return
		}
	}
	p.copyTo(l, d, owner)
}

func (p *Port) copyTo(l *lane, d *dispatcher.Datagram, owner int) {
	payload, token, ok := p.copies.of(d.Payload)
	if !ok {
		p.dropped++
		return
	}
	copied := *d
	copied.Payload = payload
	p.send(l, &copied, token, owner)
}

func (p *Port) send(l *lane, d *dispatcher.Datagram, token uint64, owner int) {
	l.send(d, token)
	p.handed++
	p.roused |= 1 << owner
}

// Wait does not wait while another dispatcher has something for us.
func (p *Port) Wait(timeout time.Duration, wake int) error {
	for _, l := range p.in {
		if l != nil && l.waiting() {
			return nil
		}
	}
	return p.Port.Wait(timeout, wake)
}

// Stats are the port's, with what was handed over.
func (p *Port) Stats() dispatcher.PortStats {
	s := p.Port.Stats()
	s.HandedOver, s.HandoverDropped = p.handed, p.dropped
	return s
}

// SendRefused is the port's: see [dispatcher.SendRefused].
func (p *Port) SendRefused() uint64 { return dispatcher.SendRefused(p.Port) }

// Audit is the port's, if it has one: it checks that every frame has exactly one owner.
func (p *Port) Audit() error {
	if port, ok := p.Port.(interface{ Audit() error }); ok {
		return port.Audit()
	}
	return nil
}

// Close says that the dispatcher is done. The last one of the group closes all their ports: until then, the others may read packets of this one.
func (p *Port) Close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	p.Port = shut{Port: p.Port, stats: p.Port.Stats()}
	return p.group.leave()
}
