package sim

import (
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Network says what happens to packets on their way. Probabilities are between 0 and 1, of each packet.
type Network struct {
	OneWay    time.Duration // half of the round trip
	Jitter    time.Duration // added, evenly distributed between 0 and this: packets overtake each other by it
	Loss      float64
	Duplicate float64
	Reorder   float64       // held back, by up to ReorderBy
	ReorderBy time.Duration // 0 = ten times OneWay
	Corrupt   float64       // a bit is flipped between the ends of the datagram; its checksum finds out
	// Drop is asked about each packet, if it is set: for faults that hit one kind of message.
	Drop func(from, to wire.Addr, payload []byte) bool
}

// network is the fabric between the hosts.
type network struct {
	Network
	rng *rand.Rand
	cut map[[2]wire.Addr]bool // by direction
	// Counters of packets, for the books of the world.
	sent, lost, doubled, damaged uint64
	made                         int // packet objects
	raw                          []byte
}

// packet is one UDP payload under way or waiting at a host. Its buffer is lent by the sender's port and given back by the receiver's.
type packet struct {
	from    wire.Addr
	to      *Host
	buf     []byte
	arrival clock.Time // at the host's NIC
	next    *packet    // in a queue, or among the spare ones
}

// payloadMax is the largest UDP payload: Ethernet's 1500 bytes over IPv4.
const payloadMax = 1472

// packet lends a packet.
func (w *World) packet() *packet {
	p := w.spare
	if p == nil {
		w.net.made++
		return &packet{buf: make([]byte, 0, payloadMax)}
	}
	w.spare, p.next = p.next, nil
	p.buf = p.buf[:0]
	return p
}

func (w *World) free(p *packet) {
	p.to = nil
	p.next, w.spare = w.spare, p
}

// SetNetwork changes what happens to packets from here on.
func (w *World) SetNetwork(n Network) { w.net.Network = n }

// Cut stops all packets from one host to another, in that direction; Mend lets them pass again.
func (w *World) Cut(from, to *Host) { w.net.cut[[2]wire.Addr{from.addr, to.addr}] = true }

// Mend ends what Cut began.
func (w *World) Mend(from, to *Host) { delete(w.net.cut, [2]wire.Addr{from.addr, to.addr}) }

// send puts a packet on its way to p.to; nil = nobody is there. It owns the packet.
func (w *World) send(from wire.Addr, p *packet) {
	n := &w.net
	n.sent++
	p.from = from
	if p.to == nil || n.loses(from, p.to.addr, p.buf) {
		n.lost++
		w.free(p)
		return
	}
	if n.Duplicate > 0 && n.rng.Float64() < n.Duplicate {
		n.doubled++
		twin := w.packet()
		twin.from, twin.to, twin.buf = p.from, p.to, append(twin.buf, p.buf...)
		w.inOrder(w.now.Add(n.delay()), twin)
	}
	w.inOrder(w.now.Add(n.delay()), p)
}

func (n *network) loses(from, to wire.Addr, payload []byte) bool {
	switch {
	case len(n.cut) > 0 && n.cut[[2]wire.Addr{from, to}]:
	case n.Loss > 0 && n.rng.Float64() < n.Loss:
	case n.Drop != nil && n.Drop(from, to, payload):
	case n.Corrupt > 0 && n.rng.Float64() < n.Corrupt && n.damage(from, to, payload):
	default:
		return false
	}
	return true
}

func (n *network) delay() time.Duration {
	d := n.OneWay
	if n.Jitter > 0 {
		d += time.Duration(n.rng.Int64N(int64(n.Jitter)))
	}
	if n.Reorder > 0 && n.rng.Float64() < n.Reorder {
		by := n.ReorderBy
		if by == 0 {
			by = 10 * n.OneWay
		}
		d += time.Duration(n.rng.Int64N(int64(max(by, 1))))
	}
	return d
}

// damage flips one bit of the whole datagram and lets the production code look at it, as a port does. It reports whether the packet is lost
// by that, and puts what is left of it into payload otherwise.
func (n *network) damage(from, to wire.Addr, payload []byte) (lost bool) {
	n.damaged++
	n.raw = append(n.raw[:0], make([]byte, wire.FrameHeaderBytes)...)
	n.raw = append(n.raw, payload...)
	wire.EncodeUDPv4(n.raw, &wire.Datagram{Source: from, Destination: to})
	bit := n.rng.IntN(8 * len(n.raw))
	n.raw[bit/8] ^= 1 << (bit % 8)
	d, err := wire.ParseUDPv4(n.raw)
	if err != nil || d.Destination != to || d.Source != from {
		return true
	}
	copy(payload, d.Payload)
	return false
}

// act is the packet's arrival.
func (p *packet) act(w *World) {
	p.arrival = w.now
	p.to.arrive(p)
}
