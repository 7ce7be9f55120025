//go:build !linux || portable

package runtime_test

import (
	"errors"
	"strings"
	"testing"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

func xdpPlaces(*testing.T) []place     { return nil }
func xdpPlacesIPv6(*testing.T) []place { return nil }

// TestInterfaceWithoutXDP names an interface where no AF_XDP was built in: kernel UDP serves, and says why, or opening fails.
func TestInterfaceWithoutXDP(t *testing.T) {
	const why = "only a build for Linux has AF_XDP"
	p := places(t)[0]
	p.server.Interface = "lo0"
	srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
	if mode := srv.Endpoint().Mode(); !strings.HasPrefix(mode, "kernel UDP (AF_XDP on lo0") || !strings.Contains(mode, why) {
		t.Errorf("mode: %s", mode)
	}
	echoes(t, cli)
	p.server.RequireXDP = true
	if ep, err := sw.Open(p.server); err == nil {
		t.Errorf("opened over %s", ep.PortName())
		ep.Close()
	} else if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), why) {
		t.Errorf("with AF_XDP required: %v", err)
	}
}
