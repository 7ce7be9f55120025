package wire

// ParseUDPv6 parses an Ethernet frame with a UDP datagram right behind the fixed IPv6 header, and verifies what the
// kernel's stack would: lengths, the UDP checksum, which must be there (RFC 8200, section 8.1), and a source that can be
// answered. Extension headers are refused: what has them comes by the kernel's socket.
func ParseUDPv6(frame []byte) (Datagram, error) {
	ethernet, err := ParseEthernet(frame)
	if err != nil {
		return Datagram{}, err
	}
	if ethernet.EtherType() != EtherTypeIPv6 {
		return Datagram{}, ErrEtherType
	}
	ip, err := ParseIPv6(ethernet.Payload())
	if err != nil {
		return Datagram{}, err
	}
	if ip.NextHeader() != ProtocolUDP {
		return Datagram{}, ErrProtocol
	}
	udp, err := ParseUDP(ip.Payload())
	if err != nil {
		return Datagram{}, err
	}
	if udp.Checksum() == 0 || fold(sum(udp, pseudoIPv6(ip, len(udp)))) != 0xffff {
		return Datagram{}, ErrChecksum
	}
	d := Datagram{
		SourceMAC:      ethernet.Source(),
		DestinationMAC: ethernet.Destination(),
		Source:         Addr{IP: ip.Source(), Port: udp.SourcePort()},
		Destination:    Addr{IP: ip.Destination(), Port: udp.DestinationPort()},
		Payload:        udp.Payload(),
	}
	if !unicastIPv6(&d.Source.IP) || d.Source.Port == 0 {
		return Datagram{}, ErrSource
	}
	if d.Destination.IsIPv4() {
		return Datagram{}, ErrDestination
	}
	return d, nil
}

// EncodeUDPv6 writes the headers of a UDP datagram over IPv6 into the first [FrameHeaderBytesIPv6] bytes of frame, whose
// payload is already in place behind them, with the checksum. The addresses of d must be IPv6 and its payload is
// not looked at; the frame has at most FrameHeaderBytesIPv6 + [MaxUDPPayloadBytesIPv6] bytes.
func EncodeUDPv6(frame []byte, d *Datagram) {
	if len(frame) > FrameHeaderBytesIPv6+MaxUDPPayloadBytesIPv6 {
		panic("wire: UDP payload of more than MaxUDPPayloadBytesIPv6")
	}
	encodeEthernet(frame, d.SourceMAC, d.DestinationMAC, EtherTypeIPv6)
	ip := frame[EthernetHeaderBytes:]
	udp := ip[IPv6HeaderBytes:]
	encodeIPv6(ip, &d.Source, &d.Destination, len(udp))
	encodeUDP(udp, d, pseudoIPv6(ip, len(udp)))
}
