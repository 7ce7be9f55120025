package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Datagram is one received UDP payload.
type Datagram struct {
	Payload []byte     // valid until the port's next Receive
	From    wire.Addr  // the sender, as the packet says it
	Arrival clock.Time // when it arrived, as near to the wire as the port knows
	// Since is when it began to wait for a dispatcher that works, if another one received it: what it waited for that one's return is no load. Zero = at its Arrival.
	Since clock.Time
}

// waits is since when it waits.
func (d *Datagram) waits() clock.Time {
	if d.Since != 0 {
		return d.Since
	}
	return d.Arrival
}

// Buffer is room for one UDP payload, lent by a port. It is used once: for Send or for Drop.
type Buffer struct {
	Bytes []byte // length 0; its capacity is the largest payload the port can carry
	Token uint64 // the port's own
}

// Port carries datagrams. It is owned by whoever holds the loop's baton; nothing in it is safe for concurrent use.
// The interface stands at the batch boundary: an indirect call per batch or per packet, never per message.
type Port interface {
	// Receive fills in up to len(batch) datagrams and returns their number. It never blocks.
	Receive(now clock.Time, batch []Datagram) int
	// Lend returns a buffer to build a packet in, and false when none is free.
	Lend() (Buffer, bool)
	// Send queues b.Bytes for transmission to the given address. The port owns the buffer from here on.
	Send(b Buffer, to wire.Addr)
	// Drop gives a lent buffer back unsent.
	Drop(b Buffer)
	// Kick transmits what was queued. It never blocks; what the kernel refuses is lost and counted.
	Kick()
	// Outstanding is the number of packets that the kernel still holds: while it is above zero, Kick must be called again.
	Outstanding() int
	// Wait blocks until a packet arrives, the descriptor wake is readable, or the timeout is over.
	Wait(timeout time.Duration, wake int) error
	// LocalAddr is the address that peers send to, the first if there are several.
	LocalAddr() wire.Addr
	// PayloadMax is the largest payload in bytes.
	PayloadMax() int
	// Name says what kind of port this is: "xdp" or "udp", or the name of a middleware around one.
	Name() string
	// Stats are the port's counters since it was opened.
	Stats() PortStats
	// Close frees everything. The buffers still lent become invalid.
	Close() error
}

// PortStats counts packets since the port was opened. Every packet that does not reach the dispatcher or the wire is in exactly one of the drop counters.
type PortStats struct {
	Received       uint64 `json:"received_count"`
	Sent           uint64 `json:"sent_count"`
	ReceiveDropped uint64 `json:"receive_dropped_count"` // lost before or at reception: rings full, malformed, not ours
	SendDropped    uint64 `json:"send_dropped_count"`    // refused by the kernel, no route, too many for a neighbour that is not known
	NoBuffer       uint64 `json:"no_buffer_count"`       // Lend found no free buffer
	Kicks          uint64 `json:"kick_count"`            // system calls made to transmit
	EmptyPolls     uint64 `json:"empty_poll_count"`
	PassedOn       uint64 `json:"received_through_kernel_count"` // of the received: passed on by XDP, and taken from the kernel's socket
	LeftToKernel   uint64 `json:"sent_through_kernel_count"`     // of the sent: by the kernel, as the next hop was not known yet
	// Between several dispatchers, for another of whom a packet was received, or each of several: handed over to it, and dropped because it had not
	// taken what it has already.
	HandedOver      uint64 `json:"handed_over_count"`
	HandoverDropped uint64 `json:"handover_dropped_count"`
	// QueuesUnserved is how many receive queues of the interface have no socket: what arrives there goes through the kernel.
	QueuesUnserved int `json:"unserved_queues"`
	// Of a capture, if there is one: packets in its file or on the way there, and those that did not get there.
	Captured      uint64 `json:"captured_count"`
	CaptureMissed uint64 `json:"capture_missed_count"`
}

// SendRefused is how many packets the port's own Send and Kick have dropped so far. It costs nothing if the port has a method of that name; of others
// it is SendDropped, which they may have to ask the kernel for.
func SendRefused(p Port) uint64 {
	if knows, ok := p.(interface{ SendRefused() uint64 }); ok {
		return knows.SendRefused()
	}
	return p.Stats().SendDropped
}
