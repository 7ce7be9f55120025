//go:build linux

package neighbour

import (
	"encoding/binary"
	"net"
)

// address is an IP address as two words in host order, so that prefixes are masks. IPv4 is in its IPv4-mapped form (RFC 4291, section
// 2.5.5.2), and a prefix of IPv4 is 96 bits longer than it says.
type address struct{ high, low uint64 }

const mappedBits = 96

// addressOf reads the form that wire.Addr has.
func addressOf(ip *[16]byte) address {
	return address{binary.BigEndian.Uint64(ip[0:]), binary.BigEndian.Uint64(ip[8:])}
}

// addressFrom reads what package net has; false if it is no address.
func addressFrom(ip net.IP) (address, bool) {
	b := ip.To16()
	if b == nil {
		return address{}, false
	}
	return addressOf((*[16]byte)(b)), true
}

// prefixFrom reads what package net has; false if it is no prefix.
func prefixFrom(network *net.IPNet) (prefix, bool) {
	a, ok := addressFrom(network.IP)
	ones, bits := network.Mask.Size()
	if !ok || bits == 0 {
		return prefix{}, false
	}
	if bits == 32 {
		ones += mappedBits
	}
	return prefix{a.masked(mask(uint8(ones))), uint8(ones)}, true
}

// bytes is the form that wire.Addr has.
func (a address) bytes() (ip [16]byte) {
	binary.BigEndian.PutUint64(ip[0:], a.high)
	binary.BigEndian.PutUint64(ip[8:], a.low)
	return ip
}

func (a address) isZero() bool { return a == address{} }

func (a address) isIPv4() bool { return a.high == 0 && a.low>>32 == 0xffff }

func (a address) masked(m address) address { return address{a.high & m.high, a.low & m.low} }

// unicast refuses what has no neighbour: unspecified, multicast, and of IPv4 the reserved class and limited broadcast too.
func (a address) unicast() bool {
	if a.isIPv4() {
		four := uint32(a.low)
		return four != 0 && four < 224<<24
	}
	return !a.isZero() && a.high>>56 != 0xff
}

// mask has the first length bits set.
func mask(length uint8) address {
	if length <= 64 {
		return address{high: ^uint64(0) << (64 - length)}
	}
	return address{^uint64(0), ^uint64(0) << (128 - length)}
}
