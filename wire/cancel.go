package wire

import "encoding/binary"

// CancelBytes is the size of a cancel.
const CancelBytes = 20

// Cancel withdraws a request. One that has not started is answered by a reject, one that runs by its reply.
type Cancel struct {
	Session SessionID
	Number  Number
	Slot    Slot
}

// Length is the size of the message.
func (*Cancel) Length() int { return CancelBytes }

// Append appends the message to b.
func (c *Cancel) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeCancel, 0, CancelBytes, c.Session)
	_ = m[CancelBytes-1]
	binary.BigEndian.PutUint64(m[8:], uint64(c.Number))
	binary.BigEndian.PutUint16(m[16:], uint16(c.Slot))
	binary.BigEndian.PutUint16(m[18:], 0)
	return b
}

// ParseCancel parses a cancel.
func ParseCancel(raw []byte) (Cancel, error) {
	if err := checkFixed(raw, TypeCancel, CancelBytes); err != nil {
		return Cancel{}, err
	}
	return Cancel{
		Session: sessionOf(raw),
		Number:  Number(binary.BigEndian.Uint64(raw[8:])),
		Slot:    Slot(binary.BigEndian.Uint16(raw[16:])),
	}, nil
}
