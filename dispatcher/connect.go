package dispatcher

import (
	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// handshake handles a packet that opens a connection, and returns the connection if it is accepted: the messages
// behind the open are handled like any others. No state is made for a peer that has not proved its address.
func (d *Dispatcher) handshake(in *Datagram, messages []byte) *session.Conn {
	if d.server.ledger == nil {
		d.stats.NotServing++
		return nil
	}
	m, _, err := wire.NextMessage(messages)
	if err != nil || m.Type != wire.TypeOpen {
		d.stats.Malformed++
		return nil
	}
	open, err := wire.ParseOpen(m.Raw)
	if err != nil {
		d.stats.Malformed++
		return nil
	}
	if open.Connection == 0 {
		d.stats.Malformed++
		return nil
	}
	if !d.proved(in, &open) {
		retry := &wire.Retry{Token: d.minter.Mint(d.now, in.From)}
		d.stateless(in.From, open.Connection, retry, len(in.Payload))
		d.stats.Retries++
		return nil
	}
	c, fresh, err := d.conns.Accept(in.From, open.Connection, d.now)
	if err != nil {
		// One that was silent for longer than a packet lives has no packet under way that would find it missing.
		if silent := d.conns.Silent(in.From, d.now.Add(-d.cfg.PacketLifetime)); silent != nil {
			d.forget(silent)
			c, fresh, err = d.conns.Accept(in.From, open.Connection, d.now)
		}
	}
	if err != nil {
		d.stats.TooMany++
		return nil
	}
	d.place(c)
	if fresh {
		c.Token, c.HasToken = d.minter.Mint(d.now, in.From), true
	}
	if accept := acceptOf(c); !c.Heard {
		d.room(c, 0) // which begins with it
	} else if o := d.room(c, accept.Length()); o != nil {
		o.buffer.Bytes = accept.Append(o.buffer.Bytes)
	}
	return c
}

func acceptOf(c *session.Conn) wire.Accept { return wire.Accept{Connection: c.Local, Token: c.Token} }

// proved reports whether the peer receives at its address, or need not prove it. A token that is there must be good even on a
// trusted network: a bad one may be of an earlier boot, and the requests behind it may have run there.
func (d *Dispatcher) proved(in *Datagram, open *wire.Open) bool {
	if !open.HasToken {
		return d.cfg.TrustedNetwork
	}
	return d.minter.Verify(d.now, in.From, open.Token)
}

// place makes room for what the dispatcher keeps for each connection.
func (d *Dispatcher) place(c *session.Conn) {
	for int(c.Index()) >= len(d.out) {
		d.out = append(d.out, outgoing{})
	}
}

// unknown answers a packet for a connection that is not ours or no longer. Whoever sent it must open anew.
func (d *Dispatcher) unknown(in *Datagram, p wire.Packet) {
	d.stats.UnknownConnection++
	d.stateless(in.From, 0, &wire.Gone{Connection: p.Connection}, len(in.Payload))
}

// gone handles a packet without a connection id: the peer says that it does not know one of ours.
func (d *Dispatcher) gone(in *Datagram, messages []byte) {
	m, _, err := wire.NextMessage(messages)
	if err != nil || m.Type != wire.TypeGone {
		d.stats.Malformed++
		return
	}
	g, err := wire.ParseGone(m.Raw)
	if err != nil {
		d.stats.Malformed++
		return
	}
	if c := d.caller.conns[in.From]; c != nil && c.Established() && c.Remote == g.Connection {
		d.lost(c)
	}
}

// forget removes an accepted connection with all its sessions.
func (d *Dispatcher) forget(c *session.Conn) {
	for place := d.server.peers.First(c); place != 0; place = d.server.peers.First(c) {
		d.endRequests(place)
		d.server.ledger.Deregister(d.now, credit.Session(place))
		d.server.peers.Remove(place, c)
	}
	d.abandon(c)
	d.conns.Remove(c)
}
