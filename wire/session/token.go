package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// TokenLifetime is one epoch: a token is good in the epoch it was made in and in the next.
const TokenLifetime = 10 * time.Minute

// Minter makes and verifies address tokens without keeping any state per peer: byte 0 is the parity of the epoch, the rest an HMAC-SHA256 over epoch, address
// and port, cut to 31 bytes (the idea of RFC 9000, section 8.1.2).
type Minter struct {
	key [32]byte
}

// NewMinter takes a secret that is random for each boot.
func NewMinter(key [32]byte) *Minter { return &Minter{key: key} }

// Mint returns a token for the peer.
func (m *Minter) Mint(now clock.Time, peer wire.Addr) wire.Token {
	return m.mint(uint64(now)/uint64(TokenLifetime), peer)
}

// Verify reports whether the token was made for the peer in this epoch or the one before.
func (m *Minter) Verify(now clock.Time, peer wire.Addr, token wire.Token) bool {
	epoch := uint64(now) / uint64(TokenLifetime)
	if uint8(epoch&1) != token[0] {
		epoch-- // epoch zero wraps to one that mints nothing
	}
	want := m.mint(epoch, peer)
	return subtle.ConstantTimeCompare(want[:], token[:]) == 1
}

func (m *Minter) mint(epoch uint64, peer wire.Addr) (token wire.Token) {
	var text [8 + 16 + 2]byte
	binary.BigEndian.PutUint64(text[:], epoch)
	copy(text[8:], peer.IP[:])
	binary.BigEndian.PutUint16(text[24:], peer.Port)
	mac := hmac.New(sha256.New, m.key[:])
	mac.Write(text[:])
	copy(token[1:], mac.Sum(nil))
	token[0] = uint8(epoch & 1)
	return token
}
