package wire

import (
	"encoding/binary"
	"math/bits"
)

// Checksum is the internet checksum of b (RFC 1071): the complement of the one's complement sum of its 16-bit words.
func Checksum(b []byte) uint16 { return ^fold(sum(b, 0)) }

// sum adds the 16-bit words of b to the partial sum, eight bytes at a time. One's complement addition does not care
// for byte order as long as it is the same throughout (RFC 1071, section 2 B), nor for the width of the additions
// as long as carries come back in: so words are read as they cost least and [fold] swaps once, at the end. An odd
// last byte counts as the high half of a word, as RFC 1071 wants.
func sum(b []byte, partial uint64) uint64 {
	var carry uint64
	for len(b) >= 32 {
		partial, carry = bits.Add64(partial, binary.LittleEndian.Uint64(b), carry)
		partial, carry = bits.Add64(partial, binary.LittleEndian.Uint64(b[8:]), carry)
		partial, carry = bits.Add64(partial, binary.LittleEndian.Uint64(b[16:]), carry)
		partial, carry = bits.Add64(partial, binary.LittleEndian.Uint64(b[24:]), carry)
		b = b[32:]
	}
	for len(b) >= 8 {
		partial, carry = bits.Add64(partial, binary.LittleEndian.Uint64(b), carry)
		b = b[8:]
	}
	var last uint64
	if len(b) >= 4 {
		last = uint64(binary.LittleEndian.Uint32(b))
		b = b[4:]
		if len(b) > 0 {
			last |= uint64(tail(b)) << 32
		}
	} else if len(b) > 0 {
		last = uint64(tail(b))
	}
	partial, carry = bits.Add64(partial, last, carry)
	// Adding the last carry can only carry again when partial is all ones, and then the result is zero plus one.
	partial, carry = bits.Add64(partial, carry, 0)
	return partial + carry
}

// tail reads one to three bytes.
func tail(b []byte) uint32 {
	v := uint32(b[0])
	if len(b) > 1 {
		v |= uint32(b[1]) << 8
	}
	if len(b) > 2 {
		v |= uint32(b[2]) << 16
	}
	return v
}

// fold reduces a partial sum to 16 bits and turns it into network order.
func fold(partial uint64) uint16 {
	v := partial>>32 + partial&0xffffffff
	v = v>>32 + v&0xffffffff
	v = v>>16 + v&0xffff
	v = v>>16 + v&0xffff
	v = v>>16 + v&0xffff
	return bits.ReverseBytes16(uint16(v))
}
