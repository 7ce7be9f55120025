package session

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// holdMax is how long a peer's stamp may be held and still be echoed: beyond it, the 32-bit nanosecond clocks say nothing
// (they wrap every 4.29 s) and the round trip is not worth knowing.
const holdMax = time.Second

// Conn is one connection as one of its peers sees it.
type Conn struct {
	Peer   wire.Addr         // where the peer is; packets from elsewhere are refused
	Local  wire.ConnectionID // chosen by us: what the peer writes into its packets
	Remote wire.ConnectionID // chosen by the peer; zero while a dialed connection is not accepted
	Dialed bool              // we opened it, so we are the client of its sessions
	Heard  bool              // an accepted one: the peer has used the id that we chose

	Token    wire.Token // proves our address at next contact
	HasToken bool

	RTT       RTT
	LastHeard clock.Time

	sent    wire.PacketNumber // the next to give
	newest  wire.PacketNumber // the highest received, plus one
	stamp   uint32            // the newest stamp received
	stampAt clock.Time        // when it arrived; zero = none yet

	index    uint32
	sessions uint32            // head of its list in Peers
	count    int               // of that list
	ended    wire.PacketNumber // packets below it cannot register a session: see Peers.Stale
}

// Index is the connection's place in its table, the same for as long as it lives.
func (c *Conn) Index() uint32 { return c.index }

// Established reports whether the peer's id is known.
func (c *Conn) Established() bool { return c.Remote != 0 }

// Sessions is the number of sessions that the peer has registered on the connection.
func (c *Conn) Sessions() int { return c.count }

// Received takes note of a packet that arrived at the given instant, and reports whether it is the newest so far, and a round trip if
// the packet says one. That is measured against the arrival stamp, so that it holds no queueing at either end.
func (c *Conn) Received(arrival clock.Time, h wire.Header) (newer bool, rtt time.Duration) {
	c.LastHeard = arrival
	if h.Echo != 0 {
		if sample := time.Duration(uint32(arrival) - h.Echo); sample < holdMax {
			rtt = sample
			c.RTT.Sample(sample)
		}
	}
	if h.Number < c.newest {
		return false, rtt
	}
	c.newest = h.Number + 1
	c.stamp, c.stampAt = h.Stamp, arrival
	return true, rtt
}

// Header returns the header of the next packet to the peer, transmitted now.
func (c *Conn) Header(now clock.Time) wire.Header {
	h := wire.Header{Connection: c.Remote, Number: c.sent, Stamp: uint32(now)}
	c.sent++
	if hold := now.Sub(c.stampAt); c.stampAt != 0 && hold < holdMax {
		// Zero means "no echo"; the one stamp in four billion that comes out as zero is off by a nanosecond.
		h.Echo = max(c.stamp+uint32(hold), 1)
	}
	return h
}

// Reset makes a dialed connection whose peer is gone ready to be opened anew under another id.
func (c *Conn) Reset(local wire.ConnectionID) {
	*c = Conn{
		Peer: c.Peer, Local: local, Dialed: c.Dialed, Token: c.Token, HasToken: c.HasToken,
		LastHeard: c.LastHeard, index: c.index,
	}
}
