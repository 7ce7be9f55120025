package capture

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

// sumOf is the one's complement sum, as one would write it on paper.
func sumOf(b []byte) uint16 {
	sum := 0
	for i, v := range b {
		sum += int(v) << (8 * (1 - i%2))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// TestHeaders makes up headers and reads them: with the parser that frames off an XDP socket go through, and for IPv6 by hand.
func TestHeaders(t *testing.T) {
	random := seedtest.Rand(t)
	for range 2000 {
		payload := make([]byte, random.IntN(1500))
		for i := range payload {
			payload[i] = byte(random.Uint32())
		}
		var ip [16]byte
		for i := range ip {
			ip[i] = byte(random.Uint32())
		}
		port := uint16(1 + random.IntN(65535))
		from4 := wire.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, ip[0], ip[1], ip[2]}), port))
		to4 := wire.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, ip[3], ip[4], ip[5]}), port^1))
		frame := make([]byte, wire.EthernetHeaderBytes)
		binary.BigEndian.PutUint16(frame[12:], wire.EtherTypeIPv4)
		frame = append(appendHeaders(frame, &from4, &to4, payload, true), payload...)
		d, err := wire.ParseUDPv4(frame)
		if err != nil || d.Source != from4 || d.Destination != to4 || !bytes.Equal(d.Payload, payload) {
			t.Fatalf("%v: %+v, want %v to %v", err, d, from4, to4)
		}

		from6, to6 := wire.Addr{IP: ip, Port: port}, wire.Addr{IP: ip, Port: port ^ 1}
		to6.IP[0] ^= 1
		packet := append(appendHeaders(nil, &from6, &to6, payload, false), payload...)
		length := len(packet) - ipv6HeaderBytes
		if packet[0] != 0x60 || int(binary.BigEndian.Uint16(packet[4:])) != length || packet[6] != 17 || packet[7] != 64 ||
			[16]byte(packet[8:]) != from6.IP || [16]byte(packet[24:]) != to6.IP {
			t.Fatalf("IPv6 header %x", packet[:ipv6HeaderBytes])
		}
		udp := packet[ipv6HeaderBytes:]
		if binary.BigEndian.Uint16(udp) != from6.Port || binary.BigEndian.Uint16(udp[2:]) != to6.Port || int(binary.BigEndian.Uint16(udp[4:])) != length {
			t.Fatalf("UDP header %x", udp[:8])
		}
		pseudo := append(bytes.Clone(packet[8:40]), 0, 0, byte(length>>8), byte(length), 0, 0, 0, 17)
		if sum := sumOf(append(pseudo, udp...)); sum != 0xffff || udp[6] == 0 && udp[7] == 0 {
			t.Fatalf("the checksum %x leaves %x", udp[6:8], sum)
		}
	}
}
