package wire

import "encoding/binary"

// GoneBytes is the size of a gone message.
const GoneBytes = 16

// Gone says that its sender does not know a connection (any more): then it is stateless, and Session is zero; or that
// it knows the connection and not the session.
type Gone struct {
	Connection ConnectionID // the id that stood in the packet that is answered
	Session    SessionID    // the unknown session, as it stood in the message that is answered; 0 = the whole connection
}

// Length is the size of the message.
func (*Gone) Length() int { return GoneBytes }

// Append appends the message to b.
func (g *Gone) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeGone, 0, GoneBytes, g.Session)
	binary.BigEndian.PutUint64(m[8:], uint64(g.Connection))
	return b
}

// ParseGone parses a gone message.
func ParseGone(raw []byte) (Gone, error) {
	if err := checkFixed(raw, TypeGone, GoneBytes); err != nil {
		return Gone{}, err
	}
	return Gone{Connection: ConnectionID(binary.BigEndian.Uint64(raw[8:])), Session: sessionOf(raw)}, nil
}
