package wire

import "encoding/binary"

const (
	// IPv4HeaderBytes is the size of an IPv4 header without options.
	IPv4HeaderBytes = 20
	// ProtocolUDP is the IP protocol number of UDP.
	ProtocolUDP = 17

	ipv4DontFragment  = 0x4000
	ipv4FragmentMask  = 0x3fff // more fragments, and the offset
	hopLimit          = 64     // the recommended default, RFC 1700
	ipv4VersionAndIHL = 0x45   // version 4, five words
)

// IPv4 is a view of an IPv4 packet, cut to its total length; see [ParseIPv4].
type IPv4 []byte

// ParseIPv4 checks version, header length, total length, that it is no fragment, and the header checksum. What
// follows the total length is cut off: Ethernet pads short packets.
func ParseIPv4(b []byte) (IPv4, error) {
	if len(b) < IPv4HeaderBytes {
		return nil, ErrShort
	}
	if b[0]>>4 != 4 {
		return nil, ErrIPVersion
	}
	header := int(b[0]&0x0f) * 4
	total := int(binary.BigEndian.Uint16(b[2:]))
	if header < IPv4HeaderBytes || total < header || total > len(b) {
		return nil, ErrLength
	}
	if binary.BigEndian.Uint16(b[6:])&ipv4FragmentMask != 0 {
		return nil, ErrFragment
	}
	partial := headerSum(b)
	if header > IPv4HeaderBytes {
		partial = sum(b[IPv4HeaderBytes:header], partial)
	}
	if fold(partial) != 0xffff {
		return nil, ErrHeaderChecksum
	}
	return IPv4(b[:total:total]), nil
}

// HeaderLength is the size of the header with its options.
func (p IPv4) HeaderLength() int { return int(p[0]&0x0f) * 4 }

// TrafficClass is the byte of DSCP and ECN.
func (p IPv4) TrafficClass() uint8 { return p[1] }

// TTL is how many hops are left.
func (p IPv4) TTL() uint8 { return p[8] }

// Protocol says what the payload is.
func (p IPv4) Protocol() uint8 { return p[9] }

// Source is the sender's address, IPv4-mapped.
func (p IPv4) Source() [16]byte { return mapped(p[12:16]) }

// Destination is the receiver's address, IPv4-mapped.
func (p IPv4) Destination() [16]byte { return mapped(p[16:20]) }

// Payload is what follows the header.
func (p IPv4) Payload() []byte { return p[p.HeaderLength():] }

// mapped is the IPv4-mapped form of four bytes (RFC 4291, section 2.5.5.2).
func mapped(b []byte) (ip [16]byte) {
	ip[10], ip[11] = 0xff, 0xff
	copy(ip[12:], b[:4])
	return ip
}

// IsIPv4 reports whether the address is IPv4-mapped.
func (a Addr) IsIPv4() bool {
	return binary.BigEndian.Uint64(a.IP[0:]) == 0 && binary.BigEndian.Uint32(a.IP[8:]) == 0xffff
}

// headerSum is the partial sum of the header without options.
func headerSum(b []byte) uint64 {
	_ = b[IPv4HeaderBytes-1]
	return uint64(binary.LittleEndian.Uint32(b)) + uint64(binary.LittleEndian.Uint32(b[4:])) +
		uint64(binary.LittleEndian.Uint32(b[8:])) + uint64(binary.LittleEndian.Uint32(b[12:])) +
		uint64(binary.LittleEndian.Uint32(b[16:]))
}

// encodeIPv4 writes a header without options. Don't-fragment is set and the identification zero: a packet that is
// never cut needs none (RFC 6864, section 4.1).
func encodeIPv4(b []byte, source, destination Addr, total int) {
	_ = b[IPv4HeaderBytes-1]
	b[0], b[1] = ipv4VersionAndIHL, 0
	binary.BigEndian.PutUint16(b[2:], uint16(total))
	binary.BigEndian.PutUint16(b[4:], 0)
	binary.BigEndian.PutUint16(b[6:], ipv4DontFragment)
	b[8], b[9] = hopLimit, ProtocolUDP
	binary.BigEndian.PutUint16(b[10:], 0)
	copy(b[12:16], source.IP[12:])
	copy(b[16:20], destination.IP[12:])
	binary.BigEndian.PutUint16(b[10:], ^fold(headerSum(b)))
}
