//go:build linux && !portable

package runtime_test

import (
	"fmt"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// xdpPlaces are both ends of a pair with AF_XDP, if this process has the rights.
func xdpPlaces(t *testing.T) []place {
	pair := labtest.TryPair(t, wide())
	if pair == nil {
		return nil
	}
	return []place{{
		name: "xdp", clientAddress: pair.B.Address.Addr(), onServer: pair.A.Do, onClient: pair.B.Do,
		server: sw.EndpointConfig{Interface: pair.A.Interface, RequireXDP: true},
		client: sw.EndpointConfig{Interface: pair.B.Interface, RequireXDP: true},
	}}
}

// TestMixedPorts has a client over kernel UDP call a server over AF_XDP, and the other way round. The client that names no interface
// attaches nothing to any.
func TestMixedPorts(t *testing.T) {
	for _, p := range places(t) {
		if p.name != "xdp" {
			continue
		}
		for name, mixed := range map[string]place{"udp to xdp": overUDP(p), "xdp to udp": behind(overUDP(p))} {
			t.Run(name, func(t *testing.T) {
				srv, cli := start(t, mixed, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
				if srv.Endpoint().PortName() == cli.Endpoint().PortName() {
					t.Fatalf("both ports are %s", cli.Endpoint().PortName())
				}
				for i := range 500 {
					want := fmt.Sprint("call ", i)
					if reply, err := cli.Call(timeout(t, guard), "echo", []byte(want), nil); err != nil || string(reply) != want {
						t.Fatalf("%s: %q, %v", want, reply, err)
					}
				}
				for _, end := range []struct {
					on   func(func() error) error
					port string
				}{{mixed.onServer, srv.Endpoint().PortName()}, {mixed.onClient, cli.Endpoint().PortName()}} {
					err := end.on(func() error {
						status, err := bpf.Inspect("veth0")
						if err == nil && status.Attached != (end.port == "xdp") {
							t.Errorf("the end over %s has program %d attached: %v", end.port, status.ProgramID, status.Attached)
						}
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
				audit(t, srv.Endpoint(), cli.Endpoint())
			})
		}
	}
}

// wide is a pair with queues for the dispatchers of its ends.
func wide() lab.PairConfig {
	return lab.PairConfig{RxQueueCount: *dispatchers, TxQueueCount: *dispatchers}
}

func wideIPv6() lab.PairConfig {
	cfg := wide()
	cfg.IPv6 = true
	return cfg
}
