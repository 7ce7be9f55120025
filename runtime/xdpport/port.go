//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bpf"
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

// Port is a dispatcher.Port over one XSK. It has one user at a time. Once closed, it receives nothing and lends nothing.
type Port struct {
	queue   *xsk.Queue // nil once closed
	program *bpf.Program
	hops    *neighbour.Table
	hop     neighbour.Cache
	held    *net.UDPConn
	local   wire.Addr
	mode    string

	payloadMax int
	batch      [batchMax]frame.Desc
	taken      int // of the batch: frames that the last Receive lent out
	submitted  int // since the last kick
	stats      dispatcher.PortStats
	kickErrors uint64
}

var _ dispatcher.Port = (*Port)(nil)

// Receive takes packets off the RX ring, after giving back the frames of the previous call.
func (p *Port) Receive(now clock.Time, batch []dispatcher.Datagram) int {
	if p.queue == nil {
		return 0
	}
	if p.taken > 0 {
		p.queue.Release(p.batch[:p.taken])
	}
	p.taken = p.queue.Receive(p.batch[:min(len(batch), batchMax)])
	if p.taken == 0 {
		p.stats.EmptyPolls++
		return 0
	}
	count := 0
	for _, desc := range p.batch[:p.taken] {
		d, err := wire.ParseUDPv4(p.queue.Bytes(desc))
		if err != nil || d.Destination != p.local {
			p.stats.ReceiveDropped++
			continue
		}
		arrival := clock.Time(p.queue.Stamp(desc))
		if age := now.Sub(arrival); age > stampMax || age < -stampMax {
			arrival = now
		}
		batch[count] = dispatcher.Datagram{Payload: d.Payload, From: d.Source, Arrival: arrival}
		count++
	}
	p.stats.Received += uint64(count)
	return count
}

// Lend lends the payload part of a frame.
func (p *Port) Lend() (dispatcher.Buffer, bool) {
	if p.queue == nil {
		return dispatcher.Buffer{}, false
	}
	addr, packet, ok := p.queue.Lend()
	if !ok {
		p.queue.Reclaim()
		if addr, packet, ok = p.queue.Lend(); !ok {
			p.stats.NoBuffer++
			return dispatcher.Buffer{}, false
		}
	}
	const start = wire.FrameHeaderBytes
	return dispatcher.Buffer{Bytes: packet[start : start : start+p.payloadMax], Token: uint64(addr)}, true
}

// Send writes the headers before the payload and puts the frame on the TX ring. A packet without a known next hop is dropped, while
// the kernel is made to look for it.
func (p *Port) Send(b dispatcher.Buffer, to wire.Addr) {
	addr := frame.Addr(b.Token)
	hop, ok := p.hop.Lookup(to.IP)
	if !ok {
		p.hops.Resolve(to.IP)
		p.stats.SendDropped++
		p.queue.Drop(addr)
		return
	}
	desc := frame.Desc{Addr: addr, Len: uint32(wire.FrameHeaderBytes + len(b.Bytes))}
	wire.EncodeUDPv4(p.queue.Bytes(desc), &wire.Datagram{
		SourceMAC: hop.SrcMAC, DestinationMAC: hop.DstMAC, Source: p.local, Destination: to,
	})
	if !p.queue.Submit(desc) {
		p.stats.SendDropped++
		return
	}
	p.stats.Sent++
	p.submitted++
}

// Drop gives a lent frame back.
func (p *Port) Drop(b dispatcher.Buffer) { p.queue.Drop(frame.Addr(b.Token)) }

// Kick has the kernel send what is on the TX ring. A link that is down keeps the packets until it is up; a device that is gone
// loses them: the sessions repair both.
func (p *Port) Kick() {
	if p.queue == nil {
		return
	}
	if p.submitted > 0 {
		p.stats.Kicks++
		p.submitted = 0
	}
	if err := p.queue.Kick(); err != nil {
		p.kickErrors++
	}
}

// Outstanding is the number of frames that the kernel still has to send.
func (p *Port) Outstanding() int {
	if p.queue == nil {
		return 0
	}
	return p.queue.Outstanding()
}

// Wait blocks in poll(2). The signals of Go's scheduler interrupt it, which is as good as a time-out.
func (p *Port) Wait(timeout time.Duration, wake int) error {
	fds := [2]unix.PollFd{{Fd: int32(p.queue.FD()), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
	ts := unix.NsecToTimespec(int64(timeout))
	if _, err := unix.Ppoll(fds[:], &ts, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("waiting for packets: %w", err)
	}
	return nil
}

// LocalAddr is the address that the program steers to us.
func (p *Port) LocalAddr() wire.Addr { return p.local }

// PayloadMax is what fits into a packet of the interface's MTU.
func (p *Port) PayloadMax() int { return p.payloadMax }

// Name is "xdp".
func (*Port) Name() string { return "xdp" }

// Mode says how packets travel: interface, queue, native or generic XDP, copy or zero-copy.
func (p *Port) Mode() string { return p.mode }

// Stats reads our counters and the kernel's.
func (p *Port) Stats() dispatcher.PortStats {
	s := p.stats
	if p.queue == nil {
		return s
	}
	if kernel, err := p.queue.Statistics(); err == nil {
		s.ReceiveDropped += kernel.RxDropped + kernel.RxRingFull + kernel.ReceiveInvalid
		s.SendDropped += kernel.SendDropped
	}
	return s
}

// Audit checks that every frame has exactly one owner.
func (p *Port) Audit() error {
	if p.queue == nil {
		return nil
	}
	return p.queue.Audit()
}

// Verdicts are the program's counters by reason.
func (p *Port) Verdicts() ([]bpf.VerdictCount, error) {
	if p.program == nil {
		return nil, net.ErrClosed
	}
	return p.program.Verdicts()
}
