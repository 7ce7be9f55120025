package wire

import (
	"encoding/binary"
	"math"
	"time"
)

// RejectBytes is the size of a reject.
const RejectBytes = 36

// RejectReason says why a request was refused. None of the refused requests ran.
type RejectReason uint8

// The reasons of a reject. Zero is none, so that a forgotten reason is not taken for one.
const (
	RejectOverloaded    RejectReason = 1 // queue longer than the drop threshold
	RejectExpired       RejectReason = 2 // what is left of its budget does not cover its service
	RejectOverLimit     RejectReason = 3 // sent without a credit: no outcome yet, the client queues it again
	RejectUnknownMethod RejectReason = 4
	RejectDraining      RejectReason = 5 // the server is going away
	RejectCancelled     RejectReason = 6 // the client cancelled it before it ran
	RejectNoSlot        RejectReason = 7 // no such slot in the session
	RejectTooLarge      RejectReason = 8
	RejectRateLimited   RejectReason = 9 // its client, or its method, has used up its rate: RetryAfter says when there is more
)

var rejectNames = [...]string{
	RejectOverloaded: "overloaded", RejectExpired: "expired", RejectOverLimit: "over limit",
	RejectUnknownMethod: "unknown method", RejectDraining: "draining", RejectCancelled: "cancelled",
	RejectNoSlot: "no slot", RejectTooLarge: "too large", RejectRateLimited: "rate limited",
}

// String names the reason.
func (r RejectReason) String() string { return nameOf(rejectNames[:], int(r)) }

// Advice tells the caller of a rejected request what to do about it.
type Advice uint8

// The advices of a reject. Others are for the receiver to ignore.
const (
	AdviceNone       Advice = 0
	AdviceDoNotRetry Advice = 1 // another attempt would only add to the overload
)

// Reject refuses a request at once, and carries today's credit limit.
type Reject struct {
	Session SessionID
	Number  Number
	Limit   Number
	Seq     uint32
	Slot    Slot
	Reason  RejectReason
	Advice  Advice
	Level   uint8 // priorities above it are being shed; 0 = the server sheds by none; see LevelInvitation
	// RetryAfter is how long the server expects to refuse the like, in whole units of 10 us, at most 655.35 ms; 0 = it does not say.
	RetryAfter time.Duration
}

// retryUnit is the unit of RetryAfter on the wire.
const retryUnit = 10 * time.Microsecond

// Length is the size of the message.
func (*Reject) Length() int { return RejectBytes }

// Append appends the message to b.
func (r *Reject) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeReject, 0, RejectBytes, r.Session)
	_ = m[RejectBytes-1]
	binary.BigEndian.PutUint64(m[8:], uint64(r.Number))
	binary.BigEndian.PutUint64(m[16:], uint64(r.Limit))
	binary.BigEndian.PutUint32(m[24:], r.Seq)
	binary.BigEndian.PutUint16(m[28:], uint16(r.Slot))
	m[30], m[31], m[32], m[33] = byte(r.Reason), byte(r.Advice), r.Level, 0
	binary.BigEndian.PutUint16(m[34:], uint16(min(max(r.RetryAfter, 0)/retryUnit, math.MaxUint16)))
	return b
}

// ParseReject parses a reject.
func ParseReject(raw []byte) (Reject, error) {
	if err := checkFixed(raw, TypeReject, RejectBytes); err != nil {
		return Reject{}, err
	}
	reason := RejectReason(raw[30])
	if reason == 0 || int(reason) >= len(rejectNames) {
		return Reject{}, ErrStatus
	}
	return Reject{
		Session: sessionOf(raw),
		Number:  Number(binary.BigEndian.Uint64(raw[8:])),
		Limit:   Number(binary.BigEndian.Uint64(raw[16:])),
		Seq:     binary.BigEndian.Uint32(raw[24:]),
		Slot:    Slot(binary.BigEndian.Uint16(raw[28:])),
		Reason:  reason,
		Advice:  Advice(raw[31]),
		Level:   raw[32],

		RetryAfter: time.Duration(binary.BigEndian.Uint16(raw[34:])) * retryUnit,
	}, nil
}
