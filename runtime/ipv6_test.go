package runtime_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	sw "github.com/stillwater-rpc/stillwater/runtime"
	"github.com/stillwater-rpc/stillwater/wire"
)

// placesIPv6 are places whose ends have nothing but IPv6: kernel UDP, AF_XDP, and one of each on either side.
func placesIPv6(t *testing.T) []place {
	loopback := netip.MustParseAddr("::1")
	all := []place{{
		name: "udp", onServer: here, onClient: here,
		server: sw.EndpointConfig{Address: loopback}, client: sw.EndpointConfig{Address: loopback},
	}}
	pair := labtest.TryPair(t, lab.PairConfig{IPv6: true})
	if pair == nil {
		return all
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

// TestEchoIPv6 sends requests of every length that fits into a packet of the link.
func TestEchoIPv6(t *testing.T) {
	const requestMax = 1500 - wire.IPv6HeaderBytes - wire.UDPHeaderBytes - wire.OverheadBytes - wire.OpenTokenBytes - wire.RequestBytes - 10
	for _, p := range placesIPv6(t) {
		t.Run(p.name, func(t *testing.T) {
			srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
			ctx := timeout(t, guard)
			for size := range requestMax + 1 {
				payload := bytes.Repeat([]byte{byte(size)}, size)
				reply, err := cli.Call(ctx, "echo", payload, nil)
				if err != nil || !bytes.Equal(reply, payload) {
					t.Fatalf("echo of %d bytes: %d bytes, %v", size, len(reply), err)
				}
			}
			if _, err := cli.Call(ctx, "echo", make([]byte, requestMax+1), nil); !errors.Is(err, sw.ErrTooLarge) {
				t.Errorf("one byte more: %v", err)
			}
			audit(t, srv.Endpoint(), cli.Endpoint())
		})
	}
}

// TestDualStack has one server on AF_XDP answer clients over IPv4 and IPv6, on kernel UDP and on AF_XDP. An endpoint with both
// addresses dials either.
func TestDualStack(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
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

// echoes makes calls, and returns the client's endpoint.
func echoes(t *testing.T, cli *sw.Client) *sw.Endpoint {
	t.Helper()
	for range 50 {
		if reply, err := cli.Call(timeout(t, guard), "echo", []byte("both"), nil); err != nil || string(reply) != "both" {
			t.Fatalf("%q, %v", reply, err)
		}
	}
	return cli.Endpoint()
}

// TestLinkLocal calls by the addresses that nobody configured, over AF_XDP and over kernel UDP.
func TestLinkLocal(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
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
		"kernel UDP": {Address: own(pair.B)}, "kernel UDP, its link by its interface": {Interface: pair.B.Interface, Address: own(pair.B).WithZone(""), Mode: sw.ModeUDP},
		"AF_XDP": {Interface: pair.B.Interface, RequireXDP: true},
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

// TestAllAddresses: kernel UDP without an address serves both families.
func TestAllAddresses(t *testing.T) {
	p := place{name: "udp", onServer: here, onClient: here}
	srv := serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
	port := portText(t, srv.Addr())
	for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
		echoes(t, dial(t, p, net.JoinHostPort(host, port), sw.ClientConfig{}))
	}
}

// TestWrongFamily dials where the endpoint has no address to send from.
func TestWrongFamily(t *testing.T) {
	for own, to := range map[string]string{"127.0.0.1": "[::1]:9", "::1": "127.0.0.1:9", "0.0.0.0": "[::1]:9"} {
		cfg := sw.ClientConfig{Endpoint: sw.EndpointConfig{Address: netip.MustParseAddr(own)}}
		if cli, err := sw.Dial(t.Context(), to, cfg); !errors.Is(err, sw.ErrUnreachable) {
			t.Errorf("from %s to %s: %v", own, to, err)
			if err == nil {
				cli.Close()
			}
		}
	}
}
