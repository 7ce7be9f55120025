//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/neighbour"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// batchMax is how many packets one Receive takes at most.
const batchMax = 64

// stampMax is how old a stamp may be. An older one is what the frame held before the program wrote stamps.
const stampMax = 10 * time.Second

const (
	// slowEvery is how often the kernel's sockets are looked at while they bring nothing: each look is a system call a socket.
	slowEvery = 100 * time.Microsecond
	// slowBatch of each batch is theirs when they have something: neither they nor the rings can keep the other from being served.
	slowBatch = 8
)

// Port is a dispatcher.Port over the XSKs of an interface's queues, which share one UMEM, and the kernel's sockets for what the program passes
// on. An interface has one port, or several that share the queues out among them, one for each dispatcher: then each has a UMEM of its own, and the first has
// the kernel's sockets. A port has one user at a time. Once closed, it receives nothing and lends nothing.
type Port struct {
	*card
	umem   frames    // a *xsk.UMEM, unless the sockets are of another implementation; nil once closed
	own    *xsk.UMEM // the same, if it is one; only then is anything opened anew
	queues queues
	hop    neighbour.Cache
	slow   slowPorts  // hold the UDP port, and serve what XDP passes on
	slowAt clock.Time // when the kernel's sockets are looked at next
	// queuesRoom is how many queues the UMEM was made for.
	queuesRoom int

	batch     [batchMax]frame.Desc
	taken     int    // of the batch: frames that the last Receive lent out
	slowCount int    // datagrams of the last Receive before those of the batch
	held      uint64 // of the batch: a bit for each that was kept
	submitted bool   // since the last kick
	stats     dispatcher.PortStats
}

var _ dispatcher.Port = (*Port)(nil)

// Receive takes packets off the RX rings, after giving back the frames of the previous call, and now and then off the kernel's sockets.
func (p *Port) Receive(now clock.Time, batch []dispatcher.Datagram) int {
	if p.umem == nil {
		return 0
	}
	p.release()
	count := 0
	if now >= p.slowAt {
		count = p.receiveSlow(now, batch[:min(len(batch), slowBatch)])
	}
	p.slowCount = count
	p.taken = p.queues.receive(p.batch[:min(len(batch)-count, batchMax)])
	fast := 0
	for i, desc := range p.batch[:p.taken] {
		d, err := wire.ParseDatagram(p.umem.Bytes(desc))
		if err != nil || !p.local.has(&d.Destination) {
			p.stats.ReceiveDropped++
			continue
		}
		arrival := clock.Time(p.umem.Stamp(desc))
		if age := now.Sub(arrival); age > stampMax || age < -stampMax {
			arrival = now
		}
		batch[count+fast] = dispatcher.Datagram{Payload: d.Payload, From: d.Source, Arrival: arrival}
		if i != fast { // keep both batches beside each other
			p.batch[fast], p.batch[i] = desc, p.batch[fast]
		}
		fast++
	}
	p.stats.Received += uint64(fast)
	if count += fast; count == 0 {
		p.stats.EmptyPolls++
	}
	return count
}

// receiveSlow takes what the kernel's sockets hold. While they bring something, they are looked at every time.
func (p *Port) receiveSlow(now clock.Time, batch []dispatcher.Datagram) int {
	n := p.slow.receive(now, batch)
	if n == 0 {
		p.slowAt = now.Add(slowEvery)
	}
	p.stats.Received += uint64(n)
	p.stats.PassedOn += uint64(n)
	return n
}

// Lend lends the payload part of a frame.
func (p *Port) Lend() (dispatcher.Buffer, bool) {
	if p.umem == nil {
		return dispatcher.Buffer{}, false
	}
	addr, packet, ok := p.umem.Lend()
	if !ok {
		p.queues.reclaim()
		if addr, packet, ok = p.umem.Lend(); !ok {
			p.stats.NoBuffer++
			return dispatcher.Buffer{}, false
		}
	}
	start := p.local.headers()
	return dispatcher.Buffer{Bytes: packet[start : start : start+p.payloadMax], Token: uint64(addr)}, true
}

