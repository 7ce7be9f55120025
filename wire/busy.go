package wire

import "encoding/binary"

// BusyBytes is the size of a busy.
const BusyBytes = 20

// Busy answers a duplicate of a request that is queued or running: it is known, and its answer is to come.
type Busy struct {
	Session SessionID
	Number  Number
	Slot    Slot
}

// Length is the size of the message.
func (*Busy) Length() int { return BusyBytes }

// Append appends the message to b.
func (y *Busy) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeBusy, 0, BusyBytes, y.Session)
	_ = m[BusyBytes-1]
	binary.BigEndian.PutUint64(m[8:], uint64(y.Number))
	binary.BigEndian.PutUint16(m[16:], uint16(y.Slot))
	binary.BigEndian.PutUint16(m[18:], 0)
	return b
}

// ParseBusy parses a busy.
func ParseBusy(raw []byte) (Busy, error) {
	if err := checkFixed(raw, TypeBusy, BusyBytes); err != nil {
		return Busy{}, err
	}
	return Busy{
		Session: sessionOf(raw),
		Number:  Number(binary.BigEndian.Uint64(raw[8:])),
		Slot:    Slot(binary.BigEndian.Uint16(raw[16:])),
	}, nil
}
