package session

import (
	"encoding/binary"

	"github.com/stillwater-rpc/stillwater/wire"
)

// OwnersMax is how many dispatchers an endpoint can have: what a connection id has room for.
const OwnersMax = 1 << ownerBits

// ownerShift is where the owner stands in a connection id.
const ownerShift = indexBits + generationBits + epochBits

// Owner is the dispatcher that chose a connection id, and has the connection.
func Owner(id wire.ConnectionID) int { return int(id >> ownerShift) }

// OpenOwner is which of count dispatchers answers the open of a connection that its client calls by the given id. Whoever repeats an open repeats
// the id, so that all of them come to one dispatcher, and only one connection can be made of them; and a client with several connections gets several
// dispatchers. A kernel that spreads packets over sockets can be told the rule, in 32-bit arithmetic: see runtime/udpport.
func OpenOwner(id wire.ConnectionID, count int) int {
	h := uint32(id>>32) ^ uint32(id)
	h ^= h >> OwnerShift // the client's own dispatcher is in the highest bits, which a product does not carry down
	return int(h * OwnerMultiplier >> OwnerShift % uint32(count))
}

// The constants of OpenOwner: 2^32 divided by the golden ratio, and half a word.
const (
	OwnerMultiplier = 0x9e3779b1
	OwnerShift      = 16
)

// dialSpread bounds the dispatchers of one endpoint that dial one server: a server accepts PeerMax connections from one address, and those of a
// process that died before us may be among them.
const dialSpread = PeerMax / 2

// Dialers is how many of count dispatchers may have connections to one server.
func Dialers(count int) int { return min(count, dialSpread) }

// Dialer is the dispatcher that opens the n-th connection to a server. The first ones of several servers are different dispatchers' too.
func Dialer(to *wire.Addr, n, count int) int {
	return int((hash(to) + uint32(n%Dialers(count))) % uint32(count))
}

// hash is of the last bytes of the address, and of the port.
func hash(a *wire.Addr) uint32 {
	h := (binary.BigEndian.Uint32(a.IP[12:]) ^ binary.BigEndian.Uint32(a.IP[8:])) * OwnerMultiplier
	return (h ^ uint32(a.Port)) * OwnerMultiplier >> OwnerShift
}
