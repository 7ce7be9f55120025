package wire

import "encoding/binary"

// DeregisterBytes is the size of a deregister message.
const DeregisterBytes = 20

// Deregister ends a session.
type Deregister struct {
	Session SessionID
	Next    Number // nothing at or above it was ever sent
	Seq     uint32
}

// Length is the size of the message.
func (*Deregister) Length() int { return DeregisterBytes }

// Append appends the message to b.
func (d *Deregister) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeDeregister, 0, DeregisterBytes, d.Session)
	_ = m[DeregisterBytes-1]
	binary.BigEndian.PutUint64(m[8:], uint64(d.Next))
	binary.BigEndian.PutUint32(m[16:], d.Seq)
	return b
}

// ParseDeregister parses a deregister message.
func ParseDeregister(raw []byte) (Deregister, error) {
	if err := checkFixed(raw, TypeDeregister, DeregisterBytes); err != nil {
		return Deregister{}, err
	}
	return Deregister{
		Session: sessionOf(raw),
		Next:    Number(binary.BigEndian.Uint64(raw[8:])),
		Seq:     binary.BigEndian.Uint32(raw[16:]),
	}, nil
}
