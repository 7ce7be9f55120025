package session

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

func address(last byte, port uint16) wire.Addr {
	return wire.Addr{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: last}, Port: port}
}

func TestTokenLivesOneToTwoEpochs(t *testing.T) {
	m := NewMinter([32]byte{1})
	peer := address(1, 7)
	for _, start := range []time.Duration{0, TokenLifetime - 1, TokenLifetime, 17*TokenLifetime + TokenLifetime/2} {
		made := clock.Time(start)
		token := m.Mint(made, peer)
		epoch := start / TokenLifetime
		for _, c := range []struct {
			at   time.Duration
			good bool
		}{
			{start, true},
			{start + TokenLifetime, true},
			{(epoch+2)*TokenLifetime - 1, true},
			{(epoch + 2) * TokenLifetime, false},
			{(epoch + 3) * TokenLifetime, false},
			{(epoch + 4) * TokenLifetime, false}, // the parity is right again
			{(epoch + 400) * TokenLifetime, false},
		} {
			if got := m.Verify(clock.Time(c.at), peer, token); got != c.good {
				t.Errorf("made at %v, at %v: %v", start, c.at, got)
			}
		}
		if epoch > 0 && m.Verify(clock.Time((epoch-1)*TokenLifetime), peer, token) {
			t.Errorf("a token of the future is good")
		}
	}
}

func TestForgedTokens(t *testing.T) {
	m, now, peer := NewMinter([32]byte{1}), clock.Time(35*time.Minute), address(1, 7)
	token := m.Mint(now, peer)
	for bit := range 8 * len(token) {
		forged := token
		forged[bit/8] ^= 1 << (bit % 8)
		if m.Verify(now, peer, forged) {
			t.Errorf("good with bit %d flipped", bit)
		}
	}
	if m.Verify(now, peer, wire.Token{}) {
		t.Error("zero is good")
	}
	for _, other := range []wire.Addr{address(2, 7), address(1, 8), {}} {
		if m.Verify(now, other, token) {
			t.Errorf("good for %v", other)
		}
	}
	if NewMinter([32]byte{2}).Verify(now, peer, token) {
		t.Error("good under another key: an earlier boot's tokens would be")
	}
	if m.Mint(now, peer) != token {
		t.Error("not a function of its arguments: a retry would look like news")
	}
}
