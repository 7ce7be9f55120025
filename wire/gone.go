package wire

import "encoding/binary"

// GoneBytes is the size of a gone message.
const GoneBytes = 16

// Gone answers, statelessly, a packet of a connection that its receiver does not know (any more).
type Gone struct {
	Connection ConnectionID // the unknown id, as it stood in the packet that is answered
}

// Length is the size of the message.
func (*Gone) Length() int { return GoneBytes }

// Append appends the message to b.
func (g *Gone) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeGone, 0, GoneBytes, 0)
	binary.BigEndian.PutUint64(m[8:], uint64(g.Connection))
	return b
}

// ParseGone parses a gone message.
func ParseGone(raw []byte) (Gone, error) {
	if err := checkFixed(raw, TypeGone, GoneBytes); err != nil {
		return Gone{}, err
	}
	return Gone{Connection: ConnectionID(binary.BigEndian.Uint64(raw[8:]))}, nil
}
