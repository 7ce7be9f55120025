package capture

import "fmt"

// Config bounds a capture. The zero value keeps whole packets, up to 100 MiB of them.
type Config struct {
	// Name is what the file calls the interface. "" = the port's name, xdp or udp.
	Name string
	// SnapBytes is how much is kept of each packet, from its IP header on. 0 = all; at least 48, which is the headers.
	SnapBytes int
	// FileBytes bounds the file. 0 = 100 MiB; at least 128 KiB. When it is full the capture ends, and the file says so; see Rotate.
	FileBytes int64
	// RingBytes bounds the memory for packets that are not written yet, rounded up to a power of two. 0 = 4 MiB; at least 128 KiB, at most 1 GiB.
	RingBytes int
	// Rotate begins a new file when one is full, and keeps the one before under the same name with .old behind it. It is for [Create].
	Rotate bool
}

const (
	// SnapBytesMin is what the headers take: without them nobody knows what the rest is.
	SnapBytesMin = headersMax
	// SnapBytesMax is the longest IPv4 packet, and so all of any.
	SnapBytesMax = 1<<16 - 1
	// FileBytesMin has room for the longest packet.
	FileBytesMin = 128 << 10
	// FileBytesDefault is about 200,000 calls of 64 bytes, and far below what makes a host write to its disk at once.
	FileBytesDefault = 100 << 20
	// RingBytesMin has room for the longest packet.
	RingBytesMin = 128 << 10
	// RingBytesMax bounds what a slip of the pen allocates.
	RingBytesMax = 1 << 30
	// RingBytesDefault bridges a stall of the writer of about 20 ms at a million small packets a second.
	RingBytesDefault = 4 << 20
)

// complete puts defaults where nothing is said, and refuses what cannot be.
func (c *Config) complete() error {
	if c.SnapBytes == 0 {
		c.SnapBytes = SnapBytesMax
	}
	if c.FileBytes == 0 {
		c.FileBytes = FileBytesDefault
	}
	if c.RingBytes == 0 {
		c.RingBytes = RingBytesDefault
	}
	switch {
	case c.SnapBytes < SnapBytesMin || c.SnapBytes > SnapBytesMax:
		return fmt.Errorf("capture: %d bytes of each packet: legal are %d, which the headers take, to %d", c.SnapBytes, SnapBytesMin, SnapBytesMax)
	case c.FileBytes < FileBytesMin:
		return fmt.Errorf("capture: a file of %d bytes: at least %d, to hold a packet", c.FileBytes, FileBytesMin)
	case c.RingBytes < RingBytesMin || c.RingBytes > RingBytesMax:
		return fmt.Errorf("capture: a ring of %d bytes: legal are %d to %d", c.RingBytes, RingBytesMin, RingBytesMax)
	}
	return nil
}
