package wire

import (
	"encoding/binary"
	"math/bits"
)

const (
	// UDPHeaderBytes is the size of a UDP header.
	UDPHeaderBytes = 8
	// FrameHeaderBytes is what stands before a UDP payload over IPv4: Ethernet, IPv4 without options, UDP.
	FrameHeaderBytes = EthernetHeaderBytes + IPv4HeaderBytes + UDPHeaderBytes
	// FrameHeaderBytesIPv6 is the same over IPv6, without extension headers.
	FrameHeaderBytesIPv6 = EthernetHeaderBytes + IPv6HeaderBytes + UDPHeaderBytes
	// MaxUDPPayloadBytes is the largest payload whose IPv4 packet can say its length.
	MaxUDPPayloadBytes = maxLength - IPv4HeaderBytes - UDPHeaderBytes
	// MaxUDPPayloadBytesIPv6 is the same for IPv6, whose length field does not count the header.
	MaxUDPPayloadBytesIPv6 = maxLength - UDPHeaderBytes
)

// UDP is a view of a UDP datagram, cut to its length; see [ParseUDP].
type UDP []byte

// ParseUDP checks the length. What follows it in the IP packet is cut off (RFC 9868 puts options there). The
// checksum covers the addresses too, so it is for who has them: [ParseUDPv4] and [ParseUDPv6].
func ParseUDP(b []byte) (UDP, error) {
	if len(b) < UDPHeaderBytes {
		return nil, ErrShort
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length < UDPHeaderBytes || length > len(b) {
		return nil, ErrLength
	}
	return UDP(b[:length:length]), nil
}

// SourcePort is the sender's port.
func (u UDP) SourcePort() uint16 { return binary.BigEndian.Uint16(u[0:]) }

// DestinationPort is the receiver's port.
func (u UDP) DestinationPort() uint16 { return binary.BigEndian.Uint16(u[2:]) }

// Checksum is the checksum field; 0 = the sender computed none.
func (u UDP) Checksum() uint16 { return binary.BigEndian.Uint16(u[6:]) }

// Payload is what follows the header.
func (u UDP) Payload() []byte { return u[UDPHeaderBytes:] }

// Datagram is a parsed UDP datagram with its Ethernet frame. Payload aliases the frame.
type Datagram struct {
	SourceMAC      MAC
	DestinationMAC MAC
	Source         Addr
	Destination    Addr
	Payload        []byte
}

// ParseDatagram is [ParseUDPv4] or [ParseUDPv6], as the EtherType says. The family of the addresses in the result is always that of the
// packet: an IPv6 packet with an IPv4-mapped one is refused.
func ParseDatagram(frame []byte) (Datagram, error) {
	if len(frame) >= EthernetHeaderBytes && Ethernet(frame).EtherType() == EtherTypeIPv6 {
		return ParseUDPv6(frame)
	}
	return ParseUDPv4(frame)
}

// ParseUDPv4 parses an Ethernet frame with a UDP datagram over IPv4, and verifies everything that the kernel's
// stack would, since frames off an XDP socket have passed none of it: lengths, both checksums, no fragments, and a
// source that can be answered. A UDP checksum of 0 (none computed, RFC 768) is accepted.
func ParseUDPv4(frame []byte) (Datagram, error) {
	ethernet, err := ParseEthernet(frame)
	if err != nil {
		return Datagram{}, err
	}
	if ethernet.EtherType() != EtherTypeIPv4 {
		return Datagram{}, ErrEtherType
	}
	ip, err := ParseIPv4(ethernet.Payload())
	if err != nil {
		return Datagram{}, err
	}
	if ip.Protocol() != ProtocolUDP {
		return Datagram{}, ErrProtocol
	}
	udp, err := ParseUDP(ip.Payload())
	if err != nil {
		return Datagram{}, err
	}
	if udp.Checksum() != 0 && fold(sum(udp, pseudo(ip, len(udp)))) != 0xffff {
		return Datagram{}, ErrChecksum
	}
	if !unicast(ip[12:16]) || udp.SourcePort() == 0 {
		return Datagram{}, ErrSource
	}
	return Datagram{
		SourceMAC:      ethernet.Source(),
		DestinationMAC: ethernet.Destination(),
		Source:         Addr{IP: ip.Source(), Port: udp.SourcePort()},
		Destination:    Addr{IP: ip.Destination(), Port: udp.DestinationPort()},
		Payload:        udp.Payload(),
	}, nil
}

// unicast refuses the sources that no host may have (RFC 1122, section 3.2.1.3): this network, multicast, the
// reserved class and broadcast. An answer to them would go to everybody or to nobody.
func unicast(ip []byte) bool { return ip[0] != 0 && ip[0] < 224 }

// pseudo is the partial sum of the pseudo header (RFC 768): the addresses of the IPv4 header, protocol, length.
func pseudo(ip []byte, length int) uint64 {
	addresses := uint64(binary.LittleEndian.Uint32(ip[12:])) + uint64(binary.LittleEndian.Uint32(ip[16:]))
	return addresses + ProtocolUDP<<8 + uint64(bits.ReverseBytes16(uint16(length)))
}

// EncodeUDPv4 writes the headers of a UDP datagram over IPv4 into the first [FrameHeaderBytes] bytes of frame, whose
// payload is already in place behind them, with both checksums. The addresses of d must be IPv4 and its payload is
// not looked at; the frame has at most FrameHeaderBytes + [MaxUDPPayloadBytes] bytes.
func EncodeUDPv4(frame []byte, d *Datagram) {
	if len(frame) > FrameHeaderBytes+MaxUDPPayloadBytes {
		panic("wire: UDP payload of more than MaxUDPPayloadBytes")
	}
	encodeEthernet(frame, d.SourceMAC, d.DestinationMAC, EtherTypeIPv4)
	ip := frame[EthernetHeaderBytes:]
	encodeIPv4(ip, d.Source, d.Destination, len(ip))
	udp := ip[IPv4HeaderBytes:]
	encodeUDP(udp, d, pseudo(ip, len(udp)))
}

// encodeUDP writes the header of a datagram whose pseudo header has the given partial sum.
func encodeUDP(udp []byte, d *Datagram, pseudo uint64) {
	_ = udp[UDPHeaderBytes-1]
	binary.BigEndian.PutUint16(udp[0:], d.Source.Port)
	binary.BigEndian.PutUint16(udp[2:], d.Destination.Port)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	binary.BigEndian.PutUint16(udp[6:], 0)
	checksum := ^fold(sum(udp, pseudo))
	if checksum == 0 {
		checksum = 0xffff // the other zero: 0 would say that there is none (RFC 768)
	}
	binary.BigEndian.PutUint16(udp[6:], checksum)
}
