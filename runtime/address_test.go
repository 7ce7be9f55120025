package runtime

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

// namedPort is a port that has addresses and a name, and nothing else.
type namedPort struct {
	dispatcher.Port
	name  string
	addrs []wire.Addr
}

func (p *namedPort) Name() string            { return p.name }
func (p *namedPort) LocalAddr() wire.Addr    { return p.addrs[0] }
func (p *namedPort) LocalAddrs() []wire.Addr { return p.addrs }

// endpointAt has a port of the name at the addresses.
func endpointAt(name string, cfg EndpointConfig, addrs ...string) *Endpoint {
	p := &namedPort{name: name}
	for _, a := range addrs {
		p.addrs = append(p.addrs, wire.AddrFrom(netip.MustParseAddrPort(a)))
	}
	return &Endpoint{cfg: cfg, bare: p}
}

func TestReach(t *testing.T) {
	onLink := EndpointConfig{Interface: "eth1"}
	zoned := EndpointConfig{Address: netip.MustParseAddr("fe80::1%eth1")}
	for name, c := range map[string]struct {
		ep       *Endpoint
		can, not []string
	}{
		"IPv4":     {endpointAt("udp", EndpointConfig{}, "10.0.0.1:7"), []string{"10.0.0.2"}, []string{"fd00::2", "fe80::2%eth1"}},
		"IPv6":     {endpointAt("udp", EndpointConfig{}, "[fd00::1]:7"), []string{"fd00::2", "2001:db8::1"}, []string{"10.0.0.2", "fe80::2%eth1"}},
		"all IPv4": {endpointAt("udp", EndpointConfig{}, "0.0.0.0:7"), []string{"10.0.0.2"}, []string{"fd00::2"}},
		"all":      {endpointAt("udp", EndpointConfig{}, "[::]:7"), []string{"10.0.0.2", "fd00::2"}, []string{"fe80::2", "fe80::2%eth1"}},
		"both":     {endpointAt("xdp", onLink, "10.0.0.1:7", "[fd00::1]:7"), []string{"10.0.0.2", "fd00::2", "fe80::2", "fe80::2%eth1"}, []string{"fe80::2%eth2"}},
		"no IPv6":  {endpointAt("xdp", onLink, "10.0.0.1:7"), []string{"10.0.0.2"}, []string{"fd00::2", "fe80::2"}},
		"fallback": {endpointAt("udp", onLink, "[::]:7"), []string{"10.0.0.2", "fd00::2"}, []string{"fe80::2"}},
		"on link":  {endpointAt("udp", zoned, "[fe80::1]:7"), []string{"fe80::2", "fe80::2%eth1"}, []string{"fe80::2%eth2", "10.0.0.2"}},
	} {
		for _, to := range c.can {
			if err := c.ep.reach(netip.MustParseAddr(to)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, to := range c.not {
			if err := c.ep.reach(netip.MustParseAddr(to)); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), to) {
				t.Errorf("%s: to %s: %v", name, to, err)
			}
		}
	}
}

// TestPick: a name has addresses of both families, and the endpoint takes what it can.
func TestPick(t *testing.T) {
	var found []netip.AddrPort
	for _, a := range []string{"[fd00::2]:9", "10.0.0.2:9", "[fd00::3]:9", "10.0.0.3:9"} {
		found = append(found, netip.MustParseAddrPort(a))
	}
	found = byFamily(found)
	for own, want := range map[string]string{"10.0.0.1:7": "10.0.0.2:9", "[fd00::1]:7": "[fd00::2]:9", "[::]:7": "10.0.0.2:9"} {
		if got, err := endpointAt("udp", EndpointConfig{}, own).pick(found); err != nil || got.String() != want {
			t.Errorf("from %s: %v, %v", own, got, err)
		}
	}
	if _, err := endpointAt("udp", EndpointConfig{}, "[fd00::1]:7").pick(found[:2]); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "10.0.0.2") {
		t.Errorf("of another family alone: %v", err)
	}
}

func TestLookup(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1:9": "10.0.0.1:9", "[fd00::1]:9": "[fd00::1]:9", "[::ffff:10.0.0.1]:9": "10.0.0.1:9", "[fe80::1%eth1]:9": "[fe80::1%eth1]:9",
	} {
		got, err := lookup(t.Context(), text)
		if err != nil || !slices.Equal(got, []netip.AddrPort{netip.MustParseAddrPort(want)}) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "fd00::1", "[fd00::1]", "fd00::1:9:9", "[fd00::1]:many"} {
		if got, err := lookup(t.Context(), text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestRouted asks the kernel: whatever else it has, it has loopback, and none to a port of no host.
func TestRouted(t *testing.T) {
	nowhere, here := netip.MustParseAddrPort("[fe80::1%nosuch0]:9"), netip.MustParseAddrPort("127.0.0.1:9")
	if got := routed([]netip.AddrPort{nowhere, here}); !slices.Equal(got, []netip.AddrPort{here, nowhere}) {
		t.Errorf("%v", got)
	}
	if got := routed([]netip.AddrPort{nowhere}); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
