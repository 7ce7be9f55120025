//go:build linux && !portable

package runtime_test

import (
	"fmt"
	"net/netip"
	goruntime "runtime"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// TestFirstCall: no packet of the first calls between two hosts that have never heard of each other is dropped, however the loops share their Ps, and none
// needs the kernel's socket at the other end. Whether a call is sent again is up to its timer, which a busy machine lets run out.
func TestFirstCall(t *testing.T) {
	const forever = -1
	for _, processors := range []int{1, 2} {
		for name, cfg := range map[string]sw.EndpointConfig{"spinning for ever": {Spin: forever}, "sleeping": {}} {
			for family, of := range map[string]func(*lab.End) netip.Addr{
				"IPv4": func(end *lab.End) netip.Addr { return end.Address.Addr() }, "IPv6": func(end *lab.End) netip.Addr { return end.Address6.Addr() },
			} {
				t.Run(fmt.Sprintf("%d P, %s, %s", processors, name, family), func(t *testing.T) {
					defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(processors))
					pair := labtest.NewPair(t, wideIPv6())
					p := onPair(pair)
					p.server.Spin, p.client.Spin = cfg.Spin, cfg.Spin
					p.server.Address, p.client.Address = of(pair.A), of(pair.B)
					firstCall(t, p)
				})
			}
		}
	}
}

func firstCall(t *testing.T, p place) {
	srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
	for range 3 {
		if _, err := cli.Call(timeout(t, guard), "echo", []byte("hello"), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []*sw.Endpoint{srv.Endpoint(), cli.Endpoint()} {
		if s := statsOf(t, e).Port; s.SendDropped+s.PassedOn != 0 {
			t.Errorf("%+v", s)
		}
	}
	if s := statsOf(t, cli.Endpoint()).Port; s.LeftToKernel == 0 {
		t.Errorf("the client knew the server: %+v", s)
	}
}
