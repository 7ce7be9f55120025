package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stillwater-rpc/stillwater/wire"
)

var header = wire.Header{
	Flags: wire.PacketHandshake | wire.PacketKeyPhase, Connection: 0x0102030405060708, Number: 9, Stamp: 10, Echo: 11,
}

const headerHex = "10 06 0024 0102030405060708 0000000000000009 0000000a 0000000b"

// goldenPacket holds an open and a busy message.
const goldenPacket = headerHex + "0b 00 0010 00000000 0102030405060708" +
	"06 00 0014 00000001 0000000000000002 0003 0000" + "0000000000000000 0000000000000000"

func buildPacket(buffer []byte, padTo int) []byte {
	b := wire.BeginPacket(buffer)
	b = (&wire.Open{Connection: 0x0102030405060708}).Append(b)
	b = (&wire.Busy{Session: 1, Number: 2, Slot: 3}).Append(b)
	return wire.FinishPacket(b, header, padTo)
}

func TestPacketMatchesTheByteMap(t *testing.T) {
	want := unhex(t, goldenPacket)
	if got := buildPacket(dirty(0, 1472), 0); !bytes.Equal(got, want) {
		t.Errorf("built\n%x, want\n%x", got, want)
	}
	if got := buildPacket(nil, 0); !bytes.Equal(got, want) {
		t.Errorf("built from nil\n%x, want\n%x", got, want)
	}
	p, err := wire.ParsePacket(tight(want))
	if err != nil || p.Header != header || !bytes.Equal(p.Messages, want[28:len(want)-16]) {
		t.Errorf("parsed %+v, %v", p, err)
	}
}

// TestPadding checks that padding and tag are zero whatever the buffer held before, and end where the buffer ends.
func TestPadding(t *testing.T) {
	messages := unhex(t, goldenPacket)[28:64]
	for _, c := range []struct{ padTo, capacity, want int }{
		{0, 1472, 80}, {80, 1472, 80}, {81, 1472, 81}, {1200, 1472, 1200}, {5000, 1472, 1472}, {9000, 80, 80},
	} {
		got := buildPacket(dirty(0, c.capacity), c.padTo)
		if len(got) != c.want || cap(got) != c.capacity {
			t.Errorf("padded to %d: %d bytes of %d, want %d", c.padTo, len(got), cap(got), c.want)
		}
		for i, v := range got[64:] {
			if v != 0 {
				t.Fatalf("padded to %d: byte %d is %#x", c.padTo, 64+i, v)
			}
		}
		p, err := wire.ParsePacket(got)
		if err != nil || !bytes.Equal(p.Messages, messages) {
			t.Errorf("padded to %d: parsed %+v, %v", c.padTo, p, err)
		}
	}
}

func TestRoom(t *testing.T) {
	b := wire.BeginPacket(dirty(0, 100))
	if got := wire.Room(b); got != 100-wire.OverheadBytes {
		t.Errorf("room is %d", got)
	}
	payload := make([]byte, wire.Room(b)-wire.RequestBytes)
	b = (&wire.Request{Payload: payload}).Append(b)
	if got := wire.Room(b); got != 0 {
		t.Errorf("room in a full packet is %d", got)
	}
	if b = wire.FinishPacket(b, header, 0); len(b) != 100 || cap(b) != 100 {
		t.Errorf("a full packet is %d of %d bytes", len(b), cap(b))
	}
}

func TestPacketErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		want error
	}{
		{"no tag", func(b []byte) []byte { return b[:wire.OverheadBytes-1] }, wire.ErrShort},
		{"version 2", func(b []byte) []byte { b[0] = 0x20; return b }, wire.ErrVersion},
		{"reserved bit", func(b []byte) []byte { b[0] = 0x11; return b }, wire.ErrVersion},
		{"unknown flag", func(b []byte) []byte { b[1] = 0x08; return b }, wire.ErrFlags},
		{"one byte too long", func(b []byte) []byte { b[3]++; return b }, wire.ErrLength},
	} {
		if _, err := wire.ParsePacket(c.edit(tight(unhex(t, goldenPacket)))); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestMutilatedPackets(t *testing.T) {
	whole := unhex(t, goldenPacket)
	for cut := range whole {
		if _, err := wire.ParsePacket(tight(whole[:cut])); err == nil {
			t.Errorf("the first %d bytes are accepted", cut)
		}
	}
	for bit := range len(whole) * 8 {
		flipped := tight(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		if p, err := wire.ParsePacket(flipped); err == nil {
			walk(t, p.Messages)
		}
	}
}

func TestTooLargePanics(t *testing.T) {
	for name, do := range map[string]func(){
		"message": func() { (&wire.Reply{Payload: make([]byte, 1<<16)}).Append(nil) },
		"packet":  func() { wire.FinishPacket(make([]byte, 1<<17), header, 0) },
		"frame":   func() { wire.EncodeUDPv4(make([]byte, 1<<17), &wire.Datagram{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a length that its field cannot say was written", name)
				}
			}()
			do()
		}()
	}
}
