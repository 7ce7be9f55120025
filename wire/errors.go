package wire

import "errors"

// The errors of parsing. All are allocated once, since a peer decides how often they happen; they carry no detail,
// and whoever counts drops compares them with ==.
var (
	// ErrShort: the bytes end before the fixed part of what is parsed.
	ErrShort = errors.New("wire: shorter than its fixed part")
	// ErrLength: a length field disagrees with the bytes that are there.
	ErrLength = errors.New("wire: length field disagrees with the bytes")
	// ErrVersion: the packet is of another version, or its reserved bits are set.
	ErrVersion = errors.New("wire: unknown packet version")
	// ErrFlags: a flag that this version does not define; its meaning might move what follows, so nothing is guessed.
	ErrFlags = errors.New("wire: unknown flag")
	// ErrType: the message is not of the type that the parser is for.
	ErrType = errors.New("wire: message of another type")
	// ErrStatus: a status or reason code that this version does not define.
	ErrStatus = errors.New("wire: unknown status or reason")
	// ErrEtherType: not an IP packet right behind the Ethernet header (VLAN tags included), or of the other IP version.
	ErrEtherType = errors.New("wire: EtherType is not that of the IP version")
	// ErrIPVersion: the IP version in the header is not that of the EtherType.
	ErrIPVersion = errors.New("wire: IP version is not that of the EtherType")
	// ErrProtocol: what follows the IP header is not UDP. In IPv6 it may be an extension header, fragments' included.
	ErrProtocol = errors.New("wire: IP protocol is not UDP")
	// ErrFragment: an IPv4 fragment, which nothing here puts together again.
	ErrFragment = errors.New("wire: IPv4 fragment")
	// ErrHeaderChecksum: the IPv4 header checksum does not add up.
	ErrHeaderChecksum = errors.New("wire: IPv4 header checksum")
	// ErrChecksum: the UDP checksum does not add up, or there is none where there must be one, over IPv6.
	ErrChecksum = errors.New("wire: UDP checksum")
	// ErrSource: the source is no unicast address and port, so it could only be answered by harming someone.
	ErrSource = errors.New("wire: source cannot be answered")
	// ErrDestination: an IPv6 packet to an IPv4-mapped address, which would pass for one to that IPv4 address.
	ErrDestination = errors.New("wire: IPv4-mapped destination in an IPv6 packet")
)
