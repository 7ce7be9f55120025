package wire_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stillwater-rpc/stillwater/wire"
)

// goldenFrame was computed apart from this package, after RFC 791 and RFC 768: 192.168.0.1:1234 to 192.168.0.199:5678 with "hello".
const goldenFrame = "020000000002 020000000001 0800" +
	"45 00 0021 0000 4000 40 11 b8b3 c0a80001 c0a800c7" +
	"04d2 162e 000d 1ee9" + "68656c6c6f"

func goldenDatagram() wire.Datagram {
	return wire.Datagram{
		SourceMAC: wire.MAC{2, 0, 0, 0, 0, 1}, DestinationMAC: wire.MAC{2, 0, 0, 0, 0, 2},
		Source:      wire.AddrFrom(netip.MustParseAddrPort("192.168.0.1:1234")),
		Destination: wire.AddrFrom(netip.MustParseAddrPort("192.168.0.199:5678")),
		Payload:     []byte("hello"),
	}
}

// slowChecksum is RFC 1071 to the letter, one word at a time.
func slowChecksum(parts ...[]byte) uint16 {
	sum := 0
	for _, b := range parts { // all but the last are of even length
		for i := 0; i < len(b); i += 2 {
			word := int(b[i]) << 8
			if i+1 < len(b) {
				word |= int(b[i+1])
			}
			if sum += word; sum > 0xffff {
				sum = sum&0xffff + 1
			}
		}
	}
	return ^uint16(sum)
}

func encode(d wire.Datagram) []byte {
	frame := append(dirty(wire.FrameHeaderBytes, 2048), d.Payload...)
	wire.EncodeUDPv4(frame, &d)
	return frame
}

func TestFrameMatchesTheRFCs(t *testing.T) {
	want := unhex(t, goldenFrame)
	if got := encode(goldenDatagram()); !bytes.Equal(got, want) {
		t.Errorf("encoded\n%x, want\n%x", got, want)
	}
	if got := slowChecksum(want[14:34]); got != 0 {
		t.Errorf("the slow twin finds %#x in the IPv4 header", got)
	}
	if got := slowChecksum(want[26:34], []byte{0, 17, 0, 13}, want[34:]); got != 0 {
		t.Errorf("the slow twin finds %#x in the datagram", got)
	}
	got, err := wire.ParseUDPv4(tight(want))
	if err != nil || !same(got, goldenDatagram()) {
		t.Errorf("parsed %+v, %v", got, err)
	}
	padded, err := wire.ParseUDPv4(append(want, make([]byte, 13)...)) // Ethernet pads to 60 bytes
	if err != nil || !same(padded, goldenDatagram()) {
		t.Errorf("parsed padded %+v, %v", padded, err)
	}
}

func TestChecksumTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	buffer := make([]byte, 1600)
	for range 5000 {
		b := buffer[random.IntN(8):][:random.IntN(1500)]
		switch random.IntN(4) {
		case 0:
			for i := range b {
				b[i] = 0xff // carries everywhere
			}
		case 1:
			clear(b)
		default:
			for i := range b {
				b[i] = byte(random.Uint32())
			}
		}
		if got, want := wire.Checksum(b), slowChecksum(b); got != want {
			t.Fatalf("checksum of %x is %#x, the slow twin says %#x", b, got, want)
		}
	}
}

// TestChecksumZero sends the one payload in 65,536 whose checksum is 0, which UDP must not write.
func TestChecksumZero(t *testing.T) {
	d := goldenDatagram()
	d.Payload = []byte{0, 0}
	frame := encode(d)
	copy(frame[42:], frame[40:42]) // a payload of the checksum itself makes the sum all ones
	wire.EncodeUDPv4(frame, &d)
	if frame[40] != 0xff || frame[41] != 0xff {
		t.Errorf("checksum is %x, want ffff", frame[40:42])
	}
	if _, err := wire.ParseUDPv4(frame); err != nil {
		t.Error(err)
	}
}

func TestRandomFramesRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		d := goldenDatagram()
		d.Source.IP[12] = byte(1 + random.IntN(223))
		d.Source.Port = uint16(1 + random.IntN(65535))
		d.Destination.IP[15] = byte(random.Uint32())
		d.Payload = make([]byte, random.IntN(1473))
		for i := range d.Payload {
			d.Payload[i] = byte(random.Uint32())
		}
		frame := encode(d)
		if got, err := wire.ParseUDPv4(frame); err != nil || !same(got, d) {
			t.Fatalf("%+v came back as %+v, %v", d, got, err)
		}
	}
}

