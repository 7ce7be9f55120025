//go:build !linux || portable

package udpport

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// receiver is what recvmsg fills in, one after the other.
type receiver struct {
	payloads [][]byte
	vector   [1][]byte // of the one that is being received
	info     infoControl
}

func (in *receiver) init(payloadMax int) { in.payloads = cut(receiveBatch, payloadMax) }

// Receive takes what the socket holds, up to len(batch) or 64 datagrams, in a system call each, which package unix makes some garbage for.
// Datagrams longer than Config.PayloadMax says are dropped and counted.
func (p *Port) Receive(now clock.Time, batch []dispatcher.Datagram) (count int) {
	for range min(len(batch), receiveBatch) {
		d, errno := p.receiveOne(p.in.payloads[count])
		if errno == unix.ECONNREFUSED || errno == unix.EINTR {
			// The first is the echo of an earlier packet, by ICMP: taken off by being reported, it says nothing of
			// those that wait behind it.
			d, errno = p.receiveOne(p.in.payloads[count])
		}
		if errno == unix.EMSGSIZE {
			p.stats.ReceiveDropped++
			continue
		}
		if errno != 0 {
			break
		}
		d.Arrival = now
		batch[count] = d
		count++
	}
	p.stats.Received += uint64(count)
	if count == 0 {
		p.stats.EmptyPolls++
	}
	return count
}

// receiveOne receives into a buffer; EMSGSIZE says that the datagram was too long for it, or that nobody sent it.
func (p *Port) receiveOne(buffer []byte) (d dispatcher.Datagram, errno unix.Errno) {
	in := &p.in
	var control []byte
	if p.homes != nil {
		in.info.header.Level, in.info.header.Type = 0, 0 // of the last one
		control = in.info.bytes()
	}
	in.vector[0] = buffer
	length, _, flags, name, err := unix.RecvmsgBuffers(p.fd, in.vector[:], control, 0)
	if err != nil {
		return d, errnoOf(err)
	}
	if flags&unix.MSG_TRUNC != 0 || name == nil {
		return d, unix.EMSGSIZE
	}
	from := addrOf(name)
	if p.homes != nil {
		if local, link, ok := in.info.local(); ok {
			p.homes.note(&from, local, link)
		}
	}
	return dispatcher.Datagram{Payload: buffer[:length], From: from}, 0
}

// errnoOf is the kernel's error in an error of package unix; what it refuses without asking the kernel is invalid.
func errnoOf(err error) unix.Errno {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno
	}
	return unix.EINVAL
}

// bytes is the control message as the calls of package unix take it.
func (c *infoControl) bytes() []byte {
	return (*[unsafe.Sizeof(*c)]byte)(unsafe.Pointer(c))[:]
}
