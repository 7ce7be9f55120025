package capture

import (
	"encoding/binary"

	"github.com/stillwater-rpc/stillwater/wire"
)

const (
	ipv6HeaderBytes = 40
	// headersMax is the most that stands before a payload in the file.
	headersMax = ipv6HeaderBytes + wire.UDPHeaderBytes
	hopLimit   = 64 // the ports' own packets have it; of others it is not known
)

// appendHeaders appends the headers of IP and UDP that a payload between two addresses may have had, checksums included. Both are IPv4 or both IPv6.
func appendHeaders(b []byte, from, to *wire.Addr, payload []byte, ipv4 bool) []byte {
	var h [headersMax]byte
	length := wire.UDPHeaderBytes + len(payload)
	head, addresses := h[:], 8
	if ipv4 {
		head, addresses = h[:wire.IPv4HeaderBytes+wire.UDPHeaderBytes], 12
		h[0] = 0x45 // version 4, five words
		binary.BigEndian.PutUint16(h[2:], uint16(wire.IPv4HeaderBytes+length))
		h[6] = 0x40 // don't fragment
		h[8], h[9] = hopLimit, wire.ProtocolUDP
		copy(h[12:], from.IP[12:])
		copy(h[16:], to.IP[12:])
		binary.BigEndian.PutUint16(h[10:], wire.Checksum(h[:wire.IPv4HeaderBytes]))
	} else {
		h[0] = 0x60
		binary.BigEndian.PutUint16(h[4:], uint16(length))
		h[6], h[7] = wire.ProtocolUDP, hopLimit
		copy(h[8:], from.IP[:])
		copy(h[24:], to.IP[:])
	}
	udp := head[len(head)-wire.UDPHeaderBytes:]
	binary.BigEndian.PutUint16(udp, from.Port)
	binary.BigEndian.PutUint16(udp[2:], to.Port)
	binary.BigEndian.PutUint16(udp[4:], uint16(length))
	binary.BigEndian.PutUint16(udp[6:], udpChecksum(head[addresses:], payload, length))
	return append(b, head...)
}

// udpChecksum is the checksum of a datagram (RFC 768; RFC 8200, section 8.1). The addresses stand right before the UDP header in either IP, so
// they are summed with it.
func udpChecksum(addressesAndHeader, payload []byte, length int) uint16 {
	sum := uint32(^wire.Checksum(addressesAndHeader)) + uint32(^wire.Checksum(payload)) + uint32(length) + wire.ProtocolUDP
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	if sum == 0xffff {
		return 0xffff // the other zero: 0 would say that there is none
	}
	return ^uint16(sum)
}
