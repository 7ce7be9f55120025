//go:build linux && !portable

package runtime_test

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// patient has the end's kernel wait for an hour before it asks for a neighbour again.
func patient(end *lab.End, family string) error {
	return end.Do(func() error {
		return os.WriteFile(filepath.Join("/proc/sys/net", family, "neigh", end.Interface, "retrans_time_ms"), []byte("3600000"), 0)
	})
}

// TestAnnouncement: an interface that comes back tells the link who it is. The peer's kernel knows a wrong MAC by then, and would not ask for another
// within this test.
func TestAnnouncement(t *testing.T) {
	for family, address := range map[string]func(*lab.End) netip.Addr{
		"ipv4": func(e *lab.End) netip.Addr { return e.Address.Addr() }, "ipv6": func(e *lab.End) netip.Addr { return e.Address6.Addr() },
	} {
		t.Run(family, func(t *testing.T) {
			down := lab.DeviceFaults[0]
			if down.Name != "link down" {
				t.Fatal(down.Name)
			}
			pair := labtest.NewPair(t, wideIPv6())
			srv := serve(t, onPair(pair), sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
			labtest.Must(t, patient(pair.B, family))
			labtest.Must(t, down.Strike(pair))
			await(t, "the trouble is seen", func() bool { return srv.Endpoint().Trouble() != "" })
			labtest.Must(t, pair.B.Do(func() error {
				link, err := netlink.LinkByName(pair.B.Interface)
				if err != nil {
					return err
				}
				return netlink.NeighSet(&netlink.Neigh{
					LinkIndex: link.Attrs().Index, IP: address(pair.A).AsSlice(), State: netlink.NUD_STALE,
					HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 0x99},
				})
			}))
			labtest.Must(t, down.Mend(pair))
			await(t, "the peer knows better", func() bool { return neighbourOf(t, pair.B, address(pair.A)) == pair.A.Hardware.String() })
			audit(t, srv.Endpoint())
		})
	}
}

// neighbourOf is the MAC that the end's kernel has for an address; "" = none.
func neighbourOf(t *testing.T, end *lab.End, address netip.Addr) (mac string) {
	t.Helper()
	labtest.Must(t, end.Do(func() error {
		all, err := netlink.NeighList(0, 0)
		for _, n := range all {
			if n.IP.Equal(address.AsSlice()) {
				mac = strings.ToLower(n.HardwareAddr.String())
			}
		}
		return err
	}))
	return mac
}
