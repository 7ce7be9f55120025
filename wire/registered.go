package wire

import (
	"encoding/binary"
	"time"
)

// RegisteredBytes is the size of a registered message.
const RegisteredBytes = 24

// Registered tells a client that its session exists and what the server offers. It travels before the first answer.
type Registered struct {
	Session       SessionID     // the client's handle
	ServerSession SessionID     // what the client puts into its messages from now on
	Slots         uint16        // how many requests may be outstanding
	TargetDelay   time.Duration // what the server steers its queueing delay to, in whole us
	DropThreshold time.Duration // beyond it the server rejects at arrival, in whole us
}

// Length is the size of the message.
func (*Registered) Length() int { return RegisteredBytes }

// Append appends the message to b.
func (r *Registered) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeRegistered, 0, RegisteredBytes, r.Session)
	_ = m[RegisteredBytes-1]
	binary.BigEndian.PutUint32(m[8:], uint32(r.ServerSession))
	binary.BigEndian.PutUint16(m[12:], r.Slots)
	binary.BigEndian.PutUint16(m[14:], 0)
	putDuration(m[16:], r.TargetDelay, time.Microsecond)
	putDuration(m[20:], r.DropThreshold, time.Microsecond)
	return b
}

// ParseRegistered parses a registered message.
func ParseRegistered(raw []byte) (Registered, error) {
	if err := checkFixed(raw, TypeRegistered, RegisteredBytes); err != nil {
		return Registered{}, err
	}
	return Registered{
		Session:       sessionOf(raw),
		ServerSession: SessionID(binary.BigEndian.Uint32(raw[8:])),
		Slots:         binary.BigEndian.Uint16(raw[12:]),
		TargetDelay:   duration(raw[16:], time.Microsecond),
		DropThreshold: duration(raw[20:], time.Microsecond),
	}, nil
}
