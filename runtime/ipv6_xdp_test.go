//go:build linux && !portable

package runtime_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// xdpPlacesIPv6 have nothing but IPv6: AF_XDP, and one end of it on either side.
func xdpPlacesIPv6(t *testing.T) (all []place) {
	pair := labtest.TryPair(t, wideIPv6())
	if pair == nil {
		return nil
	}
	xdp := func(end *lab.End) sw.EndpointConfig {
		return sw.EndpointConfig{Interface: end.Interface, Address: end.Address6.Addr(), RequireXDP: true}
	}
	udp := func(end *lab.End) sw.EndpointConfig { return sw.EndpointConfig{Address: end.Address6.Addr()} }
	for name, ends := range map[string][2]sw.EndpointConfig{
		"xdp": {xdp(pair.A), xdp(pair.B)}, "xdp from udp": {xdp(pair.A), udp(pair.B)}, "udp from xdp": {udp(pair.A), xdp(pair.B)},
	} {
		all = append(all, place{name: name, onServer: pair.A.Do, onClient: pair.B.Do, server: ends[0], client: ends[1]})
	}
	return all
}

// TestDualStack has one server on AF_XDP answer clients over IPv4 and IPv6, on kernel UDP and on AF_XDP. An endpoint with both
// addresses dials either.
func TestDualStack(t *testing.T) {
	pair := labtest.NewPair(t, wideIPv6())
	p := place{
		name: "xdp", onServer: pair.A.Do, onClient: pair.B.Do,
		server: sw.EndpointConfig{Interface: pair.A.Interface, RequireXDP: true, Port: 7700},
	}
	srv := serve(t, p, sw.ServerConfig{SLO: calm, Endpoint: p.server}, map[string]sw.Handler{"echo": echo})
	addrs := srv.Endpoint().Addrs()
	if len(addrs) != 2 || addrs[0] != "10.77.0.1:7700" || addrs[1] != "[fd77::1]:7700" || srv.Addr() != addrs[0] {
		t.Fatalf("served at %v, first at %s", addrs, srv.Addr())
	}
	ends := []*sw.Endpoint{srv.Endpoint()}
	for _, at := range addrs {
		p.client = sw.EndpointConfig{}
		ends = append(ends, echoes(t, dial(t, p, at, sw.ClientConfig{})))
	}
	p.client = sw.EndpointConfig{Interface: pair.B.Interface, RequireXDP: true}
	first := dial(t, p, addrs[1], sw.ClientConfig{})
	ends = append(ends, echoes(t, first))
	echoes(t, dial(t, p, addrs[0], sw.ClientConfig{Shared: first.Endpoint()}))
	echoes(t, first)
	audit(t, ends...)
	if s := statsOf(t, srv.Endpoint()); s.Sessions != 4 || s.Port.PassedOn != 0 {
		t.Errorf("%d sessions, %d packets through the kernel", s.Sessions, s.Port.PassedOn)
	}
}

// TestLinkLocal calls by the addresses that nobody configured, over AF_XDP and over kernel UDP.
func TestLinkLocal(t *testing.T) {
	pair := labtest.NewPair(t, wideIPv6())
	own := func(end *lab.End) (found netip.Addr) {
		if err := end.Do(func() error {
			device, err := net.InterfaceByName(end.Interface)
			if err != nil {
				return err
			}
			addrs, err := device.Addrs()
			for _, a := range addrs {
				if ip, _ := netip.AddrFromSlice(a.(*net.IPNet).IP); ip.Is6() && ip.IsLinkLocalUnicast() {
					found = ip.WithZone(end.Interface)
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return found
	}
	p := place{
		name: "xdp", onServer: pair.A.Do, onClient: pair.B.Do,
		server: sw.EndpointConfig{Interface: pair.A.Interface, Address: own(pair.A), RequireXDP: true, Port: 7700},
	}
	srv := serve(t, p, sw.ServerConfig{SLO: calm, Endpoint: p.server}, map[string]sw.Handler{"echo": echo})
	at := netip.AddrPortFrom(own(pair.A), 7700).String()
	for name, client := range map[string]sw.EndpointConfig{
		"kernel UDP": {Address: own(pair.B)}, "kernel UDP, its link by its interface": {Interface: pair.B.Interface, Address: own(pair.B).WithZone(""), Mode: sw.ModeUDP}, "AF_XDP": {Interface: pair.B.Interface, RequireXDP: true},
	} {
		t.Run(name, func(t *testing.T) {
			p.client = client
			audit(t, echoes(t, dial(t, p, at, sw.ClientConfig{})), srv.Endpoint())
		})
	}
	err := pair.B.Do(func() error {
		cli, err := sw.Dial(t.Context(), at, sw.ClientConfig{})
		if err == nil {
			cli.Close()
		}
		return err
	})
	if !errors.Is(err, sw.ErrUnreachable) {
		t.Errorf("from no link: %v", err)
	}
}
