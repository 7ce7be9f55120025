package session

import (
	"errors"

	"github.com/stillwater-rpc/stillwater/wire"
)

// ErrHandleInUse says that a place in the slab is taken already.
var ErrHandleInUse = errors.New("session place in use")

// Peer is the server's record of one session: who it belongs to and what may not run again. It holds no pointer.
type Peer struct {
	Handle wire.SessionID // the client's handle: what our answers carry
	Floor  wire.Number    // numbers below it are done or can no longer arrive
	Slots  uint32         // its table of slots, given out by the owner; 0 = none, nothing is live

	conn       uint32 // index of its connection, plus one; 0 = free
	next, prev uint32 // the sessions of one connection
	born       uint32 // low bits of the number of the packet that registered it
	serial     Serial
	generation uint8
}

// Serial tells the sessions apart that had one place after each other: what outlives a session keeps it beside the place.
type Serial uint32

// peersPerChunk keeps growth from copying: a slab of a million sessions is never moved.
const peersPerChunk = 4096

// A handle has 24 bits of index and 8 of generation.
const (
	handleIndexBits = 24
	// PeersMax is what a session handle has room for.
	PeersMax = 1<<handleIndexBits - 1
)

// Peers is the slab of a server's sessions. Its places are those of the credit ledger, which gives them out:
// place 0 is never used.
type Peers struct {
	chunks  []*[peersPerChunk]Peer
	clients map[client]uint32
	serial  Serial // of the last one added
}

// client names a session by its connection and the client's handle: a repeated registration finds it.
type client struct {
	conn   uint32
	handle wire.SessionID
}

// NewPeers returns an empty slab.
func NewPeers() *Peers { return &Peers{clients: make(map[client]uint32)} }

// At returns the record at a place that was added.
func (p *Peers) At(place uint32) *Peer {
	return &p.chunks[place/peersPerChunk][place%peersPerChunk]
}

// Find returns the place of the session that the client calls by its handle, and 0 when there is none.
func (p *Peers) Find(c *Conn, handle wire.SessionID) uint32 {
	return p.clients[client{c.index, handle}]
}

// Add puts a session of the connection at a place. It was registered in the packet with the number at.
func (p *Peers) Add(place uint32, c *Conn, handle wire.SessionID, at wire.PacketNumber) (*Peer, error) {
	for int(place/peersPerChunk) >= len(p.chunks) {
		p.chunks = append(p.chunks, new([peersPerChunk]Peer))
	}
	s := p.At(place)
	if s.conn != 0 {
		return nil, ErrHandleInUse
	}
	p.serial++
	*s = Peer{
		Handle: handle, conn: c.index + 1, next: c.sessions, born: uint32(at), serial: p.serial, generation: s.generation + 1,
	}
	if c.sessions != 0 {
		p.At(c.sessions).prev = place
	}
	c.sessions = place
	c.count++
	p.clients[client{c.index, handle}] = place
	return s, nil
}

// ID is the handle under which the client knows the session at this place.
func (p *Peers) ID(place uint32) wire.SessionID {
	return wire.SessionID(uint32(p.At(place).generation)<<handleIndexBits | place)
}

// Lookup returns the place of a handle on this connection, and 0 when it is not one of its sessions.
func (p *Peers) Lookup(c *Conn, id wire.SessionID) uint32 {
	place := uint32(id) & PeersMax
	if int(place/peersPerChunk) >= len(p.chunks) {
		return 0
	}
	if s := p.At(place); s.conn != c.index+1 || s.generation != uint8(id>>handleIndexBits) {
		return 0
	}
	return place
}

// Stale reports whether a packet with this number, about the session at the place, is about an earlier one that had the same handle:
// it was sent before this one was registered. Place 0 stands for a registration of a session that is not known: it is of
// one that has ended, if it was sent before the end of one. Handles have only 8 bits of generation, and a client may use its
// own again at once; the numbers of packets never repeat on a connection, so this decides for good, and costs no memory of the dead. What
// was in truth only overtaken is ignored with it, like a lost packet, and repaired in the same way.
func (p *Peers) Stale(place uint32, c *Conn, at wire.PacketNumber) bool {
	if place == 0 {
		return at < c.ended
	}
	return int32(uint32(at)-p.At(place).born) < 0
}

// Serial is that of the session at a place, and 0 when there is none.
func (p *Peers) Serial(place uint32) Serial { return p.At(place).serial }

// First is the place of one session of the connection, and 0 when it has none. Removing it in turn visits all.
func (p *Peers) First(c *Conn) uint32 { return c.sessions }

// Conn is the index of the connection of the session at this place, and false when the place is free.
func (p *Peers) Conn(place uint32) (uint32, bool) {
	if int(place/peersPerChunk) >= len(p.chunks) {
		return 0, false
	}
	s := p.At(place)
	return s.conn - 1, s.conn != 0
}

// End removes the session at the request of its client, in the packet with the number at.
func (p *Peers) End(place uint32, c *Conn, at wire.PacketNumber) {
	c.ended = max(c.ended, at)
	p.Remove(place, c)
}

// Remove frees the place.
func (p *Peers) Remove(place uint32, c *Conn) {
	s := p.At(place)
	if s.prev != 0 {
		p.At(s.prev).next = s.next
	} else {
		c.sessions = s.next
	}
	if s.next != 0 {
		p.At(s.next).prev = s.prev
	}
	c.count--
	delete(p.clients, client{c.index, s.Handle})
	*s = Peer{generation: s.generation}
}

// Each calls f with the place of each session, in no order.
func (p *Peers) Each(f func(place uint32)) {
	for _, place := range p.clients {
		f(place)
	}
}

// Len is the number of sessions.
func (p *Peers) Len() int { return len(p.clients) }
