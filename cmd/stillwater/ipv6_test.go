//go:build linux && !portable

package main

import (
	"slices"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
)

// TestIPv6 serves an interface that has addresses of both families, and calls it over each, from kernel UDP and from AF_XDP.
func TestIPv6(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	s := startServe(t, pair.A.Do, "--interface", pair.A.Interface, "--require-xdp")
	if want := []string{"10.77.0.1:7700", "[fd77::1]:7700"}; !slices.Equal(s.All, want) || s.Address != want[0] {
		t.Errorf("served at %v, first at %s", s.All, s.Address)
	}
	for _, server := range append(s.All, "fd77::1", "[fd77::1]", "10.77.0.1") {
		runAt(t, pair.B.Do, "call", server, "echo", "hello").check(t, exitOK, "hello\n")
		runAt(t, pair.B.Do, "call", server, "echo", "hello", "--interface", pair.B.Interface, "--require-xdp").check(t, exitOK, "hello\n")
	}
	runAt(t, pair.B.Do, "bench", "closed", "fd77::1", "--duration", "100ms", "--warmup", "10ms", "--address", "fd77::2").check(t, exitOK, "latency")
	for server, address := range map[string]string{"fd77::1": "10.77.0.2", "10.77.0.1": "fd77::2"} {
		runAt(t, pair.B.Do, "call", server, "echo", "hello", "--address", address).check(t, exitUsage, "none of that family", "--address")
	}
	s.end(t)
}

// TestServeOneAddress names the IPv6 address: the IPv4 one is not served.
func TestServeOneAddress(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{IPv6: true})
	s := startServe(t, pair.A.Do, "--interface", pair.A.Interface, "--require-xdp", "--address", "fd77::1")
	if !slices.Equal(s.All, []string{"[fd77::1]:7700"}) || s.Address != s.All[0] {
		t.Errorf("served at %v", s.All)
	}
	runAt(t, pair.B.Do, "call", s.Address, "echo", "hello", "--trace").check(t, exitOK, "hello\n")
	runAt(t, pair.B.Do, "call", "10.77.0.1", "echo", "hello", "--timeout", "50ms").check(t, exitCheck)
	s.end(t)
}
