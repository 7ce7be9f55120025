package runtime_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"

	sw "github.com/stillwater-rpc/stillwater/runtime"
	"github.com/stillwater-rpc/stillwater/wire"
)

// placesIPv6 are places whose ends have nothing but IPv6.
func placesIPv6(t *testing.T) []place {
	loopback := netip.MustParseAddr("::1")
	all := []place{{
		name: "udp", onServer: here, onClient: here,
		server: sw.EndpointConfig{Address: loopback}, client: sw.EndpointConfig{Address: loopback},
	}}
	return append(all, xdpPlacesIPv6(t)...)
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
