package handover

import (
	"encoding/binary"

	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// Two places that are no dispatcher.
const (
	anywhere = -1 // whoever received it: it names nobody
	dialers  = -2 // all that may have dialed the sender
)

// openIDAt is where a packet that opens a connection has its client's id: the open is its first message.
const openIDAt = wire.HeaderBytes + wire.MessageHeaderBytes

// route says which of count dispatchers a packet is for. It believes the packet: whoever gets it looks more closely.
func route(payload []byte, count int) int {
	if len(payload) < openIDAt+8 {
		return anywhere // too short for anything but a lie
	}
	id := wire.ConnectionID(binary.BigEndian.Uint64(payload[4:]))
	switch {
	case wire.PacketFlags(payload[1])&wire.PacketHandshake != 0:
		return session.OpenOwner(wire.ConnectionID(binary.BigEndian.Uint64(payload[openIDAt:])), count)
	case id == 0: // a server that knows no connection, and no id of ours
		return dialers
	}
	if owner := session.Owner(id); owner < count {
		return owner
	}
	return anywhere // of an earlier boot that had more of them
}
