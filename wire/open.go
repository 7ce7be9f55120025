package wire

import "encoding/binary"

const (
	// OpenBytes is the size of an open message without a token.
	OpenBytes = 16
	// OpenTokenBytes is the size of an open message with a token.
	OpenTokenBytes = OpenBytes + len(Token{})

	openToken MessageFlags = 0x01
)

// Open opens a connection. With a token that the server accepts, what follows it in the packet runs at once;
// without one the answer is a [Retry].
type Open struct {
	Connection ConnectionID // the client's, for the packets to it
	HasToken   bool
	Token      Token
}

// Length is the size of the message.
func (o *Open) Length() int {
	if o.HasToken {
		return OpenTokenBytes
	}
	return OpenBytes
}

// Append appends the message to b.
func (o *Open) Append(b []byte) []byte {
	flags := MessageFlags(0)
	if o.HasToken {
		flags = openToken
	}
	b, m := appendMessage(b, TypeOpen, flags, o.Length(), 0)
	binary.BigEndian.PutUint64(m[8:], uint64(o.Connection))
	if o.HasToken {
		copy(m[OpenBytes:], o.Token[:])
	}
	return b
}

// ParseOpen parses an open message.
func ParseOpen(raw []byte) (Open, error) {
	if err := checkMessage(raw, TypeOpen, openToken, OpenBytes); err != nil {
		return Open{}, err
	}
	o := Open{
		Connection: ConnectionID(binary.BigEndian.Uint64(raw[8:])),
		HasToken:   MessageFlags(raw[1])&openToken != 0,
	}
	if len(raw) != o.Length() {
		return Open{}, ErrLength
	}
	copy(o.Token[:], raw[OpenBytes:])
	return o, nil
}
