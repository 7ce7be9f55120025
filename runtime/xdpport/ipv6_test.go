//go:build linux

package xdpport_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
	"github.com/stillwater-rpc/stillwater/wire"
)

// six is the IPv6 address of a port with both.
func six(p *xdpport.Port) wire.Addr { return p.LocalAddrs()[len(p.LocalAddrs())-1] }

// TestDualStackPortsTalk sends every size over both families, both ways. What arrives comes from the address of its family.
func TestDualStackPortsTalk(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	a, b := open(t, pair.A, xdpport.Config{Port: 7700}), open(t, pair.B, xdpport.Config{Address: netip.IPv6Unspecified()})
	if addrs := a.LocalAddrs(); len(addrs) != 2 || addrs[0].String() != "10.77.0.1:7700" || addrs[1].String() != "[fd77::1]:7700" || a.LocalAddr() != addrs[0] {
		t.Fatalf("the port is at %v, and first at %v", a.LocalAddrs(), a.LocalAddr())
	}
	if addrs := b.LocalAddrs(); len(addrs) != 2 || addrs[0].Port != addrs[1].Port {
		t.Fatalf("the free port is %v", addrs)
	}
	if a.PayloadMax() != 1452 {
		t.Errorf("payload max %d", a.PayloadMax())
	}
	for _, size := range []int{0, 1, 17, 18, 19, 64, 1000, 1451, 1452} {
		payload := bytes.Repeat([]byte{byte(size)}, size)
		for _, ends := range [][2]*xdpport.Port{{a, b}, {b, a}} {
			from, at := ends[0], ends[1]
			if sender := expectAt(t, from, at, six(at), payload); sender != six(from) {
				t.Errorf("%d bytes over IPv6 came from %v", size, sender)
			}
			if sender := expectAt(t, from, at, at.LocalAddr(), payload); sender != from.LocalAddr() {
				t.Errorf("%d bytes over IPv4 came from %v", size, sender)
			}
		}
	}
	for _, p := range []*xdpport.Port{a, b} {
		if s := p.Stats(); s.PassedOn != 0 || s.ReceiveDropped != 0 {
			t.Errorf("not all came by AF_XDP: %+v", s)
		}
	}
}

// TestOneFamily opens ports with one address: there is no way to the other family, and nothing is lost track of.
func TestOneFamily(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	only4 := open(t, pair.A, xdpport.Config{Address: netip.IPv4Unspecified()})
	only6 := open(t, pair.B, xdpport.Config{Address: pair.B.Address6.Addr()})
	if only4.PayloadMax() != 1472 || only6.PayloadMax() != 1452 || len(only4.LocalAddrs()) != 1 || len(only6.LocalAddrs()) != 1 {
		t.Errorf("%v with %d bytes, %v with %d", only4.LocalAddrs(), only4.PayloadMax(), only6.LocalAddrs(), only6.PayloadMax())
	}
	send(t, only4, only6.LocalAddr(), []byte("no way"))
	send(t, only6, only4.LocalAddr(), []byte("no way"))
	for _, p := range []*xdpport.Port{only4, only6} {
		if s := p.Stats(); s.SendDropped != 1 || s.Sent != 0 {
			t.Errorf("%v: %+v", p.LocalAddr(), s)
		}
	}
}

// TestLinkLocalPorts serves the addresses that the kernel made, which are only served if named.
func TestLinkLocalPorts(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	a, b := open(t, pair.A, xdpport.Config{Address: linkLocal(pair.A)}), open(t, pair.B, xdpport.Config{Address: linkLocal(pair.B)})
	if from := expect(t, a, b, []byte("next door")); from != a.LocalAddr() || from.AddrPort().Addr() != linkLocal(pair.A) {
		t.Errorf("came from %v", from)
	}
}

// linkLocal is the address that the kernel gave an end by itself (RFC 4291, appendix A).
func linkLocal(end *lab.End) netip.Addr {
	h := end.Hardware
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: h[0] ^ 2, 9: h[1], 10: h[2], 11: 0xff, 12: 0xfe, 13: h[3], 14: h[4], 15: h[5]})
}

// dual are kernel sockets at the other end, connected to a port at both its addresses.
func dual(t *testing.T, from *lab.End, to *xdpport.Port) (conns []*net.UDPConn) {
	t.Helper()
	for _, addr := range to.LocalAddrs() {
		if err := from.Do(func() error {
			conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr.AddrPort()))
			conns = append(conns, conn)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, conn := range conns {
			conn.Close()
		}
	})
	return conns
}

