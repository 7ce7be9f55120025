package capture

import (
	"errors"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/capture/pcapng"
	"github.com/stillwater-rpc/stillwater/wire"
)

// countersEvery is how often the port's counters are read, for which it may have to ask the kernel.
const countersEvery = 100 * time.Millisecond

// port is a port with a tap. It belongs to whoever owns the port.
type port struct {
	dispatcher.Port
	tap       *Tap
	local     wire.Addr
	wallAhead int64 // of CLOCK_REALTIME before CLOCK_MONOTONIC, as it was at the start: the file's stamps never jump
	snap      int

	packet  pcapng.Packet // at hand
	block   []byte        // of it, under construction
	comment [commentMax]byte

	countersAt clock.Time // when the counters are read next
	lost       uint64     // at reception, of which the file knows
	refused    uint64     // sent and refused, of which the file knows
	gap        gap
}

// Receive takes packets from the port, and notes them.
func (p *port) Receive(now clock.Time, batch []dispatcher.Datagram) int {
	n := p.Port.Receive(now, batch)
	for i := range batch[:n] {
		d := &batch[i]
		if p.begin(d.Arrival, &d.From, &p.local, d.Payload, d.From.IsIPv4()) {
			p.end(pcapng.Inbound, false)
		}
	}
	if now >= p.countersAt {
		p.countersAt = now.Add(countersEvery)
		p.readCounters(now)
	}
	return n
}

// Send hands a packet to the port, and notes it with what became of it. The port owns the buffer from then on, so it is copied before.
func (p *port) Send(b dispatcher.Buffer, to wire.Addr) {
	noted := p.begin(clock.Now(), &p.local, &to, b.Bytes, to.IsIPv4())
	before := dispatcher.SendRefused(p.Port)
	p.Port.Send(b, to)
	refused := dispatcher.SendRefused(p.Port) - before
	p.refused += refused
	if noted {
		p.end(pcapng.Outbound, refused > 0)
	}
}

// Kick transmits, and notes how many packets were refused then.
func (p *port) Kick() {
	before := dispatcher.SendRefused(p.Port)
	p.Port.Kick()
	refused := dispatcher.SendRefused(p.Port) - before
	p.refused += refused
	p.gap.refused += refused
}

// begin starts the block of a packet, if there is still somewhere to write it.
func (p *port) begin(at clock.Time, from, to *wire.Addr, payload []byte, ipv4 bool) bool {
	if p.tap.deaf.Load() {
		p.tap.missed.Add(1)
		return false
	}
	block := pcapng.BeginPacket(p.block)
	start := len(block)
	block = appendHeaders(block, from, to, payload, ipv4)
	headers := len(block) - start
	p.packet = pcapng.Packet{Time: int64(at) + p.wallAhead, Length: headers + len(payload)}
	p.block = append(block, payload[:min(len(payload), p.snap-headers)]...)
	return true
}

// end completes the block, with what there is to say of the packet, and puts it on the ring.
func (p *port) end(d pcapng.Direction, refused bool) {
	p.packet.Direction, p.packet.Dropped = d, p.gap.missed+p.gap.lost
	p.packet.Comment = p.gap.remark(p.comment[:0], refused)
	p.block = p.packet.Finish(p.block)
	if !p.tap.put(p.block) {
		p.gap.missed++
		p.tap.missed.Add(1)
		return
	}
	p.tap.captured.Add(1)
	p.gap = gap{}
}

// readCounters notes what was lost at reception since the last time, and what the kernel refused to send without saying so at once.
func (p *port) readCounters(now clock.Time) {
	s := p.Port.Stats()
	p.tap.counters.set(&s)
	if s.SendDropped > p.refused {
		p.gap.refused += s.SendDropped - p.refused
		p.refused = s.SendDropped
	}
	if s.ReceiveDropped <= p.lost || p.tap.deaf.Load() {
		return
	}
	lost := s.ReceiveDropped - p.lost
	b := pcapng.Statistics{
		Time: int64(now) + p.wallAhead, Received: s.Received + s.ReceiveDropped, Dropped: s.ReceiveDropped, Delivered: s.Received,
		Comment: count(p.comment[:0], "lost at reception since the last statistics (rings full, malformed, or not for this port): ", lost),
	}
	if p.block = b.Append(p.block[:0]); p.tap.put(p.block) {
		p.lost = s.ReceiveDropped
		p.gap.lost += lost
	} // else there is no room: the next time, with what is lost until then
}

// Stats are the port's own, and the capture's.
func (p *port) Stats() dispatcher.PortStats {
	s, mine := p.Port.Stats(), p.tap.Stats()
	s.Captured, s.CaptureMissed = mine.Captured, mine.Missed
	return s
}

// SendRefused is the port's own: see [dispatcher.SendRefused].
func (p *port) SendRefused() uint64 { return dispatcher.SendRefused(p.Port) }

// Close closes the port and completes the file.
func (p *port) Close() error {
	p.readCounters(clock.Now())
	return errors.Join(p.Port.Close(), p.tap.Close())
}
