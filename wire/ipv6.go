package wire

import (
	"encoding/binary"
	"math/bits"
)

const (
	// IPv6HeaderBytes is the size of the fixed IPv6 header (RFC 8200, section 3).
	IPv6HeaderBytes = 40

	ipv6Version = 6 << 28 // the traffic class and the flow label, which follow it, are zero
)

// IPv6 is a view of an IPv6 packet, cut to its payload length; see [ParseIPv6].
type IPv6 []byte

// ParseIPv6 checks version and payload length. What follows the payload is cut off: Ethernet pads short packets. The
// header has no checksum of its own: that of UDP covers the addresses. A jumbogram (RFC 2675) says that its payload is
// empty, and is that here.
func ParseIPv6(b []byte) (IPv6, error) {
	if len(b) < IPv6HeaderBytes {
		return nil, ErrShort
	}
	if b[0]>>4 != 6 {
		return nil, ErrIPVersion
	}
	total := IPv6HeaderBytes + int(binary.BigEndian.Uint16(b[4:]))
	if total > len(b) {
		return nil, ErrLength
	}
	return IPv6(b[:total:total]), nil
}

// TrafficClass is the byte of DSCP and ECN.
func (p IPv6) TrafficClass() uint8 { return uint8(binary.BigEndian.Uint16(p[0:]) >> 4) }

// FlowLabel is the sender's name for the flow, 20 bits; 0 = none.
func (p IPv6) FlowLabel() uint32 { return binary.BigEndian.Uint32(p[0:]) & 0xfffff }

// NextHeader says what follows the fixed header: a protocol, or an extension header.
func (p IPv6) NextHeader() uint8 { return p[6] }

// HopLimit is how many hops are left.
func (p IPv6) HopLimit() uint8 { return p[7] }

// Source is the sender's address.
func (p IPv6) Source() [16]byte { return [16]byte(p[8:24]) }

// Destination is the receiver's address.
func (p IPv6) Destination() [16]byte { return [16]byte(p[24:40]) }

// Payload is what follows the fixed header.
func (p IPv6) Payload() []byte { return p[IPv6HeaderBytes:] }

// encodeIPv6 writes the fixed header. There is no flow label: who spreads flows has addresses and ports to do it by.
func encodeIPv6(b []byte, source, destination *Addr, payload int) {
	_ = b[IPv6HeaderBytes-1]
	binary.BigEndian.PutUint32(b, ipv6Version)
	binary.BigEndian.PutUint16(b[4:], uint16(payload))
	b[6], b[7] = ProtocolUDP, hopLimit
	copy(b[8:24], source.IP[:])
	copy(b[24:40], destination.IP[:])
}

// pseudoIPv6 is the partial sum of the pseudo header (RFC 8200, section 8.1): the addresses of the header, length, protocol.
func pseudoIPv6(ip []byte, length int) uint64 {
	return sum(ip[8:40], ProtocolUDP<<8+uint64(bits.ReverseBytes16(uint16(length))))
}

// unicastIPv6 refuses the sources that no packet on a link may have: unspecified, loopback (RFC 4291, sections 2.5.2 and 2.5.3),
// multicast (2.7), and IPv4-mapped (2.5.5.2), which would pass for an IPv4 peer here.
func unicastIPv6(ip *[16]byte) bool {
	if ip[0] == 0xff {
		return false
	}
	if binary.BigEndian.Uint64(ip[:]) != 0 {
		return true
	}
	low := binary.BigEndian.Uint64(ip[8:])
	return low > 1 && low>>32 != 0xffff
}