// TestMutilatedFrames: every bit behind the Ethernet addresses is covered by a check.
func TestMutilatedFrames(t *testing.T) {
	whole := unhex(t, goldenFrame)
	for cut := range whole {
		if _, err := wire.ParseUDPv4(tight(whole[:cut])); err == nil {
			t.Errorf("the first %d bytes are accepted", cut)
		}
	}
	for bit := 12 * 8; bit < len(whole)*8; bit++ {
		flipped := tight(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		if _, err := wire.ParseUDPv4(flipped); err == nil {
			t.Errorf("bit %d of byte %d flipped, and nobody noticed", bit%8, bit/8)
		}
	}
}

// fixIPv4 makes the header checksum right again after an edit.
func fixIPv4(frame []byte) {
	header := frame[14 : 14+int(frame[14]&0x0f)*4]
	header[10], header[11] = 0, 0
	c := slowChecksum(header)
	header[10], header[11] = byte(c>>8), byte(c)
}

func TestFrameErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		want error
	}{
		{"no Ethernet header", func(b []byte) []byte { return b[:13] }, wire.ErrShort},
		{"VLAN tag", func(b []byte) []byte { b[12], b[13] = 0x81, 0; return b }, wire.ErrEtherType},
		{"IPv4 header cut", func(b []byte) []byte { return b[:33] }, wire.ErrShort},
		{"IP version 6", func(b []byte) []byte { b[14] = 0x65; return b }, wire.ErrIPVersion},
		{"header of four words", func(b []byte) []byte { b[14] = 0x44; return b }, wire.ErrLength},
		{"header beyond the packet", func(b []byte) []byte { b[14] = 0x4f; return b }, wire.ErrLength},
		{"total below the header", func(b []byte) []byte { b[17] = 19; return b }, wire.ErrLength},
		{"total beyond the frame", func(b []byte) []byte { b[17]++; return b }, wire.ErrLength},
		{"first fragment", func(b []byte) []byte { b[20] = 0x20; fixIPv4(b); return b }, wire.ErrFragment},
		{"last fragment", func(b []byte) []byte { b[21] = 1; fixIPv4(b); return b }, wire.ErrFragment},
		{"header checksum", func(b []byte) []byte { b[24]++; return b }, wire.ErrHeaderChecksum},
		{"TCP", func(b []byte) []byte { b[23] = 6; fixIPv4(b); return b }, wire.ErrProtocol},
		{"UDP header cut", func(b []byte) []byte { b[17] = 27; fixIPv4(b); return b[:14+27] }, wire.ErrShort},
		{"UDP length below its header", func(b []byte) []byte { b[39] = 7; return b }, wire.ErrLength},
		{"UDP length beyond the packet", func(b []byte) []byte { b[39]++; return b }, wire.ErrLength},
		{"UDP checksum", func(b []byte) []byte { b[46]++; return b }, wire.ErrChecksum},
		{"source port 0", func(b []byte) []byte { b[34], b[35], b[40], b[41] = 0, 0, 0, 0; return b }, wire.ErrSource},
		{"multicast source", func(b []byte) []byte { b[26], b[40], b[41] = 224, 0, 0; fixIPv4(b); return b }, wire.ErrSource},
		{"source of this network", func(b []byte) []byte { b[26], b[40], b[41] = 0, 0, 0; fixIPv4(b); return b }, wire.ErrSource},
		{"no UDP checksum", func(b []byte) []byte { b[40], b[41], b[46] = 0, 0, 0; return b }, nil},
		{"bytes behind the datagram", func(b []byte) []byte { b[17] += 3; fixIPv4(b); return append(b, 1, 2, 3) }, nil},
	} {
		if _, err := wire.ParseUDPv4(c.edit(tight(unhex(t, goldenFrame)))); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestIPv4Options(t *testing.T) {
	b := unhex(t, goldenFrame)
	with := append(append(append([]byte{}, b[:34]...), 1, 1, 1, 1), b[34:]...) // four no-operation options
	with[14], with[17] = 0x46, with[17]+4
	fixIPv4(with)
	if got, err := wire.ParseUDPv4(with); err != nil || !same(got, goldenDatagram()) {
		t.Errorf("parsed %+v, %v", got, err)
	}
	ip, err := wire.ParseIPv4(with[14:])
	if err != nil || ip.HeaderLength() != 24 || ip.TTL() != 64 || ip.TrafficClass() != 0 || len(ip.Payload()) != 13 {
		t.Errorf("view %x, %v", ip, err)
	}
}

func TestAddresses(t *testing.T) {
	d := goldenDatagram()
	if got := d.Source.String(); got != "192.168.0.1:1234" || !d.Source.IsIPv4() {
		t.Errorf("source is %q, IPv4 %v", got, d.Source.IsIPv4())
	}
	if six := wire.AddrFrom(netip.MustParseAddrPort("[2001:db8::1]:1")); six.IsIPv4() {
		t.Errorf("%v passes for IPv4", six)
	}
	if got := d.SourceMAC.String(); got != "02:00:00:00:00:01" {
		t.Errorf("MAC is %q", got)
	}
}
