//go:build linux

package xdpport_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
	"github.com/stillwater-rpc/stillwater/wire"
)

// TestKernelKeepsInterface pings the interface from the other end while a port has it: the kernel answers ARP and ICMP as before, and
// UDP to another port.
func TestKernelKeepsInterface(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	open(t, pair.A, xdpport.Config{Port: 7700})
	var ping net.PacketConn
	var other *net.UDPConn
	if err := pair.B.Do(func() (err error) { ping, err = net.ListenPacket("ip4:icmp", "10.77.0.2"); return err }); err != nil {
		t.Fatal(err)
	}
	defer ping.Close()
	if err := pair.A.Do(func() (err error) {
		other, err = net.ListenUDP("udp4", &net.UDPAddr{IP: pair.A.Address.Addr().AsSlice(), Port: 7701})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	to := &net.IPAddr{IP: pair.A.Address.Addr().AsSlice()}
	for seq := range uint16(10) {
		echo := []byte{8, 0, 0, 0, 0x77, 0x00, byte(seq >> 8), byte(seq), 'p', 'i', 'n', 'g'}
		binary.BigEndian.PutUint16(echo[2:], wire.Checksum(echo))
		if _, err := ping.WriteTo(echo, to); err != nil {
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
			if n == len(echo) && answer[0] == 0 && binary.BigEndian.Uint16(answer[6:]) == seq {
				break
			}
		}
	}
	if !knows(t, pair.B, to.IP, pair.A.Hardware) {
		t.Error("ARP was not answered")
	}
	if err := pair.B.Do(func() error {
		conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: to.IP, Port: 7701})
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("for another"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := other.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	if n, err := other.Read(got); err != nil || string(got[:n]) != "for another" {
		t.Errorf("UDP to another port: %q, %v", got[:n], err)
	}
}

// knows reports whether an end's kernel has the neighbour under this hardware address.
func knows(t *testing.T, end *lab.End, ip net.IP, hardware net.HardwareAddr) (found bool) {
	t.Helper()
	if err := end.Do(func() error {
		entries, err := netlink.NeighList(end.Index, netlink.FAMILY_ALL)
		for _, e := range entries {
			found = found || e.IP.Equal(ip) && bytes.Equal(e.HardwareAddr, hardware)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// packetSocket is a raw socket at an end: it sends any bytes, and sees what the end gets.
func packetSocket(t *testing.T, end *lab.End) int {
	t.Helper()
	var fd int
	err := end.Do(func() (err error) {
		const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network order
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: end.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// crafted are frames from one end to a port at the other: what may not come in, by name, and one that may.
func crafted(pair *lab.Pair, to wire.Addr) (bad map[string][]byte, good []byte) {
	from := wire.Addr{IP: pair.B.Address.Addr().As16(), Port: 999}
	base := func(to wire.Addr, payload int) []byte {
		frame := make([]byte, wire.FrameHeaderBytes+payload)
		for i := range payload {
			frame[wire.FrameHeaderBytes+i] = byte(i)
		}
		wire.EncodeUDPv4(frame, &wire.Datagram{
			SourceMAC: wire.MAC(pair.B.Hardware), DestinationMAC: wire.MAC(pair.A.Hardware), Source: from, Destination: to,
		})
		return frame
	}
	edit := func(change func(f []byte) []byte) []byte { return change(base(to, 32)) }
	elsewhere := to
	elsewhere.IP[15] ^= 7
	return map[string][]byte{
		"port":       base(wire.Addr{IP: to.IP, Port: to.Port + 1}, 32),
		"address":    base(elsewhere, 32),
		"sum":        edit(func(f []byte) []byte { f[len(f)-1] ^= 1; return f }),
		"IP sum":     edit(func(f []byte) []byte { f[wire.EthernetHeaderBytes+10] ^= 1; return f }),
		"cut":        edit(func(f []byte) []byte { return f[:len(f)-20] }),
		"cut in UDP": edit(func(f []byte) []byte { return f[:wire.EthernetHeaderBytes+wire.IPv4HeaderBytes+4] }),
		"cut in IP":  edit(func(f []byte) []byte { return f[:wire.EthernetHeaderBytes+9] }),
		"only MACs":  edit(func(f []byte) []byte { return f[:wire.EthernetHeaderBytes] }),
		"version":    edit(func(f []byte) []byte { f[wire.EthernetHeaderBytes] = 0x65; return f }),
		"header":     edit(func(f []byte) []byte { f[wire.EthernetHeaderBytes] = 0x44; return f }),
		"options":    edit(func(f []byte) []byte { f[wire.EthernetHeaderBytes] = 0x46; return f }),
		"fragment":   edit(func(f []byte) []byte { f[wire.EthernetHeaderBytes+6] = 0x20; return f }),
		"UDP length": edit(func(f []byte) []byte { f[wire.EthernetHeaderBytes+24] = 0xff; return f }),
		"no sender":  edit(func(f []byte) []byte { f[wire.EthernetHeaderBytes+20], f[wire.EthernetHeaderBytes+21] = 0, 0; return f }),
		"VLAN":       edit(func(f []byte) []byte { return append(append(append([]byte{}, f[:12]...), 0x81, 0, 0, 1), f[12:]...) }),
		"IPv6":       edit(func(f []byte) []byte { f[12], f[13] = 0x86, 0xdd; return f }),
		"ARP":        edit(func(f []byte) []byte { f[12], f[13] = 0x08, 0x06; return f }),
	}, base(to, 100)
}

// TestBadFrames sends a port what it must not take in, then anything at random. Each frame is counted once, by the program or by the port,
// and what is good still arrives.
func TestBadFrames(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	p := open(t, pair.A, xdpport.Config{Port: 7700})
	bad, good := crafted(pair, p.LocalAddr())
	badFrames(t, p, packetSocket(t, pair.B), bad, good)
}

func badFrames(t *testing.T, p *xdpport.Port, raw int, bad map[string][]byte, good []byte) {
	var batch [64]dispatcher.Datagram
	drain := func() (good int) {
		for n := p.Receive(clock.Now(), batch[:]); n > 0; n = p.Receive(clock.Now(), batch[:]) {
			for _, d := range batch[:n] {
				if len(d.Payload) == 100 {
					good++
				}
			}
		}
		return good
	}
	write := func(name string, frame []byte) {
		t.Helper()
		if _, err := unix.Write(raw, frame); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	total := uint64(0)
	for name, frame := range bad {
		write(name, frame)
		write("good", good)
		total += 2
		found := 0
		await(t, "the good one after "+name, func() bool { found += drain(); return found > 0 })
		if stats := p.Stats(); stats.Received != total/2 {
			t.Fatalf("%s was received: %+v", name, stats)
		}
	}
	random := seedtest.Rand(t)
	for range 2000 {
		frame := append([]byte{}, good...)
		for range 1 + random.IntN(8) {
			frame[random.IntN(len(frame))] = byte(random.Uint32())
		}
		frame = frame[:wire.EthernetHeaderBytes+random.IntN(len(frame)-wire.EthernetHeaderBytes+1)]
		write("random", frame)
		total++
		drain()
	}
	var counted, redirected uint64
	await(t, "all are counted", func() bool {
		drain()
		verdicts, err := p.Verdicts()
		if err != nil {
			t.Fatal(err)
		}
		counted, redirected = 0, 0
		for _, v := range verdicts {
			counted += v.Count
			if v.Reason == bpf.ReasonRedirected || v.Reason == bpf.ReasonRedirectedUnstamped {
				redirected += v.Count
			}
		}
		stats := p.Stats()
		return counted >= total && stats.Received+stats.ReceiveDropped == redirected
	})
	if err := p.Audit(); err != nil {
		t.Error(err)
	}
}

// TestNeighbourChanges gives a peer another MAC in the kernel's table: frames go there.
func TestNeighbourChanges(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	p := open(t, pair.A, xdpport.Config{})
	raw := packetSocket(t, pair.B)
	if err := unix.SetsockoptTimeval(raw, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 1000}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"02:00:00:00:00:01", "02:00:00:00:00:02", pair.B.Hardware.String()} {
		mac, err := net.ParseMAC(text)
		if err != nil {
			t.Fatal(err)
		}
		err = pair.A.Do(func() error {
			return netlink.NeighSet(&netlink.Neigh{
				LinkIndex: pair.A.Index, State: netlink.NUD_PERMANENT, IP: pair.B.Address.Addr().AsSlice(), HardwareAddr: mac,
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, 2000)
		await(t, "a frame to "+text, func() bool {
			send(t, p, wire.Addr{IP: pair.B.Address.Addr().As16(), Port: 9}, []byte("to whom it concerns"))
			n, err := unix.Read(raw, frame)
			return err == nil && n > wire.FrameHeaderBytes && wire.MAC(frame[:6]) == wire.MAC(mac)
		})
	}
}
