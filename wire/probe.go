package wire

import "encoding/binary"

// ProbeBytes is the size of a probe.
const ProbeBytes = 24

// Probe is sent by a session that wants to send and holds no credit, in case a credit update was lost.
type Probe struct {
	Session SessionID
	Next    Number // the next number that the session will use
	Seq     uint32 // of the last credit update applied
	Demand  uint16
}

// Length is the size of the message.
func (*Probe) Length() int { return ProbeBytes }

// Append appends the message to b.
func (p *Probe) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeProbe, 0, ProbeBytes, p.Session)
	_ = m[ProbeBytes-1]
	binary.BigEndian.PutUint64(m[8:], uint64(p.Next))
	binary.BigEndian.PutUint32(m[16:], p.Seq)
	binary.BigEndian.PutUint16(m[20:], p.Demand)
	binary.BigEndian.PutUint16(m[22:], 0)
	return b
}

// ParseProbe parses a probe.
func ParseProbe(raw []byte) (Probe, error) {
	if err := checkFixed(raw, TypeProbe, ProbeBytes); err != nil {
		return Probe{}, err
	}
	return Probe{
		Session: sessionOf(raw),
		Next:    Number(binary.BigEndian.Uint64(raw[8:])),
		Seq:     binary.BigEndian.Uint32(raw[16:]),
		Demand:  binary.BigEndian.Uint16(raw[20:]),
	}, nil
}
