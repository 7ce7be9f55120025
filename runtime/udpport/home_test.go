//go:build linux

package udpport_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/runtime/udpport"
	"github.com/stillwater-rpc/stillwater/wire"
)

// ask has a connected socket ask the port, which answers; the kernel gives the socket nothing that comes from elsewhere.
func ask(t *testing.T, p *udpport.Port, conn *net.UDPConn) {
	t.Helper()
	if _, err := conn.Write([]byte("who")); err != nil {
		t.Fatal(err)
	}
	d := receive(t, p, 1)[0]
	send(t, p, d.From, []byte("me"))
	p.Kick()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 10)
	if n, err := conn.Read(answer); err != nil || string(answer[:n]) != "me" {
		t.Errorf("from %v to %v: %q, %v; port counts %+v", conn.LocalAddr(), conn.RemoteAddr(), answer[:n], err, p.Stats())
	}
}

// TestWildcardAnswersFromWhereItWasAsked: loopback has 16 million addresses, of which the kernel would choose 127.0.0.1.
func TestWildcardAnswersFromWhereItWasAsked(t *testing.T) {
	for name, cfg := range map[string]udpport.Config{
		"0.0.0.0":            {Listen: netip.MustParseAddrPort("0.0.0.0:0")},
		"[::]":               {Listen: netip.MustParseAddrPort("[::]:0")},
		"[::] with no stamp": {Listen: netip.MustParseAddrPort("[::]:0"), NoKernelStamps: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, cfg)
			for _, host := range []string{"127.0.0.1", "127.0.0.5", "127.9.9.9"} {
				conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.ParseIP(host), Port: int(p.LocalAddr().Port)})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				ask(t, p, conn)
			}
			if s := p.Stats(); s.SendDropped != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestWildcardIPv6 asks at each of several addresses of one host, the link-local one included. Then an address goes: what would be sent
// from it is lost once, and later the kernel chooses.
func TestWildcardIPv6(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	other := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP("fd77::22"), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD}
	var p *udpport.Port
	var hosts []net.IP
	if err := pair.B.Do(func() (err error) {
		link, err := netlink.LinkByName(pair.B.Interface)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, other); err != nil {
			return err
		}
		addrs, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		for _, a := range addrs {
			hosts = append(hosts, a.IP)
		}
		p = open(t, udpport.Config{Listen: netip.MustParseAddrPort("[::]:0")})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(hosts) != 4 {
		t.Fatalf("addresses %v", hosts)
	}
	dial := func(host net.IP) (conn *net.UDPConn) {
		if err := pair.A.Do(func() (err error) {
			conn, err = net.DialUDP("udp", nil, &net.UDPAddr{IP: host, Port: int(p.LocalAddr().Port), Zone: pair.A.Interface})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	for _, host := range hosts {
		ask(t, p, dial(host))
	}
	conn := dial(other.IP)
	ask(t, p, conn)
	if err := pair.B.Do(func() error {
		link, err := netlink.LinkByName(pair.B.Interface)
		if err != nil {
			return err
		}
		return netlink.AddrDel(link, other)
	}); err != nil {
		t.Fatal(err)
	}
	peer := wire.AddrFrom(conn.LocalAddr().(*net.UDPAddr).AddrPort())
	before := p.Stats()
	for range 2 {
		send(t, p, peer, []byte("still me"))
		p.Kick()
	}
	if s := p.Stats(); s.SendDropped != before.SendDropped+1 || s.Sent != before.Sent+1 {
		t.Errorf("before %+v, after %+v", before, s)
	}
}

// TestPayloadMaxByFamily: what an Ethernet link of 1500 bytes carries, each way. A port for both families receives what IPv4 carries, and
// sends what IPv6 does.
func TestPayloadMaxByFamily(t *testing.T) {
	four := open(t, udpport.Config{})
	both := open(t, udpport.Config{Listen: netip.MustParseAddrPort("[::]:0")})
	if four.PayloadMax() != 1472 || both.PayloadMax() != 1452 {
		t.Fatalf("%d over IPv4, %d over both", four.PayloadMax(), both.PayloadMax())
	}
	to := wire.AddrFrom(netip.AddrPortFrom(loopback.Addr(), both.LocalAddr().Port))
	send(t, four, to, make([]byte, 1472))
	four.Kick()
	d := receive(t, both, 1)[0]
	if len(d.Payload) != 1472 || d.From != four.LocalAddr() {
		t.Fatalf("%d bytes from %v", len(d.Payload), d.From)
	}
	send(t, both, d.From, make([]byte, 1452))
	both.Kick()
	if got := receive(t, four, 1)[0]; len(got.Payload) != 1452 || got.From != to {
		t.Errorf("%d bytes from %v", len(got.Payload), got.From)
	}
}
