package pcapng

import "encoding/binary"

// The types of blocks (section 4 of the draft).
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockStatistics = 5
	blockPacket     = 6

	byteOrderMagic = 0x1a2b3c4d
	lengthUnknown  = ^uint64(0) // of a section: it ends with the file
)

// The codes of options: the first two mean the same in every block, the others what they mean in theirs.
const (
	optionEnd     = 0
	optionComment = 1

	sectionOS          = 3
	sectionApplication = 4

	interfaceName        = 2
	interfaceDescription = 3
	interfaceResolution  = 9

	packetFlags     = 2
	packetDropCount = 4

	statisticsReceived  = 4
	statisticsDropped   = 5
	statisticsDelivered = 8
)

// nanoseconds is the resolution of stamps: 10^-9 s.
const nanoseconds = "\x09"

// Sizes in bytes.
const (
	packetHeadBytes = 28 // type, length, interface, stamp, length kept, length of the packet
	optionHeadBytes = 4
	blockTailBytes  = 4
	paddingMax      = 3
)

// LinkRaw is the link type of packets that begin with an IPv4 or IPv6 header.
const LinkRaw = 101

// PacketOverheadBytes is the most by which a packet's block is larger than what it holds of the packet and its comment.
const PacketOverheadBytes = packetHeadBytes + paddingMax + // and then a comment, flags, the drop count, the end
	optionHeadBytes + paddingMax + optionHeadBytes + 4 + optionHeadBytes + 8 + optionHeadBytes + blockTailBytes

// Direction says which way a packet went: the low bits of epb_flags.
type Direction uint32

// The directions of packets.
const (
	Inbound  Direction = 1
	Outbound Direction = 2
)

// Section is what a file says of itself.
type Section struct {
	Application string
	OS          string
	Comment     string
}

// Append appends the section header block, which every file begins with.
func (s *Section) Append(b []byte) []byte {
	b, start := begin(b, blockSection)
	b = binary.LittleEndian.AppendUint32(b, byteOrderMagic)
	b = binary.LittleEndian.AppendUint16(b, 1) // version 1.0
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint64(b, lengthUnknown)
	b = appendOption(b, optionComment, s.Comment)
	b = appendOption(b, sectionOS, s.OS)
	b = appendOption(b, sectionApplication, s.Application)
	return finish(appendOption(b, optionEnd, ""), start)
}

// Interface is where packets were captured. Its number in the file is that of its block, from 0 on. All stamps are in nanoseconds.
type Interface struct {
	Name        string
	Description string
	Link        uint16 // LinkRaw
	SnapBytes   uint32 // the most that is kept of a packet
}

// Append appends the interface description block.
func (i *Interface) Append(b []byte) []byte {
	b, start := begin(b, blockInterface)
	b = binary.LittleEndian.AppendUint16(b, i.Link)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, i.SnapBytes)
	b = appendOption(b, interfaceName, i.Name)
	b = appendOption(b, interfaceDescription, i.Description)
	b = appendOption(b, interfaceResolution, nanoseconds)
	return finish(appendOption(b, optionEnd, ""), start)
}

// Packet is what a block says of a packet of interface 0.
type Packet struct {
	Time      int64 // ns since 1970
	Length    int   // of the whole packet, in bytes
	Direction Direction
	Dropped   uint64 // packets missing between this one and the one before
	Comment   []byte // for people; empty = none
}

// BeginPacket starts an enhanced packet block in the caller's buffer, whatever that held before. What is kept of the packet is appended to the result,
// and then [Packet.Finish] makes a block of it.
func BeginPacket(buffer []byte) []byte {
	var head [packetHeadBytes]byte
	return append(buffer[:0], head[:]...)
}

// Finish writes the head of a block that [BeginPacket] began, and appends the options and the end.
func (p *Packet) Finish(block []byte) []byte {
	kept := len(block) - packetHeadBytes
	binary.LittleEndian.PutUint32(block, blockPacket)
	binary.LittleEndian.PutUint32(block[8:], 0)
	putTime(block[12:], p.Time)
	binary.LittleEndian.PutUint32(block[20:], uint32(kept))
	binary.LittleEndian.PutUint32(block[24:], uint32(p.Length))
	block = pad(block, kept)
	if len(p.Comment) > 0 {
		block = appendOption(block, optionComment, p.Comment)
	}
	block = appendHead(block, packetFlags, 4)
	block = binary.LittleEndian.AppendUint32(block, uint32(p.Direction))
	if p.Dropped > 0 {
		block = appendCount(block, packetDropCount, p.Dropped)
	}
	return finish(appendOption(block, optionEnd, ""), 0)
}

// Statistics are an interface's counters since the capture began.
type Statistics struct {
	Time      int64  // ns since 1970
	Received  uint64 // by the interface, with those that were dropped then
	Dropped   uint64 // of the received
	Delivered uint64 // to the user
	Comment   []byte // for people; empty = none
}

// Append appends the interface statistics block.
func (s *Statistics) Append(b []byte) []byte {
	b, start := begin(b, blockStatistics)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	putTime(b[len(b)-8:], s.Time)
	if len(s.Comment) > 0 {
		b = appendOption(b, optionComment, s.Comment)
	}
	b = appendCount(b, statisticsReceived, s.Received)
	b = appendCount(b, statisticsDropped, s.Dropped)
	b = appendCount(b, statisticsDelivered, s.Delivered)
	return finish(appendOption(b, optionEnd, ""), start)
}

// BlockLength is the length of the block that b begins with. There must be one.
func BlockLength(b []byte) int { return int(binary.LittleEndian.Uint32(b[4:])) }

// IsPacket reports whether b begins with a packet's block.
func IsPacket(b []byte) bool { return binary.LittleEndian.Uint32(b) == blockPacket }

// begin appends the head of a block, and returns where it begins.
func begin(b []byte, kind uint32) (grown []byte, start int) {
	start = len(b)
	b = binary.LittleEndian.AppendUint32(b, kind)
	return binary.LittleEndian.AppendUint32(b, 0), start
}

// finish ends the block that begins at start: its length stands at both ends, so that files can be read backwards.
func finish(b []byte, start int) []byte {
	length := uint32(len(b) - start + blockTailBytes)
	binary.LittleEndian.PutUint32(b[start+4:], length)
	return binary.LittleEndian.AppendUint32(b, length)
}

// putTime writes a stamp as the draft wants it: two words, the high one first whatever the byte order.
func putTime(b []byte, ns int64) {
	binary.LittleEndian.PutUint32(b, uint32(uint64(ns)>>32))
	binary.LittleEndian.PutUint32(b[4:], uint32(ns))
}

func appendHead(b []byte, code uint16, length int) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	return binary.LittleEndian.AppendUint16(b, uint16(length))
}

// appendOption appends an option. What is too long for its length field is cut.
func appendOption[T string | []byte](b []byte, code uint16, value T) []byte {
	value = value[:min(len(value), 1<<16-1)]
	b = appendHead(b, code, len(value))
	return pad(append(b, value...), len(value))
}

func appendCount(b []byte, code uint16, count uint64) []byte {
	return binary.LittleEndian.AppendUint64(appendHead(b, code, 8), count)
}

// pad fills up to a multiple of four bytes what ends b.
func pad(b []byte, length int) []byte {
	var zeros [paddingMax]byte
	return append(b, zeros[:-length&3]...)
}
