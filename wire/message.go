package wire

import (
	"encoding/binary"
	"time"
)

// MessageHeaderBytes is the size of the header that every message starts with: type, flags, length, session.
const MessageHeaderBytes = 8

// Type is the type of a message.
type Type uint8

// The types of messages. 15 to 18 are reserved for fragment, acknowledgement, stream and window.
const (
	TypeRequest      Type = 1
	TypeRegister     Type = 2
	TypeRegistered   Type = 3
	TypeReply        Type = 4
	TypeReject       Type = 5
	TypeBusy         Type = 6
	TypeCreditUpdate Type = 7
	TypeProbe        Type = 8
	TypeDeregister   Type = 9
	TypeCancel       Type = 10
	TypeOpen         Type = 11
	TypeAccept       Type = 12
	TypeRetry        Type = 13
	TypeGone         Type = 14
	TypeFragment     Type = 15
	TypeAck          Type = 16
	TypeStream       Type = 17
	TypeWindow       Type = 18
)

var typeNames = [...]string{
	TypeRequest: "request", TypeRegister: "register", TypeRegistered: "registered", TypeReply: "reply",
	TypeReject: "reject", TypeBusy: "busy", TypeCreditUpdate: "credit update", TypeProbe: "probe",
	TypeDeregister: "deregister", TypeCancel: "cancel", TypeOpen: "open", TypeAccept: "accept",
	TypeRetry: "retry", TypeGone: "gone", TypeFragment: "fragment", TypeAck: "ack", TypeStream: "stream",
	TypeWindow: "window",
}

// String is the name in the byte map, or "unknown".
func (t Type) String() string { return nameOf(typeNames[:], int(t)) }

// nameOf looks a code up in a table whose gaps are unknown codes.
func nameOf(names []string, code int) string {
	if code >= len(names) || names[code] == "" {
		return "unknown"
	}
	return names[code]
}

// MessageFlags are the flags of a message; their meaning depends on its type.
type MessageFlags uint8

// Message is one message of a packet, its body not yet parsed.
type Message struct {
	Type    Type
	Flags   MessageFlags
	Session SessionID // chosen by the receiver; 0 for connection-level messages
	Raw     []byte    // the whole message, header included: what ParseX takes
}

// NextMessage takes the first message off b, which must not be empty, and returns the rest. Types are not judged
// here: the caller skips (and counts) those it does not know. After an error the rest is unusable.
func NextMessage(b []byte) (Message, []byte, error) {
	if len(b) < MessageHeaderBytes {
		return Message{}, nil, ErrShort
	}
	length := int(binary.BigEndian.Uint16(b[2:]))
	if length < MessageHeaderBytes || length > len(b) {
		return Message{}, nil, ErrLength
	}
	return Message{
		Type:    Type(b[0]),
		Flags:   MessageFlags(b[1]),
		Session: SessionID(binary.BigEndian.Uint32(b[4:])),
		Raw:     b[:length:length],
	}, b[length:], nil
}

// checkMessage is the door of every parser: type, flags and that the length field is the length. Afterwards reading
// within size cannot fail.
func checkMessage(raw []byte, t Type, known MessageFlags, size int) error {
	if len(raw) < size {
		return ErrShort
	}
	if Type(raw[0]) != t {
		return ErrType
	}
	if MessageFlags(raw[1])&^known != 0 {
		return ErrFlags
	}
	if int(binary.BigEndian.Uint16(raw[2:])) != len(raw) {
		return ErrLength
	}
	return nil
}

// checkFixed is [checkMessage] for messages that are all fixed part.
func checkFixed(raw []byte, t Type, size int) error {
	if err := checkMessage(raw, t, 0, size); err != nil {
		return err
	}
	if len(raw) != size {
		return ErrLength
	}
	return nil
}

// sessionOf reads the session handle of a checked message.
func sessionOf(raw []byte) SessionID { return SessionID(binary.BigEndian.Uint32(raw[4:])) }

// appendMessage appends a message of length bytes with its header, and returns b and the message. The body is
// whatever the buffer held before: the caller writes every byte of it.
func appendMessage(b []byte, t Type, flags MessageFlags, length int, session SessionID) (whole, message []byte) {
	if length > maxLength {
		panic("wire: message of more than 65535 bytes; the caller compares Length with Room")
	}
	if cap(b)-len(b) < length {
		b = append(b, make([]byte, length)...)[:len(b)]
	}
	whole = b[:len(b)+length]
	message = whole[len(b):]
	_ = message[7]
	message[0] = byte(t)
	message[1] = byte(flags)
	binary.BigEndian.PutUint16(message[2:], uint16(length))
	binary.BigEndian.PutUint32(message[4:], uint32(session))
	return whole, message
}

// putDuration writes d in units, rounded down and clamped to what 32 bits hold (71 minutes in us, 4.3 s in ns).
func putDuration(b []byte, d, unit time.Duration) {
	n := max(d/unit, 0)
	binary.BigEndian.PutUint32(b, uint32(min(n, 1<<32-1)))
}

// duration reads what putDuration wrote.
func duration(b []byte, unit time.Duration) time.Duration {
	return time.Duration(binary.BigEndian.Uint32(b)) * unit
}

// MethodOf is the 64-bit FNV-1a hash of a method's name. Two names with one hash are refused where methods are
// registered.
func MethodOf(name string) Method {
	hash := uint64(14695981039346656037)
	for i := range len(name) {
		hash = (hash ^ uint64(name[i])) * 1099511628211
	}
	return Method(hash)
}
