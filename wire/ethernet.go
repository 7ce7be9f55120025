package wire

import (
	"encoding/binary"
	"fmt"
)

const (
	// EthernetHeaderBytes is the size of an Ethernet header without VLAN tag.
	EthernetHeaderBytes = 14
	// EtherTypeIPv4 is the EtherType of IPv4.
	EtherTypeIPv4 = 0x0800
	// EtherTypeIPv6 is the EtherType of IPv6.
	EtherTypeIPv6 = 0x86dd
)

// MAC is an Ethernet address.
type MAC [6]byte

// String is the usual form, aa:bb:cc:dd:ee:ff.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// Ethernet is a view of an Ethernet frame of at least a header; see [ParseEthernet].
type Ethernet []byte

// ParseEthernet checks that a header is there.
func ParseEthernet(b []byte) (Ethernet, error) {
	if len(b) < EthernetHeaderBytes {
		return nil, ErrShort
	}
	return Ethernet(b), nil
}

// Destination is the receiver's address.
func (e Ethernet) Destination() MAC { return MAC(e[0:6]) }

// Source is the sender's address.
func (e Ethernet) Source() MAC { return MAC(e[6:12]) }

// EtherType says what the payload is.
func (e Ethernet) EtherType() uint16 { return binary.BigEndian.Uint16(e[12:]) }

// Payload is what follows the header, Ethernet padding included.
func (e Ethernet) Payload() []byte { return e[EthernetHeaderBytes:] }

// encodeEthernet writes the header.
func encodeEthernet(b []byte, source, destination MAC, etherType uint16) {
	_ = b[EthernetHeaderBytes-1]
	copy(b[0:6], destination[:])
	copy(b[6:12], source[:])
	binary.BigEndian.PutUint16(b[12:], etherType)
}
