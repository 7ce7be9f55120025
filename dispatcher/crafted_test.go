package dispatcher

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/wire"
)

// peer is an endpoint that is not ours: it says what a test tells it to, true or not, and keeps what it hears.
type peer struct {
	w             *network
	addr          wire.Addr
	to            *node
	local, remote wire.ConnectionID
	number        wire.PacketNumber
	heard         []wire.Message
	headers       []wire.Header
}

// peer adds a crafted endpoint that talks to one of ours.
func (w *network) peer(last byte, to *node) *peer {
	p := &peer{w: w, addr: wire.Addr{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: last}, Port: 7700}, to: to, local: 0x77<<24 | 5}
	w.peers[p.addr] = p
	return p
}

func (p *peer) receive(data []byte) {
	packet, err := wire.ParsePacket(data)
	if err != nil {
		p.w.t.Fatalf("a packet of ours does not parse: %v", err)
	}
	p.headers = append(p.headers, packet.Header)
	for rest := packet.Messages; len(rest) > 0; {
		m, tail, err := wire.NextMessage(rest)
		if err != nil {
			p.w.t.Fatalf("a message of ours does not parse: %v", err)
		}
		p.heard, rest = append(p.heard, m), tail
	}
}

// packet builds a packet with the next packet number.
func (p *peer) packet(flags wire.PacketFlags, id wire.ConnectionID, messages ...appender) []byte {
	b := wire.BeginPacket(make([]byte, 0, 4096))
	for _, m := range messages {
		b = m.Append(b)
	}
	b = wire.FinishPacket(b, wire.Header{Flags: flags, Connection: id, Number: p.number, Stamp: uint32(p.w.now)}, 0)
	p.number++
	return b
}

// deliver hands the bytes to the other end at once.
func (p *peer) deliver(data []byte) {
	p.to.inbox = append(p.to.inbox, Datagram{Payload: append([]byte(nil), data...), From: p.addr, Arrival: p.w.now})
	p.to.turn()
}

// say sends messages on the connection, and returns the packet.
func (p *peer) say(messages ...appender) []byte {
	data := p.packet(0, p.remote, messages...)
	p.deliver(data)
	return data
}

// connect opens the connection to a server that trusts its network.
func (p *peer) connect() *peer {
	p.deliver(p.packet(wire.PacketHandshake, 0, &wire.Open{Connection: p.local}))
	p.settle()
	accept, err := wire.ParseAccept(p.last(wire.TypeAccept).Raw)
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.remote = accept.Connection
	return p
}

// settle lets what is under way arrive.
func (p *peer) settle() { p.w.run(p.w.now.Add(p.w.delay)) }

func (p *peer) all(t wire.Type) (found []wire.Message) {
	for _, m := range p.heard {
		if m.Type == t {
			found = append(found, m)
		}
	}
	return found
}

func (p *peer) last(t wire.Type) wire.Message {
	all := p.all(t)
	if len(all) == 0 {
		p.w.t.Helper()
		p.w.t.Fatalf("heard no %v", t)
	}
	return all[len(all)-1]
}

// request is a request of a crafted session.
func (p *peer) request(session wire.SessionID, n wire.Number, s wire.Slot, mark uint64) *wire.Request {
	return &wire.Request{
		Session: session, Number: n, Next: n + 1, Slot: s, Method: wire.MethodOf("work"), Payload: marked(mark),
	}
}

// register registers a session by a request with the mark, and returns the server's handle and the packet.
func (p *peer) register(handle wire.SessionID, mark uint64) (wire.SessionID, []byte) {
	r := p.request(handle, 0, 0, mark)
	r.Register = true
	data := p.say(r)
	p.settle()
	m, err := wire.ParseRegistered(p.last(wire.TypeRegistered).Raw)
	if err != nil {
		p.w.t.Fatal(err)
	}
	return m.ServerSession, data
}

// trusting is a server that lets anybody in, with some workers, and a crafted client of it.
func trusting(t testing.TB, workers int, cfg Config) (*network, *node, *peer) {
	w := newNetwork(t, 1)
	cfg.TrustedNetwork = true
	server := w.node(1, cfg)
	server.workers = workers
	server.serve(10e3, 80e3, nil)
	return w, server, w.peer(9, server).connect()
}

// audit fails the test when the books of a node do not balance.
func (n *node) audit() {
	n.w.t.Helper()
	if err := n.d.Audit(); err != nil {
		n.w.t.Error(err)
	}
}
