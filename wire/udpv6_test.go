package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

// goldenFrameIPv6 was computed apart from this package, after RFC 8200 and RFC 768: [2001:db8::1]:1234 to [2001:db8::99]:5678 with "hello".
const goldenFrameIPv6 = "020000000002 020000000001 86dd" +
	"60000000 000d 11 40 20010db8000000000000000000000001 20010db8000000000000000000000099" +
	"04d2 162e 000d 44f6" + "68656c6c6f"

func goldenDatagramIPv6() wire.Datagram {
	d := goldenDatagram()
	d.Source = wire.AddrFrom(netip.MustParseAddrPort("[2001:db8::1]:1234"))
	d.Destination = wire.AddrFrom(netip.MustParseAddrPort("[2001:db8::99]:5678"))
	return d
}

func encodeIPv6(d wire.Datagram) []byte {
	frame := append(dirty(wire.FrameHeaderBytesIPv6, 2048), d.Payload...)
	wire.EncodeUDPv6(frame, &d)
	return frame
}

// slowChecksumIPv6 lays the pseudo header of RFC 8200, section 8.1, out as the RFC draws it. The frame's lengths are in order.
func slowChecksumIPv6(frame []byte) uint16 {
	ip := frame[14:]
	udp := ip[40:][:binary.BigEndian.Uint16(ip[44:])]
	length := binary.BigEndian.AppendUint32(nil, uint32(len(udp)))
	return slowChecksum(ip[8:24], ip[24:40], length, []byte{0, 0, 0, ip[6]}, udp)
}

// fixIPv6 makes the UDP checksum right again after an edit.
func fixIPv6(frame []byte) []byte {
	frame[60], frame[61] = 0, 0
	binary.BigEndian.PutUint16(frame[60:], slowChecksumIPv6(frame))
	return frame
}

func TestIPv6FrameMatchesTheRFCs(t *testing.T) {
	want := unhex(t, goldenFrameIPv6)
	if got := encodeIPv6(goldenDatagramIPv6()); !bytes.Equal(got, want) {
		t.Errorf("encoded\n%x, want\n%x", got, want)
	}
	if got := slowChecksumIPv6(want); got != 0 {
		t.Errorf("the slow twin finds %#x in the datagram", got)
	}
	for name, parse := range map[string]func([]byte) (wire.Datagram, error){"v6": wire.ParseUDPv6, "any": wire.ParseDatagram} {
		got, err := parse(tight(want))
		if err != nil || !same(got, goldenDatagramIPv6()) {
			t.Errorf("%s: parsed %+v, %v", name, got, err)
		}
		padded, err := parse(append(tight(want), make([]byte, 13)...))
		if err != nil || !same(padded, goldenDatagramIPv6()) {
			t.Errorf("%s: parsed padded %+v, %v", name, padded, err)
		}
	}
	if got, err := wire.ParseDatagram(unhex(t, goldenFrame)); err != nil || !same(got, goldenDatagram()) {
		t.Errorf("IPv4 parsed as %+v, %v", got, err)
	}
	if _, err := wire.ParseUDPv4(want); err != wire.ErrEtherType {
		t.Errorf("as IPv4: %v", err)
	}
	if _, err := wire.ParseUDPv6(unhex(t, goldenFrame)); err != wire.ErrEtherType {
		t.Errorf("IPv4 as IPv6: %v", err)
	}
}

func TestIPv6View(t *testing.T) {
	b := unhex(t, goldenFrameIPv6)[14:]
	b[0], b[1], b[2], b[3], b[7] = 0x6a, 0xb1, 0x23, 0x45, 7
	ip, err := wire.ParseIPv6(b)
	if err != nil || ip.TrafficClass() != 0xab || ip.FlowLabel() != 0x12345 || ip.NextHeader() != 17 || ip.HopLimit() != 7 || len(ip.Payload()) != 13 {
		t.Errorf("view %x, %v", ip, err)
	}
	if want := goldenDatagramIPv6(); ip.Source() != want.Source.IP || ip.Destination() != want.Destination.IP {
		t.Errorf("from %x to %x", ip.Source(), ip.Destination())
	}
}

// TestIPv6ChecksumZero sends the one payload in 65,536 whose checksum is 0, which UDP must not write.
func TestIPv6ChecksumZero(t *testing.T) {
	d := goldenDatagramIPv6()
	d.Payload = []byte{0, 0}
	frame := encodeIPv6(d)
	copy(frame[62:], frame[60:62]) // a payload of the checksum itself makes the sum all ones
	wire.EncodeUDPv6(frame, &d)
	if frame[60] != 0xff || frame[61] != 0xff {
		t.Errorf("checksum is %x, want ffff", frame[60:62])
	}
	if _, err := wire.ParseUDPv6(frame); err != nil {
		t.Error(err)
	}
	frame[60], frame[61] = 0, 0
	if _, err := wire.ParseUDPv6(frame); err != wire.ErrChecksum {
		t.Errorf("without a checksum: %v", err)
	}
}

