package wire

import (
	"encoding/binary"
	"time"
)

// ReplyBytes is the size of a reply without its payload.
const ReplyBytes = 44

// Status says how the handler of a reply ended.
type Status uint8

// The statuses of a reply.
const (
	StatusOK           Status = 0
	StatusHandlerError Status = 1 // the payload is the text of the handler's error
	StatusPanic        Status = 2 // the handler panicked; the payload is empty, since it could tell secrets
	StatusTooLarge     Status = 3 // the handler ran, and its answer does not fit into a packet
	StatusUnavailable  Status = 4 // the handler could not get what it needs from elsewhere; the payload is the text of its error
)

var statusNames = [...]string{
	StatusOK: "ok", StatusHandlerError: "handler error", StatusPanic: "panic", StatusTooLarge: "too large",
	StatusUnavailable: "unavailable",
}

// String names the status.
func (s Status) String() string { return nameOf(statusNames[:], int(s)) }

// LevelInvitation is where levels begin that invite calls without a credit: by so much as a level is above it. Up to it a level is of priorities.
const LevelInvitation = 128

// Reply answers a request that ran. It carries today's credit limit, also when it is sent again.
type Reply struct {
	Session      SessionID
	Number       Number // of the request
	Limit        Number // the session may send numbers below it
	Seq          uint32 // of the limit
	Slot         Slot
	Status       Status
	Level        uint8         // priorities above it are being shed; 0 = the server sheds by none; see LevelInvitation
	PacketQueue  time.Duration // arrival at the NIC until the dispatcher saw it
	RequestQueue time.Duration // from there until the handler started
	Service      time.Duration // the handler's run time
	Payload      []byte
}

// Length is the size of the message.
func (r *Reply) Length() int { return ReplyBytes + len(r.Payload) }

// SetReplyLimit writes another limit and level into an encoded reply, which is sent again: these change, answers do not.
func SetReplyLimit(raw []byte, limit Number, seq uint32, level uint8) {
	_ = raw[ReplyBytes-1]
	binary.BigEndian.PutUint64(raw[16:], uint64(limit))
	binary.BigEndian.PutUint32(raw[24:], seq)
	raw[31] = level
}

// Append appends the message to b. The caller has compared Length with [Room].
func (r *Reply) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeReply, 0, r.Length(), r.Session)
	_ = m[ReplyBytes-1]
	binary.BigEndian.PutUint64(m[8:], uint64(r.Number))
	binary.BigEndian.PutUint64(m[16:], uint64(r.Limit))
	binary.BigEndian.PutUint32(m[24:], r.Seq)
	binary.BigEndian.PutUint16(m[28:], uint16(r.Slot))
	m[30], m[31] = byte(r.Status), r.Level
	putDuration(m[32:], r.PacketQueue, time.Nanosecond)
	putDuration(m[36:], r.RequestQueue, time.Nanosecond)
	putDuration(m[40:], r.Service, time.Nanosecond)
	copy(m[ReplyBytes:], r.Payload)
	return b
}

// ParseReply parses a reply. Payload aliases raw.
func ParseReply(raw []byte) (Reply, error) {
	if err := checkMessage(raw, TypeReply, 0, ReplyBytes); err != nil {
		return Reply{}, err
	}
	status := Status(raw[30])
	if int(status) >= len(statusNames) {
		return Reply{}, ErrStatus
	}
	return Reply{
		Session:      sessionOf(raw),
		Number:       Number(binary.BigEndian.Uint64(raw[8:])),
		Limit:        Number(binary.BigEndian.Uint64(raw[16:])),
		Seq:          binary.BigEndian.Uint32(raw[24:]),
		Slot:         Slot(binary.BigEndian.Uint16(raw[28:])),
		Status:       status,
		Level:        raw[31],
		PacketQueue:  duration(raw[32:], time.Nanosecond),
		RequestQueue: duration(raw[36:], time.Nanosecond),
		Service:      duration(raw[40:], time.Nanosecond),
		Payload:      raw[ReplyBytes:],
	}, nil
}
