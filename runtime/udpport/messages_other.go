//go:build !linux || portable

package udpport

import (
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/wire"
)

// sendBatch is 1: there is no call that sends several.
const sendBatch = 1

// messages is a queue of what sendmsg takes one by one.
type messages struct {
	entries []message
	vector  [1][]byte // of the one that is being sent
}

type message struct {
	payload []byte
	name    unix.Sockaddr // &four or &six
	four    unix.SockaddrInet4
	six     unix.SockaddrInet6
	control []byte // info, or nothing
	info    infoControl
}

func (m *messages) init(count int) { m.entries = make([]message, count) }

// address says where an entry goes; false if a socket of the family cannot send there.
func (m *messages) address(at int, to wire.Addr, family uint16) bool {
	e := &m.entries[at]
	e.control = nil
	if family == unix.AF_INET {
		e.four.Port, e.four.Addr = int(to.Port), [4]byte(to.IP[12:])
		e.name = &e.four
		return to.IsIPv4()
	}
	e.six.Port, e.six.Addr = int(to.Port), to.IP
	e.name = &e.six
	return true
}

// to is where an entry goes.
func (m *messages) to(at int) (wire.Addr, bool) { return addrOf(m.entries[at].name), true }

// from gives an entry a source, nil for the kernel's choice. An IPv4 source is given as one, also on a socket for both families: only Linux
// takes it as a mapped one.
func (m *messages) from(at int, source *home, _ uint16) {
	if source == nil {
		return
	}
	e, family := &m.entries[at], uint16(unix.AF_INET6)
	if source.peer.IsIPv4() {
		family = unix.AF_INET
	}
	e.control = e.info.bytes()[:e.info.set(source, family)]
}

// carry gives an entry its payload, which is in a buffer and may be empty.
func (m *messages) carry(at int, payload []byte) { m.entries[at].payload = payload }

// transmit sends the one entry from head to end.
func (m *messages) transmit(fd, head, _ int) (int, unix.Errno) {
	e := &m.entries[head]
	m.vector[0] = e.payload
	_, err := unix.SendmsgBuffers(fd, m.vector[:], e.control, e.name, 0)
	if err != nil {
		return 0, errnoOf(err)
	}
	return 1, 0
}
