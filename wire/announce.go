package wire

import (
	"encoding/binary"
	"math/bits"
)

// AnnounceBytes is the room that an announcement takes at most.
const AnnounceBytes = EthernetHeaderBytes + IPv6HeaderBytes + advertisementBytes

const (
	etherTypeARP       = 0x0806
	arpBytes           = 28
	ethernetMin        = 60 // a shorter Ethernet frame is padded (IEEE 802.3, section 3.2.8; without the checksum)
	protocolICMPv6     = 58
	advertisementBytes = 24 + 8 // with one option
)

// Announce writes an Ethernet frame that tells everybody on the link which MAC an address has, so that who knows another one, or asks for it and
// waits before asking again, need not: an ARP announcement (RFC 5227, section 2.3) or an unsolicited neighbor advertisement (RFC 4861, sections 4.4
// and 7.2.6). The frame needs room for [AnnounceBytes]; its length is returned.
func Announce(frame []byte, mac MAC, address [16]byte) (length int) {
	a := Addr{IP: address}
	if a.IsIPv4() {
		return announceARP(frame[:ethernetMin], mac, address[12:])
	}
	return advertise(frame[:AnnounceBytes], mac, &a)
}

func announceARP(frame []byte, mac MAC, ip []byte) int {
	clear(frame)
	encodeEthernet(frame, mac, MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, etherTypeARP)
	arp := frame[EthernetHeaderBytes : EthernetHeaderBytes+arpBytes]
	binary.BigEndian.PutUint16(arp[0:], 1) // Ethernet
	binary.BigEndian.PutUint16(arp[2:], EtherTypeIPv4)
	arp[4], arp[5] = 6, 4                  // lengths of the addresses
	binary.BigEndian.PutUint16(arp[6:], 1) // a request, whose sender and target are the same
	copy(arp[8:14], mac[:])
	copy(arp[14:18], ip)
	copy(arp[24:28], ip)
	return len(frame)
}

// allNodes are all nodes of the link (RFC 4291, section 2.7.1), and allNodesMAC is its Ethernet address (RFC 2464, section 7).
var (
	allNodes    = Addr{IP: [16]byte{0xff, 0x02, 15: 1}}
	allNodesMAC = MAC{0x33, 0x33, 0, 0, 0, 1}
)

func advertise(frame []byte, mac MAC, a *Addr) int {
	clear(frame)
	encodeEthernet(frame, mac, allNodesMAC, EtherTypeIPv6)
	ip := frame[EthernetHeaderBytes:]
	icmp := ip[IPv6HeaderBytes:]
	encodeIPv6(ip, a, &allNodes, len(icmp))
	ip[6], ip[7] = protocolICMPv6, 255 // what a router has forwarded is not believed
	icmp[0] = 136                      // neighbor advertisement
	icmp[4] = 0x20                     // override what is known
	copy(icmp[8:24], a.IP[:])
	icmp[24], icmp[25] = 2, 1 // option: the target's link-layer address, 8 bytes
	copy(icmp[26:32], mac[:])
	pseudo := sum(ip[8:40], protocolICMPv6<<8+uint64(bits.ReverseBytes16(advertisementBytes)))
	binary.BigEndian.PutUint16(icmp[2:], ^fold(sum(icmp, pseudo)))
	return len(frame)
}
