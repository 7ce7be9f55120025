package session

import (
	"errors"
	"slices"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// ErrTooManyConnections says that the table is at its bound, or the peer at its own.
var ErrTooManyConnections = errors.New("too many connections")

// PeerMax bounds the accepted connections with one address. An endpoint has one to each server; more are left over from processes
// that died, and from who would like to have them all.
const PeerMax = 8

// The parts of a connection id, from the top: owner 6 bits, index 22, generation 12, epoch 24.
const (
	epochBits      = 24
	generationBits = 12
	indexBits      = 22
	ownerBits      = 6 // see OwnersMax

	epochMask      = 1<<epochBits - 1
	generationMask = 1<<generationBits - 1

	// ConnectionsMax is what the index has room for.
	ConnectionsMax = 1 << indexBits
)

// Table holds the connections of one dispatcher and finds them by id in constant time, whichever queue a packet
// arrived on: the owner is in the id.
type Table struct {
	owner uint64
	epoch uint64
	limit int

	entries []tableEntry
	free    []uint32         // oldest first, so that the generations of a place last
	dialers map[dialer]*Conn // accepted ones, by who opened them: a repeated open finds its connection
	peers   map[wire.Addr]*[PeerMax]*Conn
	cursor  uint32 // of Sweep
}

type tableEntry struct {
	conn       *Conn // nil while free
	generation uint64
}

// dialer names an accepted connection by its opener's address and id.
type dialer struct {
	peer   wire.Addr
	remote wire.ConnectionID
}

// NewTable returns an empty table. The epoch must differ from boot to boot; its low 24 bits are used, and zero counts as one. At most
// limit connections are kept.
func NewTable(owner uint8, epoch uint32, limit int) *Table {
	return &Table{
		owner: uint64(owner) & (1<<ownerBits - 1), epoch: max(uint64(epoch)&epochMask, 1),
		limit: min(limit, ConnectionsMax), dialers: make(map[dialer]*Conn), peers: make(map[wire.Addr]*[PeerMax]*Conn),
	}
}

// Dial adds a connection that we open.
func (t *Table) Dial(peer wire.Addr, now clock.Time) (*Conn, error) {
	c, err := t.add(peer, now)
	if err == nil {
		c.Dialed = true
	}
	return c, err
}

// Accept returns the connection that the peer opened under its id, and makes it at first contact.
func (t *Table) Accept(peer wire.Addr, remote wire.ConnectionID, now clock.Time) (c *Conn, fresh bool, err error) {
	key := dialer{peer, remote}
	if c := t.dialers[key]; c != nil {
		return c, false, nil
	}
	of := t.peers[peer]
	if of == nil {
		of = new([PeerMax]*Conn)
	}
	place := slices.Index(of[:], nil)
	if place < 0 {
		return nil, false, ErrTooManyConnections
	}
	if c, err = t.add(peer, now); err != nil {
		return nil, false, err
	}
	c.Remote = remote
	t.dialers[key] = c
	of[place], t.peers[peer] = c, of
	return c, true, nil
}

// Silent returns the accepted connection with the peer on which nothing was heard for the longest time, if that is since the given instant.
func (t *Table) Silent(peer wire.Addr, since clock.Time) *Conn {
	var silent *Conn
	if of := t.peers[peer]; of != nil {
		for _, c := range of {
			if c != nil && c.LastHeard.Before(since) && (silent == nil || c.LastHeard.Before(silent.LastHeard)) {
				silent = c
			}
		}
	}
	return silent
}

func (t *Table) add(peer wire.Addr, now clock.Time) (*Conn, error) {
	var index uint32
	switch {
	case len(t.free) > 0:
		index = t.free[0]
		t.free = t.free[1:]
	case len(t.entries) < t.limit:
		index = uint32(len(t.entries))
		t.entries = append(t.entries, tableEntry{})
	default:
		return nil, ErrTooManyConnections
	}
	c := &Conn{Peer: peer, LastHeard: now, index: index}
	t.entries[index].conn = c
	c.Local = t.NextID(c)
	return c, nil
}

// NextID gives the connection's place a new generation and returns the id that follows from it. An id is never
// zero, since the epoch is not.
func (t *Table) NextID(c *Conn) wire.ConnectionID {
	e := &t.entries[c.index]
	e.generation = (e.generation + 1) & generationMask
	return wire.ConnectionID(t.owner<<ownerShift |
		uint64(c.index)<<(epochBits+generationBits) | e.generation<<epochBits | t.epoch)
}

// Lookup returns the connection of an id, or nil: never ours, of an earlier boot, or removed.
func (t *Table) Lookup(id wire.ConnectionID) *Conn {
	index := uint64(id) >> (epochBits + generationBits) & (ConnectionsMax - 1)
	if index >= uint64(len(t.entries)) {
		return nil
	}
	if c := t.entries[index].conn; c != nil && c.Local == id {
		return c
	}
	return nil
}

// At returns the connection at an index, or nil.
func (t *Table) At(index uint32) *Conn {
	if int(index) >= len(t.entries) {
		return nil
	}
	return t.entries[index].conn
}

// Remove forgets a connection; its id is unknown from here on.
func (t *Table) Remove(c *Conn) {
	if t.entries[c.index].conn != c {
		return
	}
	t.entries[c.index].conn = nil
	t.free = append(t.free, c.index)
	if c.Dialed {
		return
	}
	delete(t.dialers, dialer{c.Peer, c.Remote})
	of := t.peers[c.Peer]
	of[slices.Index(of[:], c)] = nil
	if *of == ([PeerMax]*Conn{}) {
		delete(t.peers, c.Peer)
	}
}

// Len is the number of connections.
func (t *Table) Len() int { return len(t.entries) - len(t.free) }

// Sweep looks at the next place in turn and returns its connection, or nil. Called now and then it visits all of them without a
// timer for each.
func (t *Table) Sweep() *Conn {
	if len(t.entries) == 0 {
		return nil
	}
	t.cursor = (t.cursor + 1) % uint32(len(t.entries))
	return t.entries[t.cursor].conn
}