// Send writes the headers before the payload and puts the frame on a TX ring. A packet without a known next hop is left to the kernel, as far as
// [neighbour.Table.Send] goes; what goes no further, or to a family that the port has no address of, is dropped.
func (p *Port) Send(b dispatcher.Buffer, to wire.Addr) {
	addr := frame.Addr(b.Token)
	source := p.local.from(&to)
	hop, ok := p.hop.Lookup(to.IP)
	if !ok || source == nil {
		p.leave(addr, len(b.Bytes), source, &to)
		return
	}
	desc := p.encode(addr, len(b.Bytes), &wire.Datagram{
		SourceMAC: hop.SrcMAC, DestinationMAC: hop.DstMAC, Source: *source, Destination: to,
	})
	q := p.queues.to(&to)
	if q == nil {
		p.umem.Drop(addr)
	}
	if q == nil || !q.Submit(desc) { // what is refused is dropped with that
		p.stats.SendDropped++
		return
	}
	p.stats.Sent++
	p.submitted = true
}

// leave leaves a packet to the kernel, which may know the next hop already or will resolve it, and gives the frame back. It is the packet that would go
// over AF_XDP, sums and all: the kernel's own would come without one where a device computes it, and over veth nobody does. Without a source it is dropped.
func (p *Port) leave(addr frame.Addr, payload int, source, to *wire.Addr) {
	taken := false
	if source != nil {
		desc := p.encode(addr, payload, &wire.Datagram{Source: *source, Destination: *to})
		taken = p.hops.Send(p.umem.Bytes(desc)[wire.EthernetHeaderBytes:], to.IP)
	}
	p.umem.Drop(addr)
	if !taken {
		p.stats.SendDropped++
		return
	}
	p.stats.Sent++
	p.stats.LeftToKernel++
	p.stats.Kicks++
}

// Drop gives a lent frame back.
func (p *Port) Drop(b dispatcher.Buffer) { p.umem.Drop(frame.Addr(b.Token)) }

// Kick has the kernel send what is on the TX rings. A link that is down keeps the packets until it is up; a device that is gone
// loses them: the sessions repair both.
func (p *Port) Kick() {
	if p.umem == nil {
		return
	}
	if p.submitted {
		p.stats.Kicks++
		p.submitted = false
	}
	p.queues.kick()
}

// Outstanding is the number of frames that the kernel still has to send.
func (p *Port) Outstanding() int {
	if p.umem == nil {
		return 0
	}
	return p.umem.Frames(frame.Kernel)
}

// Wait blocks in poll(2). The signals of Go's scheduler interrupt it, which is as good as a time-out.
func (p *Port) Wait(timeout time.Duration, wake int) error {
	fds := append(p.queues.poll, unix.PollFd{Fd: int32(wake), Events: unix.POLLIN})
	fds = p.slow.poll(fds)
	ts := unix.NsecToTimespec(int64(timeout))
	if _, err := unix.Ppoll(fds, &ts, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("waiting for packets: %w", err)
	}
	p.slowAt = 0
	return nil
}

// Name is "xdp".
func (*Port) Name() string { return "xdp" }

// Stats reads our counters and the kernel's.
func (p *Port) Stats() dispatcher.PortStats {
	if p.umem == nil {
		return p.stats
	}
	s := p.stats
	p.queues.statistics(&s)
	if p == p.ports[0] {
		s.QueuesUnserved = max(p.device.have-p.served(), 0)
	}
	s.ReceiveDropped += p.slow.dropped()
	return s
}

// SendRefused is how many packets Send has dropped: see [dispatcher.SendRefused].
func (p *Port) SendRefused() uint64 { return p.stats.SendDropped }

// Audit checks that every frame has exactly one owner.
func (p *Port) Audit() error {
	if p.umem == nil {
		return nil
	}
	return p.umem.Audit()
}
