package handover

const (
	// copyCount buffers hold what a port cannot keep: what came by the kernel's sockets, and what several dispatchers get.
	copyCount = 256
	// copyBytes is a frame's size: no packet of ours is longer.
	copyBytes = 2048
	// copyMark tells the token of a copy from those of the port, which are below it.
	copyMark = 1 << 63
)

// copies are buffers of a dispatcher for packets that it hands over.
type copies struct {
	memory []byte
	free   []uint64 // tokens, last in, first out
}

func newCopies() copies {
	c := copies{memory: make([]byte, copyCount*copyBytes), free: make([]uint64, copyCount)}
	for i := range c.free {
		c.free[i] = copyMark | uint64(i)
	}
	return c
}

// of returns a copy, and false if there is no buffer for it.
func (c *copies) of(payload []byte) (copied []byte, token uint64, ok bool) {
	last := len(c.free) - 1
	if last < 0 || len(payload) > copyBytes {
		return nil, 0, false
	}
	token = c.free[last]
	c.free = c.free[:last]
	buffer := c.memory[(token&^copyMark)*copyBytes:][:len(payload):copyBytes]
	copy(buffer, payload)
	return buffer, token, true
}

// put takes a buffer back.
func (c *copies) put(token uint64) { c.free = append(c.free, token) } // never grows: its capacity is all buffers