// TestDualStackServer has one port answer the kernel's sockets over both families. They are connected, so an answer from another
// address than they sent to would not reach them.
func TestDualStackServer(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	p := open(t, pair.A, xdpport.Config{Port: 7700})
	conns := dual(t, pair.B, p)
	for _, conn := range conns {
		warm(t, p, conn)
	}
	before := redirected(t, p)
	echo(t, p, conns)
	if got := redirected(t, p) - before; got != 2 {
		t.Errorf("%d packets came through AF_XDP, want 2", got)
	}
	if s := p.Stats(); s.PassedOn != 0 {
		t.Errorf("%d packets through the kernel", s.PassedOn)
	}
}

// TestPortIsHeldAtBothAddresses, and at no other of the host.
func TestPortIsHeldAtBothAddresses(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	p := open(t, pair.A, xdpport.Config{Port: 7700})
	for address, free := range map[string]bool{"10.77.0.1": false, "fd77::1": false, "127.0.0.1": true, "::1": true} {
		err := pair.A.Do(func() error {
			conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(address), Port: 7700})
			if err == nil {
				conn.Close()
			}
			return err
		})
		if free != (err == nil) || !free && !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := tryOpen(pair.A, xdpport.Config{Port: 7700, Address: pair.A.Address6.Addr()}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a second port: %v", err)
	}
	expectAt(t, open(t, pair.B, xdpport.Config{}), p, six(p), []byte("still served"))
}

// TestKernelKeepsInterfaceIPv6 pings the interface while a port has its IPv6 address: the kernel answers neighbour discovery and ICMPv6.
func TestKernelKeepsInterfaceIPv6(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	open(t, pair.A, xdpport.Config{Port: 7700})
	var ping net.PacketConn
	if err := pair.B.Do(func() (err error) { ping, err = net.ListenPacket("ip6:ipv6-icmp", "fd77::2"); return err }); err != nil {
		t.Fatal(err)
	}
	defer ping.Close()
	to := &net.IPAddr{IP: pair.A.Address6.Addr().AsSlice()}
	for seq := range byte(10) {
		// The kernel fills the checksum in (RFC 3542, section 3.1).
		if _, err := ping.WriteTo([]byte{128, 0, 0, 0, 0x77, 0, 0, seq, 'p', 'i', 'n', 'g'}, to); err != nil {
			t.Fatal(err)
		}
		if err := ping.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		for answer := make([]byte, 100); ; {
			n, _, err := ping.ReadFrom(answer)
			if err != nil {
				t.Fatalf("no answer to ping %d: %v", seq, err)
			}
			if n == 12 && answer[0] == 129 && answer[7] == seq {
				break
			}
		}
	}
	if !knows(t, pair.B, to.IP, pair.A.Hardware) {
		t.Error("neighbour discovery was not answered")
	}
}

// frame6 is a frame from one end to a port at the other.
func frame6(pair *lab.Pair, to wire.Addr, payload int) []byte {
	frame := make([]byte, wire.FrameHeaderBytesIPv6+payload)
	for i := range payload {
		frame[wire.FrameHeaderBytesIPv6+i] = byte(i)
	}
	wire.EncodeUDPv6(frame, &wire.Datagram{
		SourceMAC: wire.MAC(pair.B.Hardware), DestinationMAC: wire.MAC(pair.A.Hardware),
		Source: wire.Addr{IP: pair.B.Address6.Addr().As16(), Port: 999}, Destination: to,
	})
	return frame
}

// extended puts an extension header of 8 bytes behind the fixed one of a frame whose IPv6 payload is cut to a range.
func extended(frame []byte, kind byte, from, to int, body ...byte) []byte {
	const ip = wire.EthernetHeaderBytes
	out := append([]byte{}, frame[:ip+wire.IPv6HeaderBytes]...)
	out = append(append(out, out[ip+6], 0), body...)
	out = append(out, frame[ip+wire.IPv6HeaderBytes:][from:to]...)
	out[ip+6] = kind
	binary.BigEndian.PutUint16(out[ip+4:], uint16(8+to-from))
	return out
}

