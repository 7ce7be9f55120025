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
	if !d.cfg.TrustedNetwork && !(open.HasToken && d.minter.Verify(d.now, in.From, open.Token)) {
		retry := &wire.Retry{Token: d.minter.Mint(d.now, in.From)}
		d.stateless(in.From, open.Connection, retry, len(in.Payload))
		d.stats.Retries++
		return nil
	}
	c, fresh, err := d.conns.Accept(in.From, open.Connection, d.now)
	if err != nil {
		d.stats.TooMany++
		return nil
	}
	d.place(c)
	if fresh {
		c.Token, c.HasToken = d.minter.Mint(d.now, in.From), true
	}
	accept := wire.Accept{Connection: c.Local, Token: c.Token}
	if o := d.room(c, accept.Length()); o != nil {
		o.buffer.Bytes = accept.Append(o.buffer.Bytes)
	}
	return c
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
		d.lost(c.Conn)
	}
}

// forget removes an accepted connection with all its sessions.
func (d *Dispatcher) forget(c *session.Conn) {
	for place := d.server.peers.First(c); place != 0; place = d.server.peers.First(c) {
		d.deregister(c, credit.Session(place))
	}
	d.abandon(c)
	d.conns.Remove(c)
}
