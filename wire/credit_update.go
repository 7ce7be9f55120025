package wire

import "encoding/binary"

// CreditUpdateBytes is the size of a credit update.
const CreditUpdateBytes = 20

// CreditUpdate tells a session its credit limit outside an answer.
type CreditUpdate struct {
	Session SessionID
	Limit   Number // the session may send numbers below it; a newer one may be lower
	Seq     uint32
}

// Length is the size of the message.
func (*CreditUpdate) Length() int { return CreditUpdateBytes }

// Append appends the message to b.
func (u *CreditUpdate) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeCreditUpdate, 0, CreditUpdateBytes, u.Session)
	_ = m[CreditUpdateBytes-1]
	binary.BigEndian.PutUint64(m[8:], uint64(u.Limit))
	binary.BigEndian.PutUint32(m[16:], u.Seq)
	return b
}

// ParseCreditUpdate parses a credit update.
func ParseCreditUpdate(raw []byte) (CreditUpdate, error) {
	if err := checkFixed(raw, TypeCreditUpdate, CreditUpdateBytes); err != nil {
		return CreditUpdate{}, err
	}
	return CreditUpdate{
		Session: sessionOf(raw),
		Limit:   Number(binary.BigEndian.Uint64(raw[8:])),
		Seq:     binary.BigEndian.Uint32(raw[16:]),
	}, nil
}
