package wire

import "net/netip"

// ConnectionID names a connection to the peer that chose it: owner (6 bits), slab index (22), generation (12),
// boot epoch (24). Zero is no connection.
type ConnectionID uint64

// SessionID is a session handle, chosen by the receiver of the messages that carry it. Zero is no session.
type SessionID uint32

// Number is the running number of a request in its session, given when the request is transmitted. The first is 0.
type Number uint64

// Slot is the place of a request in its session's table of outstanding requests.
type Slot uint16

// Method is the 64-bit hash of a method's name.
type Method uint64

// Token proves that a peer receives at its address; opaque to everybody but the endpoint that made it.
type Token [32]byte

// Addr is a UDP address without pointers, so that tables of them are not scanned by the garbage collector. IPv4 is
// kept in its IPv4-mapped form.
type Addr struct {
	IP   [16]byte
	Port uint16
}

// AddrFrom converts a netip address and port.
func AddrFrom(ap netip.AddrPort) Addr {
	return Addr{IP: ap.Addr().As16(), Port: ap.Port()}
}

// AddrPort converts back; IPv4-mapped addresses come out as IPv4.
func (a Addr) AddrPort() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(a.IP).Unmap(), a.Port)
}

// String is the usual address:port form.
func (a Addr) String() string { return a.AddrPort().String() }
