package udpport

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/wire"
)

const homeBits = 12

// homeCount is how many peers a wildcard port remembers: 160 KiB. A peer that another one displaced is remembered again with its next
// datagram, and most are answered in the turn in which they came.
const homeCount = 1 << homeBits

// home is the address of this host that a peer has sent to.
type home struct {
	peer  wire.Addr
	local [16]byte // zero = none
	link  uint32   // index of the interface; only for link-local peers, who are on one
}

// homes belong to a port at a wildcard address, so that an answer comes from where the request was sent to. The kernel would choose
// a source for each packet by its own rules, and peers drop what comes from elsewhere.
type homes [homeCount]home

func (h *homes) slot(peer *wire.Addr) *home {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: multiplicative hashing
	key := binary.BigEndian.Uint64(peer.IP[0:])*golden ^ binary.BigEndian.Uint64(peer.IP[8:]) ^ uint64(peer.Port)<<48
	return &h[key*golden>>(64-homeBits)]
}

// note remembers where a datagram was sent to.
func (h *homes) note(peer *wire.Addr, local [16]byte, link uint32) {
	if local[0] == 0xff { // multicast is nobody's source
		return
	}
	if s := h.slot(peer); s.peer != *peer || s.local != local {
		if !linkLocal(&peer.IP) {
			link = 0 // the way back is the routing table's choice
		}
		*s = home{*peer, local, link}
	}
}

// of is the home of a peer, nil if it is not known.
func (h *homes) of(peer *wire.Addr) *home {
	if s := h.slot(peer); s.peer == *peer && s.local != [16]byte{} {
		return s
	}
	return nil
}

// forget is for a home that the kernel refuses: the address may be gone.
func (h *homes) forget(peer *wire.Addr) {
	if s := h.of(peer); s != nil {
		*s = home{}
	}
}

func linkLocal(ip *[16]byte) bool { return binary.BigEndian.Uint16(ip[:])&0xffc0 == 0xfe80 }

// askForHomes has the kernel say where each datagram was sent to. On an IPv6 socket IPv4 comes as IPv4-mapped.
func (p *Port) askForHomes() error {
	p.homes = new(homes)
	if p.family == unix.AF_INET6 {
		return unix.SetsockoptInt(p.fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
	return unix.SetsockoptInt(p.fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
}

// The places in struct in6_pktinfo (include/uapi/linux/ipv6.h) and struct in_pktinfo (include/uapi/linux/in.h), which have them elsewhere too.
const (
	info6Address = 0
	info6Link    = 16
	info6Bytes   = 20
	info4Source  = 4 // ipi_spec_dst: the source of what is sent
	info4Bytes   = 12
)

// infoControl is the control message of IP_PKTINFO or IPV6_PKTINFO: struct cmsghdr and one of these.
type infoControl struct {
	header unix.Cmsghdr
	info   [24]byte
}

// local reads where a datagram was sent to.
func (c *infoControl) local() (local [16]byte, link uint32, ok bool) {
	switch {
	case c.header.Level == unix.IPPROTO_IPV6 && c.header.Type == unix.IPV6_PKTINFO:
		return [16]byte(c.info[info6Address:]), binary.NativeEndian.Uint32(c.info[info6Link:]), true
	case c.header.Level == unix.IPPROTO_IP && c.header.Type == unix.IP_PKTINFO:
		local[10], local[11] = 0xff, 0xff
		copy(local[12:], c.info[info4Local:][:4])
		return local, 0, true
	}
	return local, 0, false
}

// set asks for a source, and returns the length of the control message.
func (c *infoControl) set(from *home, family uint16) int {
	clear(c.info[:])
	if family == unix.AF_INET6 {
		c.header.Level, c.header.Type = unix.IPPROTO_IPV6, unix.IPV6_PKTINFO
		copy(c.info[info6Address:], from.local[:])
		binary.NativeEndian.PutUint32(c.info[info6Link:], from.link)
		return c.sized(info6Bytes)
	}
	c.header.Level, c.header.Type = unix.IPPROTO_IP, unix.IP_PKTINFO
	copy(c.info[info4Source:], from.local[12:])
	return c.sized(info4Bytes)
}

// sized sets the length of the message's data.
func (c *infoControl) sized(data int) int {
	c.header.SetLen(unix.CmsgLen(data))
	return unix.CmsgSpace(data)
}
