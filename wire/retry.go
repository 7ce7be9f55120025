package wire

// RetryBytes is the size of a retry.
const RetryBytes = 8 + len(Token{})

// Retry answers an [Open] without a valid token, statelessly: open again with this one.
type Retry struct {
	Token Token
}

// Length is the size of the message.
func (*Retry) Length() int { return RetryBytes }

// Append appends the message to b.
func (r *Retry) Append(b []byte) []byte {
	b, m := appendMessage(b, TypeRetry, 0, RetryBytes, 0)
	copy(m[8:], r.Token[:])
	return b
}

// ParseRetry parses a retry.
func ParseRetry(raw []byte) (Retry, error) {
	if err := checkFixed(raw, TypeRetry, RetryBytes); err != nil {
		return Retry{}, err
	}
	return Retry{Token: Token(raw[8:])}, nil
}