// TestRandomIPv6Frames round-trips every size that a link of 1500 bytes carries, and the largest that there is.
func TestRandomIPv6Frames(t *testing.T) {
	random := seedtest.Rand(t)
	size := 0
	for size <= wire.MaxUDPPayloadBytesIPv6 {
		d := goldenDatagramIPv6()
		for i := 1; i < 16; i++ {
			d.Source.IP[i], d.Destination.IP[i] = byte(random.Uint32()), byte(random.Uint32())
		}
		d.Source.Port, d.Destination.Port = uint16(1+random.IntN(65535)), uint16(random.Uint32())
		d.Payload = make([]byte, size)
		for i := range d.Payload {
			d.Payload[i] = byte(random.Uint32())
		}
		frame := encodeIPv6(d)
		if slowChecksumIPv6(frame) != 0 {
			t.Fatalf("the slow twin finds the checksum of %d bytes wrong", size)
		}
		if got, err := wire.ParseUDPv6(frame); err != nil || !same(got, d) {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if size++; size == 1453 {
			size = wire.MaxUDPPayloadBytesIPv6
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a payload that is too long was encoded")
		}
	}()
	encodeIPv6(wire.Datagram{Payload: make([]byte, wire.MaxUDPPayloadBytesIPv6+1)})
}

// TestMutilatedIPv6Frames: every bit behind the Ethernet addresses is covered by a check, but for those that routers
// may change: traffic class, flow label and hop limit.
func TestMutilatedIPv6Frames(t *testing.T) {
	whole := unhex(t, goldenFrameIPv6)
	for cut := range whole {
		if _, err := wire.ParseUDPv6(tight(whole[:cut])); err == nil {
			t.Errorf("the first %d bytes are accepted", cut)
		}
		if _, err := wire.ParseDatagram(tight(whole[:cut])); err == nil {
			t.Errorf("the first %d bytes are accepted", cut)
		}
	}
	for bit := 12 * 8; bit < len(whole)*8; bit++ {
		flipped := tight(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		free := bit/8 == 14 && bit%8 < 4 || bit/8 > 14 && bit/8 < 18 || bit/8 == 21
		if _, err := wire.ParseUDPv6(flipped); (err == nil) != free {
			t.Errorf("bit %d of byte %d flipped: %v", bit%8, bit/8, err)
		}
	}
}

func TestIPv6FrameErrors(t *testing.T) {
	next := func(header byte) func([]byte) []byte { return func(b []byte) []byte { b[20] = header; return b } }
	source := func(text string) func([]byte) []byte {
		ip := netip.MustParseAddr(text).As16()
		return func(b []byte) []byte { copy(b[22:], ip[:]); return fixIPv6(b) }
	}
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		want error
	}{
		{"no Ethernet header", func(b []byte) []byte { return b[:13] }, wire.ErrShort},
		{"VLAN tag", func(b []byte) []byte { b[12], b[13] = 0x81, 0; return b }, wire.ErrEtherType},
		{"IPv6 header cut", func(b []byte) []byte { return b[:53] }, wire.ErrShort},
		{"IP version 4", func(b []byte) []byte { b[14] = 0x45; return b }, wire.ErrIPVersion},
		{"payload beyond the frame", func(b []byte) []byte { b[19]++; return b }, wire.ErrLength},
		{"payload far beyond the frame", func(b []byte) []byte { b[18] = 0xff; return b }, wire.ErrLength},
		{"empty payload", func(b []byte) []byte { b[19] = 0; return b }, wire.ErrShort},
		{"jumbogram", func(b []byte) []byte { b[19], b[20] = 0, 0; return b }, wire.ErrProtocol},
		{"UDP header cut", func(b []byte) []byte { b[19] = 7; return b }, wire.ErrShort},
		{"hop-by-hop options", next(0), wire.ErrProtocol},
		{"routing header", next(43), wire.ErrProtocol},
		{"fragment", next(44), wire.ErrProtocol},
		{"TCP", next(6), wire.ErrProtocol},
		{"UDP length below its header", func(b []byte) []byte { b[59] = 7; return b }, wire.ErrLength},
		{"UDP length beyond the packet", func(b []byte) []byte { b[59]++; return b }, wire.ErrLength},
		{"UDP checksum", func(b []byte) []byte { b[66]++; return b }, wire.ErrChecksum},
		{"no UDP checksum", func(b []byte) []byte { b[60], b[61] = 0, 0; return b }, wire.ErrChecksum},
		{"source port 0", func(b []byte) []byte { b[54], b[55] = 0, 0; return fixIPv6(b) }, wire.ErrSource},
		{"unspecified source", source("::"), wire.ErrSource},
		{"loopback source", source("::1"), wire.ErrSource},
		{"multicast source", source("ff02::1"), wire.ErrSource},
		{"IPv4-mapped source", source("::ffff:10.0.0.1"), wire.ErrSource},
		{"link-local source", source("fe80::1"), nil},
		{"source ::2", source("::2"), nil},
		{"source ::fffe:0:1", source("::fffe:0:1"), nil},
		{"IPv4-mapped destination", func(b []byte) []byte {
			copy(b[38:], []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})
			return fixIPv6(b)
		}, wire.ErrDestination},
		{"bytes behind the datagram", func(b []byte) []byte { b[19] += 3; return append(b, 1, 2, 3) }, nil},
	} {
		if _, err := wire.ParseUDPv6(c.edit(tight(unhex(t, goldenFrameIPv6)))); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
