package wire

import "encoding/binary"

// AcceptBytes is the size of an accept message.
const AcceptBytes = 16 + len(Token{})

// Accept answers an [Open]: the connection exists.
type Accept struct {
	Connection ConnectionID // the server's, for the packets to it
	Token      Token        // for the next first contact
}

// Length is the size of the message.
func (*Accept) Length() int { return AcceptBytes }

// Append appends the message to b.
func (a *Accept) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeAccept, 0, AcceptBytes, 0)
	binary.BigEndian.PutUint64(m[8:], uint64(a.Connection))
	copy(m[16:], a.Token[:])
	return b
}

// ParseAccept parses an accept message.
func ParseAccept(raw []byte) (Accept, error) {
	if err := checkFixed(raw, TypeAccept, AcceptBytes); err != nil {
		return Accept{}, err
	}
	return Accept{
		Connection: ConnectionID(binary.BigEndian.Uint64(raw[8:])),
		Token:      Token(raw[16:]),
	}, nil
}
