package dispatcher

import (
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// outgoing is the packet being built for one connection. Messages of several sessions share it; it leaves when it is
// full or when the turn ends, never later.
type outgoing struct {
	buffer    Buffer
	open      bool
	handshake bool // it opens the connection: sent under connection id 0
	listed    bool // on Dispatcher.dirty
}

// room returns the packet being built for the connection, with space for n more bytes of messages, or nil when
// the port has no buffer: the message is lost like a packet is, and repaired the same way.
func (d *Dispatcher) room(c *session.Conn, n int) *outgoing {
	o := &d.out[c.Index()]
	if o.open && (d.cfg.NoPacking || wire.Room(o.buffer.Bytes) < n) {
		d.finish(c, o)
	}
	if o.open {
		return o
	}
	buffer, ok := d.port.Lend()
	if !ok {
		d.stats.NoBuffer++
		return nil
	}
	buffer.Bytes = wire.BeginPacket(buffer.Bytes)
	o.buffer, o.open, o.handshake = buffer, true, c.Dialed && !c.Established()
	d.introduce(c, o, n)
	if !o.listed {
		o.listed = true
		d.dirty = append(d.dirty, c)
	}
	if wire.Room(o.buffer.Bytes) < n {
		d.stats.NoBuffer++ // larger than a packet: callers check MessageMax first
		return nil
	}
	return o
}

// introduce begins a packet with what the peer must know before it can make anything of the rest, as long as it may not know it: the client's open, and the
// server's acceptance, which also tells its answers from those of an earlier boot. An answer so large that the acceptance has no room beside it goes
// alone; a client that does not expect it asks again.
func (d *Dispatcher) introduce(c *session.Conn, o *outgoing, n int) {
	switch {
	case o.handshake:
		open := wire.Open{Connection: c.Local, HasToken: c.HasToken, Token: c.Token}
		o.buffer.Bytes = open.Append(o.buffer.Bytes)
	case !c.Dialed && !c.Heard:
		if accept := acceptOf(c); wire.Room(o.buffer.Bytes) >= accept.Length()+n {
			o.buffer.Bytes = accept.Append(o.buffer.Bytes)
		}
	}
}

// finish hands the packet under construction to the port.
func (d *Dispatcher) finish(c *session.Conn, o *outgoing) {
	h := c.Header(d.now)
	if o.handshake {
		h.Flags, h.Connection = wire.PacketHandshake, 0
	}
	o.buffer.Bytes = wire.FinishPacket(o.buffer.Bytes, h, 0)
	d.port.Send(o.buffer, c.Peer)
	*o = outgoing{listed: o.listed}
	d.stats.PacketsSent++
}

// Unsent is the number of replies that wait in packets under construction, since when, and the instant by which the first answer must
// leave; zero when none waits.
func (d *Dispatcher) Unsent() (count int, since, by clock.Time) {
	return d.unsent, d.unsentSince, d.unsentBy
}

// Flush finishes all packets under construction and kicks the port. The stamp of each packet is now.
func (d *Dispatcher) Flush(now clock.Time) {
	d.now = now
	for i, c := range d.dirty {
		d.dirty[i] = nil
		if d.conns.At(c.Index()) != c {
			continue // removed since; its place may be another's by now
		}
		o := &d.out[c.Index()]
		o.listed = false
		if o.open {
			d.finish(c, o)
		}
	}
	if len(d.dirty) > 0 || d.port.Outstanding() > 0 || d.raw > 0 {
		d.port.Kick()
	}
	d.dirty = d.dirty[:0]
	d.unsent, d.raw, d.unsentBy = 0, 0, 0
}

// abandon drops the packet under construction of a connection that is removed.
func (d *Dispatcher) abandon(c *session.Conn) {
	o := &d.out[c.Index()]
	if o.open {
		d.port.Drop(o.buffer)
	}
	*o = outgoing{}
}

// answered counts a reply in a packet under construction. It may be held back for a while, but not so long that its caller gives
// up; zero = no deadline.
func (d *Dispatcher) answered(deadline clock.Time) {
	d.told()
	d.unsent++
	if deadline != 0 {
		d.unsentBy = min(d.unsentBy, deadline.Add(-d.rtt.Smoothed()))
	}
}

// told notes that something else than a reply waits in a packet under construction. It does not count for a kick: what is small goes
// along with the replies.
func (d *Dispatcher) told() {
	if d.unsentBy == 0 {
		d.unsentSince, d.unsentBy = d.now, d.now.Add(answerHoldMax)
	}
}

// stateless sends one message to a peer without a connection, in a packet of its own, if it is no larger than what it answers.
func (d *Dispatcher) stateless(to wire.Addr, connection wire.ConnectionID, m appender, answers int) {
	if wire.OverheadBytes+m.Length() > answers || !d.small.take(d.now) {
		d.stats.SmallAnswersHeldBack++
		return
	}
	buffer, ok := d.port.Lend()
	if !ok {
		d.stats.NoBuffer++
		return
	}
	buffer.Bytes = m.Append(wire.BeginPacket(buffer.Bytes))
	buffer.Bytes = wire.FinishPacket(buffer.Bytes, wire.Header{Connection: connection, Stamp: uint32(d.now)}, 0)
	d.port.Send(buffer, to)
	d.raw++
	d.stats.PacketsSent++
}

// appender is a message.
type appender interface {
	Length() int
	Append(b []byte) []byte
}

// rate bounds the small answers that strangers can provoke: a token bucket.
type rate struct {
	tokens int
	last   clock.Time
}

func (r *rate) take(now clock.Time) bool {
	const interval = 1_000_000_000 / smallAnswerRate
	if earned := int(now.Sub(r.last) / interval); earned > 0 {
		r.tokens = min(r.tokens+earned, smallAnswerBurst)
		r.last = now
	}
	if r.tokens == 0 {
		return false
	}
	r.tokens--
	return true
}