// TestExtensionHeadersGoThroughTheKernel: what the program does not look into is served all the same.
func TestExtensionHeadersGoThroughTheKernel(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	p := open(t, pair.A, xdpport.Config{Port: 7700})
	raw := packetSocket(t, pair.B)
	whole := frame6(pair, six(p), 100)
	pad := []byte{1, 4, 0, 0, 0, 0} // PadN
	for name, c := range map[string]struct {
		frames [][]byte
		reason bpf.Reason
	}{
		"destination options": {[][]byte{extended(whole, unix.IPPROTO_DSTOPTS, 0, 108, pad...)}, bpf.ReasonExtension},
		"hop-by-hop options":  {[][]byte{extended(whole, unix.IPPROTO_HOPOPTS, 0, 108, pad...)}, bpf.ReasonExtension},
		"fragments": {[][]byte{
			extended(whole, unix.IPPROTO_FRAGMENT, 0, 64, 0, 1, 7, 7, 7, 7),
			extended(whole, unix.IPPROTO_FRAGMENT, 64, 108, 0, 64, 7, 7, 7, 7),
		}, bpf.ReasonFragment},
	} {
		before, passed := verdict(t, p, c.reason), p.Stats().PassedOn
		for _, frame := range c.frames {
			if _, err := unix.Write(raw, frame); err != nil {
				t.Fatal(err)
			}
		}
		var batch [4]dispatcher.Datagram
		n := 0
		await(t, name, func() bool { n = p.Receive(clock.Now(), batch[:]); return n > 0 })
		if n != 1 || !bytes.Equal(batch[0].Payload, whole[wire.FrameHeaderBytesIPv6:]) || batch[0].From.String() != "[fd77::2]:999" {
			t.Errorf("%s: %d, %x from %v", name, n, batch[0].Payload, batch[0].From)
		}
		if got := verdict(t, p, c.reason) - before; got != uint64(len(c.frames)) || p.Stats().PassedOn != passed+1 {
			t.Errorf("%s: counted %d as %v, %d passed on", name, got, c.reason, p.Stats().PassedOn-passed)
		}
	}
}

func verdict(t *testing.T, p *xdpport.Port, reason bpf.Reason) uint64 {
	t.Helper()
	verdicts, err := p.Verdicts()
	if err != nil {
		t.Fatal(err)
	}
	return verdicts[reason].Count
}

// TestBadFramesIPv6 is TestBadFrames over IPv6.
func TestBadFramesIPv6(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	p := open(t, pair.A, xdpport.Config{Port: 7700})
	to := six(p)
	edit := func(change func(f []byte) []byte) []byte { return change(frame6(pair, to, 32)) }
	elsewhere, port, mapped := to, to, p.LocalAddr()
	elsewhere.IP[15] ^= 7
	port.Port++
	bad := map[string][]byte{
		"port":        frame6(pair, port, 32),
		"address":     frame6(pair, elsewhere, 32),
		"mapped":      frame6(pair, mapped, 32),
		"sum":         edit(func(f []byte) []byte { f[len(f)-1] ^= 1; return f }),
		"no sum":      edit(func(f []byte) []byte { f[60], f[61] = 0, 0; return f }),
		"mapped from": edit(func(f []byte) []byte { copy(f[22:38], mapped.IP[:]); return f }),
		"loop from":   edit(func(f []byte) []byte { clear(f[22:37]); f[37] = 1; return f }),
		"cut":         edit(func(f []byte) []byte { return f[:len(f)-20] }),
		"cut in UDP":  edit(func(f []byte) []byte { return f[:wire.EthernetHeaderBytes+wire.IPv6HeaderBytes+4] }),
		"cut in IP":   edit(func(f []byte) []byte { return f[:wire.EthernetHeaderBytes+39] }),
		"version":     edit(func(f []byte) []byte { f[wire.EthernetHeaderBytes] = 0x45; return f }),
		"jumbogram":   edit(func(f []byte) []byte { f[18], f[19], f[20] = 0, 0, 0; return f }),
		"UDP length":  edit(func(f []byte) []byte { f[58] = 0xff; return f }),
		"no sender":   edit(func(f []byte) []byte { f[54], f[55] = 0, 0; return f }),
		"VLAN":        edit(func(f []byte) []byte { return append(append(append([]byte{}, f[:12]...), 0x81, 0, 0, 1), f[12:]...) }),
		"IPv4":        edit(func(f []byte) []byte { f[12], f[13] = 0x08, 0x00; return f }),
	}
	badFrames(t, p, packetSocket(t, pair.B), bad, frame6(pair, to, 100))
}
