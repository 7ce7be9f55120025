//go:build linux && !portable

package udpport

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// receiver is what recvmmsg fills in: for each message a payload, a sender, and control messages with the stamp and our own address.
type receiver struct {
	headers  []unix.Mmsghdr
	vectors  []unix.Iovec
	payloads [][]byte
	names    []sockaddr
	controls []received
	dirty    int // how many headers the kernel has written to
	stamps   bool
	emptyAt  clock.Time // when the socket was last known to hold nothing
}

func (in *receiver) init(payloadMax int) {
	in.headers = make([]unix.Mmsghdr, receiveBatch)
	in.vectors = make([]unix.Iovec, receiveBatch)
	in.payloads = cut(receiveBatch, payloadMax)
	in.names = make([]sockaddr, receiveBatch)
	in.controls = make([]received, receiveBatch)
	for i := range in.headers {
		in.vectors[i].Base = &in.payloads[i][0]
		in.vectors[i].SetLen(payloadMax)
		header := &in.headers[i].Hdr
		header.Iov = &in.vectors[i]
		header.SetIovlen(1)
		header.Name = in.names[i].pointer()
	}
	in.dirty = receiveBatch
}

// reset undoes what the last call wrote into lengths that are the kernel's input as well.
func (in *receiver) reset(homes bool) {
	for i := range in.headers[:in.dirty] {
		header := &in.headers[i].Hdr
		header.Namelen = sockaddrBytes
		if in.stamps || homes {
			control, size := in.controls[i].room(in.stamps, homes)
			header.Control = control
			header.SetControllen(size)
		}
	}
	in.dirty = 0
}

// Receive takes what the socket holds, up to len(batch) or 64 datagrams, in one system call. Datagrams longer than
// Config.PayloadMax says are dropped and counted.
func (p *Port) Receive(now clock.Time, batch []dispatcher.Datagram) int {
	in := &p.in
	room := min(len(batch), receiveBatch)
	if room == 0 {
		return 0
	}
	in.reset(p.homes != nil)
	got, errno := recvmmsg(p.fd, in.headers[:room])
	if errno == unix.ECONNREFUSED || errno == unix.EINTR {
		// The first is the echo of an earlier packet, by ICMP: taken off by being reported, it says nothing of
		// those that wait behind it.
		got, errno = recvmmsg(p.fd, in.headers[:room])
	}
	if errno != 0 || got == 0 {
		p.stats.EmptyPolls++
		in.emptyAt = now
		return 0
	}
	in.dirty = got
	count := p.collect(now, batch, got)
	p.stats.Received += uint64(count)
	p.stats.ReceiveDropped += uint64(got - count)
	if got < room {
		in.emptyAt = now
	}
	return count
}

// collect turns the first got messages into datagrams.
func (p *Port) collect(now clock.Time, batch []dispatcher.Datagram, got int) (count int) {
	in := &p.in
	var wallAhead int64 // of CLOCK_REALTIME before CLOCK_MONOTONIC
	if in.stamps {
		wallAhead = time.Now().UnixNano() - int64(clock.Now())
	}
	for i := range got {
		header := &in.headers[i]
		if header.Hdr.Flags&unix.MSG_TRUNC != 0 {
			continue
		}
		from, known := in.names[i].addr()
		if !known {
			continue
		}
		arrival := now
		if in.stamps {
			if stamp, ok := in.controls[i].stamp.read(&header.Hdr); ok {
				arrival = in.bound(clock.Time(stamp-wallAhead), now)
			}
		}
		if p.homes != nil {
			if local, link, ok := in.controls[i].info.local(); ok {
				p.homes.note(&from, local, link)
			}
		}
		batch[count] = dispatcher.Datagram{Payload: in.payloads[i][:header.Len], From: from, Arrival: arrival}
		count++
	}
	return count
}

// bound keeps an arrival within what is certain. The stamp is of the wall clock, which may be set while a packet
// waits; but a packet arrived no later than now, and no earlier than when the socket was last seen empty.
func (in *receiver) bound(arrival, now clock.Time) clock.Time {
	return min(max(arrival, in.emptyAt), now)
}
