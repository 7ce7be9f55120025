package wire

import "encoding/binary"

// Version is the packet version that this package reads and writes.
const Version = 1

const (
	// HeaderBytes is the size of the packet header.
	HeaderBytes = 28
	// TagBytes is the size of the tag that ends every packet, sealed or not: the layout is the same.
	TagBytes = 16
	// OverheadBytes is what a packet is larger than its messages.
	OverheadBytes = HeaderBytes + TagBytes
	// AssociatedBytes is the part of the header that a seal authenticates but leaves readable: all that is needed to
	// find the connection and its keys.
	AssociatedBytes = 20
)

// PacketFlags are the flags of a packet.
type PacketFlags uint8

// The flags of a packet.
const (
	PacketSealed    PacketFlags = 0x01 // everything behind AssociatedBytes is encrypted
	PacketKeyPhase  PacketFlags = 0x02 // which of two live keys sealed it
	PacketHandshake PacketFlags = 0x04 // opens a connection; the connection id is 0

	packetFlagsKnown = PacketSealed | PacketKeyPhase | PacketHandshake
)

// PacketNumber counts the packets of one connection and direction.
type PacketNumber uint64

// Header is the packet header without the length, which belongs to [FinishPacket] and [ParsePacket].
type Header struct {
	Flags      PacketFlags
	Connection ConnectionID // chosen by the receiver of the packet
	Number     PacketNumber
	Stamp      uint32 // the sender's monotonic clock in ns at transmission, low 32 bits
	Echo       uint32 // newest stamp received plus the time it was held; 0 = none
}

// Packet is a parsed packet. Messages aliases the bytes that were parsed.
type Packet struct {
	Header
	Messages []byte
}

// ParsePacket checks version, flags and length. It does not look at the seal: of a packet with [PacketSealed] the
// stamp, the echo and the messages are meaningful only after it was opened in place.
func ParsePacket(b []byte) (Packet, error) {
	if len(b) < OverheadBytes {
		return Packet{}, ErrShort
	}
	if b[0] != Version<<4 {
		return Packet{}, ErrVersion
	}
	flags := PacketFlags(b[1])
	if flags&^packetFlagsKnown != 0 {
		return Packet{}, ErrFlags
	}
	length := int(binary.BigEndian.Uint16(b[2:]))
	if length > len(b)-OverheadBytes {
		return Packet{}, ErrLength
	}
	return Packet{
		Header: Header{
			Flags:      flags,
			Connection: ConnectionID(binary.BigEndian.Uint64(b[4:])),
			Number:     PacketNumber(binary.BigEndian.Uint64(b[12:])),
			Stamp:      binary.BigEndian.Uint32(b[20:]),
			Echo:       binary.BigEndian.Uint32(b[24:]),
		},
		Messages: b[HeaderBytes : HeaderBytes+length : HeaderBytes+length],
	}, nil
}

// BeginPacket starts a packet in the caller's buffer, whatever that held before: the result has the header reserved
// and zeroed, and messages are appended to it.
func BeginPacket(buffer []byte) []byte {
	return append(buffer[:0], zeros[:HeaderBytes]...)
}

// Room is how many bytes of messages still fit into a begun packet without growing its buffer; negative when the
// tag no longer fits.
func Room(packet []byte) int { return cap(packet) - len(packet) - TagBytes }

// FinishPacket writes the header of a packet that [BeginPacket] began, and behind its messages zero padding up to
// padTo bytes (of the whole packet; 0 for none) and a zero tag. Padding stops where the buffer does: it is there to
// keep an answer from being larger than its question, never worth growing a frame for.
func FinishPacket(packet []byte, h Header, padTo int) []byte {
	length := len(packet) - HeaderBytes
	if length > maxLength {
		panic("wire: packet of more than 65535 bytes of messages")
	}
	packet[0] = Version << 4
	packet[1] = byte(h.Flags)
	binary.BigEndian.PutUint16(packet[2:], uint16(length))
	binary.BigEndian.PutUint64(packet[4:], uint64(h.Connection))
	binary.BigEndian.PutUint64(packet[12:], uint64(h.Number))
	binary.BigEndian.PutUint32(packet[20:], h.Stamp)
	binary.BigEndian.PutUint32(packet[24:], h.Echo)
	end := max(len(packet)+TagBytes, min(padTo, cap(packet)))
	for end-len(packet) > len(zeros) {
		packet = append(packet, zeros[:]...)
	}
	return append(packet, zeros[:end-len(packet)]...)
}

// zeros is what reserved bytes, padding and the tag are copied from. Buffers are frames in their second life: a byte
// that is not written would send a piece of somebody else's packet.
var zeros [256]byte

// maxLength is the most that a 16-bit length field can say.
const maxLength = 1<<16 - 1
