//go:build linux && !portable

package udpport

import (
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/wire"
)

// sendBatch bounds how long one system call keeps the P: sending a packet runs the stack, and on a virtual
// device the receiver's half of it too, for 1 to 2 us.
const sendBatch = 32

// messages is the queue that sendmmsg takes.
type messages struct {
	headers []unix.Mmsghdr
	vectors []unix.Iovec
	names   []sockaddr
	infos   []infoControl // the sources, on a wildcard port
}

func (m *messages) init(count int) {
	m.headers = make([]unix.Mmsghdr, count)
	m.vectors = make([]unix.Iovec, count)
	m.names = make([]sockaddr, count)
	m.infos = make([]infoControl, count)
	for i := range m.headers {
		header := &m.headers[i].Hdr
		header.Iov = &m.vectors[i]
		header.SetIovlen(1)
		header.Name = m.names[i].pointer()
	}
}

// address says where an entry goes; false if a socket of the family cannot send there.
func (m *messages) address(at int, to wire.Addr, family uint16) (ok bool) {
	m.headers[at].Hdr.Namelen, ok = m.names[at].set(to, family)
	return ok
}

// to is where an entry goes.
func (m *messages) to(at int) (wire.Addr, bool) { return m.names[at].addr() }

// from gives an entry a source, nil for the kernel's choice.
func (m *messages) from(at int, source *home, family uint16) {
	header := &m.headers[at].Hdr
	if source == nil {
		header.Control = nil
		header.SetControllen(0)
		return
	}
	header.Control = m.infos[at].pointer()
	header.SetControllen(m.infos[at].set(source, family))
}

// carry gives an entry its payload, which is in a buffer and may be empty.
func (m *messages) carry(at int, payload []byte) {
	m.vectors[at].Base = &payload[:1][0]
	m.vectors[at].SetLen(len(payload))
}

// transmit sends the entries from head to end, and returns how many the kernel took; the error is of the first.
func (m *messages) transmit(fd, head, end int) (int, unix.Errno) {
	return sendmmsg(fd, m.headers[head:end])
}
