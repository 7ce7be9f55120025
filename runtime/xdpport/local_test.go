//go:build linux

package xdpport

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/wire"
)

func TestFirstIPv6(t *testing.T) {
	one := func(text string, flags int) netlink.Addr {
		return netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(text), Mask: net.CIDRMask(64, 128)}, Flags: flags}
	}
	local, unproved := one("fe80::1", 0), one("2001:db8::bad", unix.IFA_F_TENTATIVE)
	double := one("2001:db8::dead", unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED)
	old, passing := one("2001:db8::01d", unix.IFA_F_DEPRECATED), one("2001:db8::7e", unix.IFA_F_TEMPORARY)
	eager := one("2001:db8::0e", unix.IFA_F_TENTATIVE|unix.IFA_F_OPTIMISTIC)
	first, second := one("2001:db8::1", 0), one("fd77::1", 0)
	for name, c := range map[string]struct {
		addrs []netlink.Addr
		want  string
	}{
		"nothing":                {nil, ""},
		"nothing to serve":       {[]netlink.Addr{local, unproved, double}, ""},
		"the first that lasts":   {[]netlink.Addr{unproved, passing, old, first, second, local}, "2001:db8::1"},
		"unique local":           {[]netlink.Addr{local, second}, "fd77::1"},
		"a temporary one":        {[]netlink.Addr{local, passing, old}, "2001:db8::7e"},
		"a deprecated one":       {[]netlink.Addr{old, passing, local}, "2001:db8::1d"},
		"one that is optimistic": {[]netlink.Addr{eager}, "2001:db8::e"},
	} {
		got := ""
		if a := firstIPv6(c.addrs); a != nil {
			got = a.IP.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestNamedAddress(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "2001:db8::1": "2001:db8::1", "fe80::1": "fe80::1%nosuch0", "169.254.0.1": "169.254.0.1",
	} {
		c := Config{Interface: "nosuch0", Address: netip.MustParseAddr(text)}
		got, err := c.addresses(nil)
		if err != nil || !slices.Equal(got, []netip.Addr{netip.MustParseAddr(want)}) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestLocals: an address that is not there is nobody's.
func TestLocals(t *testing.T) {
	four, six := wire.AddrFrom(netip.MustParseAddrPort("10.0.0.1:7")), wire.AddrFrom(netip.MustParseAddrPort("[fd77::1]:7"))
	peer4, peer6 := wire.AddrFrom(netip.MustParseAddrPort("10.0.0.2:9")), wire.AddrFrom(netip.MustParseAddrPort("[fd77::2]:9"))
	for name, c := range map[string]struct {
		own     []wire.Addr
		headers int
	}{
		"IPv4": {[]wire.Addr{four}, wire.FrameHeaderBytes},
		"IPv6": {[]wire.Addr{six}, wire.FrameHeaderBytesIPv6},
		"both": {[]wire.Addr{four, six}, wire.FrameHeaderBytesIPv6},
	} {
		var l locals
		for _, a := range slices.Backward(c.own) {
			l.add(a)
		}
		if !slices.Equal(l.all(), c.own) || l.headers() != c.headers {
			t.Errorf("%s: %v, %d bytes of headers", name, l.all(), l.headers())
		}
		for _, pair := range [][2]wire.Addr{{four, peer4}, {six, peer6}} {
			own, peer := pair[0], pair[1]
			served := slices.Contains(c.own, own)
			if source := l.from(&peer); (source != nil) != served || served && *source != own {
				t.Errorf("%s: to %v from %v", name, peer, source)
			}
			elsewhere := own
			elsewhere.Port++
			if l.has(&own) != served || l.has(&elsewhere) || l.has(&peer) {
				t.Errorf("%s: %v is ours: %v", name, own, l.has(&own))
			}
		}
		if l.has(&wire.Addr{}) {
			t.Errorf("%s: the unspecified address is ours", name)
		}
	}
}
