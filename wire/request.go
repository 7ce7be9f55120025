package wire

import (
	"encoding/binary"
	"time"
)

const (
	// RequestBytes is the size of a request without optional fields and payload.
	RequestBytes = 40

	requestBudget         MessageFlags = 0x01
	requestClass          MessageFlags = 0x02
	requestMetadata       MessageFlags = 0x04
	requestUnasked        MessageFlags = 0x08
	requestRetransmission MessageFlags = 0x80

	requestFlagsKnown = requestBudget | requestClass | requestMetadata | requestUnasked | requestRetransmission
)

// Criticality says how much a request matters when load is shed. Higher is shed later. The zero value, the field
// being absent, is for the receiver to read as its default.
type Criticality uint8

// The four levels of criticality.
const (
	CriticalityUnset Criticality = 0
	Sheddable        Criticality = 1
	SheddablePlus    Criticality = 2
	Critical         Criticality = 3
	CriticalPlus     Criticality = 4
)

// Request asks for one call. With Register set it is a register message, which also creates the session at the
// server: Session is then the client's own handle, to which the answers are addressed.
type Request struct {
	Register       bool
	Retransmission bool
	Unasked        bool // sent without a credit, at the server's invitation (see Reply.Level): its session waits for no other answer
	Session        SessionID
	Number         Number // this request's
	Next           Number // the next number that the session will use: all below is sent, or given up
	Method         Method
	Seq            uint32 // sequence of the last credit update applied
	Slot           Slot
	Demand         uint16        // requests still waiting at the client
	HasBudget      bool          // false = no deadline
	Budget         time.Duration // what is left of the deadline, in whole us; 0 with HasBudget = none left
	Criticality    Criticality
	Attempt        uint8 // 0 for the first
	Priority       uint8 // rank among its like, 1 the last to be shed; 0 = not said
	// AttemptsLeft is how many attempts the receiver may make at each call that it makes for this request. 1 = one: whoever is above repeats the whole. 0 = not
	// said: nobody above does.
	AttemptsLeft uint8
	Metadata     []byte
	Payload      []byte
}

// Length is the size of the message.
func (r *Request) Length() int {
	n := RequestBytes + len(r.Payload)
	if r.HasBudget {
		n += 4
	}
	if r.hasClass() {
		n += 4
	}
	if len(r.Metadata) > 0 {
		n += 2 + len(r.Metadata)
	}
	return n
}

func (r *Request) hasClass() bool {
	return r.Criticality != 0 || r.Attempt != 0 || r.Priority != 0 || r.AttemptsLeft != 0
}

// Level is the criticality as it counts where levels are compared: one that is not set, or not known, is [Critical], as in the SRE book (chapter 21): who says
// nothing must not be shed before those who say that they can be.
func (c Criticality) Level() Criticality {
	if c < Sheddable || c > CriticalPlus {
		return Critical
	}
	return c
}

// typeAndFlags are the first two bytes.
func (r *Request) typeAndFlags() (Type, MessageFlags) {
	t, flags := TypeRequest, MessageFlags(0)
	if r.Register {
		t = TypeRegister
	}
	if r.HasBudget {
		flags |= requestBudget
	}
	if r.hasClass() {
		flags |= requestClass
	}
	if len(r.Metadata) > 0 {
		flags |= requestMetadata
	}
	if r.Unasked {
		flags |= requestUnasked
	}
	if r.Retransmission {
		flags |= requestRetransmission
	}
	return t, flags
}

// Append appends the message to b. The caller has compared Length with [Room].
func (r *Request) Append(b []byte) []byte {
	t, flags := r.typeAndFlags()
	b, m := appendMessage(b, t, flags, r.Length(), r.Session)
	_ = m[RequestBytes-1]
	binary.BigEndian.PutUint64(m[8:], uint64(r.Number))
	binary.BigEndian.PutUint64(m[16:], uint64(r.Next))
	binary.BigEndian.PutUint64(m[24:], uint64(r.Method))
	binary.BigEndian.PutUint32(m[32:], r.Seq)
	binary.BigEndian.PutUint16(m[36:], uint16(r.Slot))
	binary.BigEndian.PutUint16(m[38:], r.Demand)
	at := RequestBytes
	if r.HasBudget {
		putDuration(m[at:], r.Budget, time.Microsecond)
		at += 4
	}
	if r.hasClass() {
		m[at], m[at+1], m[at+2], m[at+3] = byte(r.Criticality), r.Attempt, r.Priority, r.AttemptsLeft
		at += 4
	}
	if len(r.Metadata) > 0 {
		binary.BigEndian.PutUint16(m[at:], uint16(len(r.Metadata)))
		at += 2 + copy(m[at+2:], r.Metadata)
	}
	copy(m[at:], r.Payload)
	return b
}

// ParseRequest parses a request or a register message. Metadata and Payload alias raw.
func ParseRequest(raw []byte) (Request, error) {
	t := TypeRequest
	if len(raw) > 0 && Type(raw[0]) == TypeRegister {
		t = TypeRegister
	}
	if err := checkMessage(raw, t, requestFlagsKnown, RequestBytes); err != nil {
		return Request{}, err
	}
	flags := MessageFlags(raw[1])
	r := Request{
		Register:       t == TypeRegister,
		Retransmission: flags&requestRetransmission != 0,
		Unasked:        flags&requestUnasked != 0,
		Session:        sessionOf(raw),
		Number:         Number(binary.BigEndian.Uint64(raw[8:])),
		Next:           Number(binary.BigEndian.Uint64(raw[16:])),
		Method:         Method(binary.BigEndian.Uint64(raw[24:])),
		Seq:            binary.BigEndian.Uint32(raw[32:]),
		Slot:           Slot(binary.BigEndian.Uint16(raw[36:])),
		Demand:         binary.BigEndian.Uint16(raw[38:]),
	}
	if flags&(requestBudget|requestClass|requestMetadata) == 0 {
		r.Payload = raw[RequestBytes:]
		return r, nil
	}
	if err := r.parseOptional(raw[RequestBytes:], flags); err != nil {
		return Request{}, err
	}
	return r, nil
}

// parseOptional reads the fields that flags announce, in the order of the flags, and the payload behind them.
func (r *Request) parseOptional(b []byte, flags MessageFlags) error {
	if flags&requestBudget != 0 {
		if len(b) < 4 {
			return ErrShort
		}
		r.HasBudget, r.Budget = true, duration(b, time.Microsecond)
		b = b[4:]
	}
	if flags&requestClass != 0 {
		if len(b) < 4 {
			return ErrShort
		}
		r.Criticality, r.Attempt, r.Priority, r.AttemptsLeft = Criticality(b[0]), b[1], b[2], b[3]
		b = b[4:]
	}
	if flags&requestMetadata != 0 {
		if len(b) < 2 {
			return ErrShort
		}
		end := 2 + int(binary.BigEndian.Uint16(b))
		if end > len(b) {
			return ErrLength
		}
		r.Metadata = b[2:end:end]
		b = b[end:]
	}
	r.Payload = b
	return nil
}
