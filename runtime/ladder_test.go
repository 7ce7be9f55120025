//go:build linux && !portable

package runtime_test

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// rungs are what a veth pair has, with the words that the mode line has for each: no driver of it has zero-copy.
var rungs = []struct {
	mode       sw.Mode
	port, says string
}{
	{sw.ModeAuto, "xdp", "AF_XDP on veth0 queue 0, native XDP, copy mode (no zero-copy there)"},
	{sw.ModeCopy, "xdp", "AF_XDP on veth0 queue 0, native XDP, copy mode"},
	{sw.ModeGeneric, "xdp", "AF_XDP on veth0 queue 0, generic XDP, copy mode"},
	{sw.ModeUDP, "udp", "kernel UDP"},
}

// TestRungs has every rung at one end call every rung at the other. So native meets generic, and AF_XDP meets kernel UDP, in both directions.
func TestRungs(t *testing.T) {
	pair := labtest.NewPair(t, wide())
	for _, server := range rungs {
		t.Run("server "+server.mode.String(), func(t *testing.T) {
			p := onPair(pair)
			p.server = sw.EndpointConfig{Interface: pair.A.Interface, Mode: server.mode}
			srv := serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
			if e := srv.Endpoint(); e.PortName() != server.port || e.Mode() != server.says {
				t.Errorf("served over %s: %s", e.PortName(), e.Mode())
			}
			if at := netip.MustParseAddrPort(srv.Addr()); at.Addr() != pair.A.Address.Addr() {
				t.Errorf("served at %v", at)
			}
			for _, client := range rungs {
				t.Run("client "+client.mode.String(), func(t *testing.T) {
					p.client = sw.EndpointConfig{Interface: pair.B.Interface, Mode: client.mode}
					cli := dial(t, p, srv.Addr(), sw.ClientConfig{})
					if e := cli.Endpoint(); e.PortName() != client.port || e.Mode() != client.says {
						t.Errorf("called over %s: %s", e.PortName(), e.Mode())
					}
					before := statsOf(t, srv.Endpoint()).Port
					ends := []*sw.Endpoint{srv.Endpoint(), echoes(t, cli)}
					audit(t, ends...)
					after := statsOf(t, srv.Endpoint()).Port
					for at, passed := range []uint64{after.PassedOn - before.PassedOn, statsOf(t, cli.Endpoint()).Port.PassedOn} {
						if passed != 0 {
							t.Errorf("the kernel's socket of end %d took %d packets", at, passed)
						}
					}
				})
			}
		})
	}
}

// TestRungsNotToBeHad: who names a rung gets that one or an error with its cure, and never another; what contradicts itself opens nothing.
func TestRungsNotToBeHad(t *testing.T) {
	pair := labtest.NewPair(t, wide())
	loopback := onLoopback(t, pair.A)
	for name, c := range map[string]struct {
		cfg  sw.EndpointConfig
		mode bool // ErrMode
		want []string
	}{
		"zero-copy on veth":   {sw.EndpointConfig{Interface: pair.A.Interface, Mode: sw.ModeZeroCopy}, false, []string{"veth0", "zero-copy", "use copy mode"}},
		"generic on loopback": {sw.EndpointConfig{Interface: loopback, Mode: sw.ModeGeneric}, false, []string{"lo", "not an Ethernet interface", "kernel UDP"}},
		"nowhere":             {sw.EndpointConfig{Mode: sw.ModeGeneric}, true, []string{"without an Interface"}},
		"udp and required":    {sw.EndpointConfig{Interface: pair.A.Interface, Mode: sw.ModeUDP, RequireXDP: true}, true, []string{"RequireXDP"}},
		"udp by a program":    {sw.EndpointConfig{Interface: pair.A.Interface, Mode: sw.ModeUDP, PinPath: "x"}, true, []string{"PinPath"}},
		"udp at no interface": {sw.EndpointConfig{Interface: "nosuch0", Mode: sw.ModeUDP}, false, []string{"nosuch0"}},
		"a mode that is none": {sw.EndpointConfig{Interface: pair.A.Interface, Mode: sw.ModeUDP + 1}, true, []string{"mode 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := pair.A.Do(func() error {
				e, err := sw.Open(c.cfg)
				if err == nil {
					t.Errorf("opened: %s", e.Mode())
					return e.Close()
				}
				for _, word := range c.want {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("no %q in: %v", word, err)
					}
				}
				if errors.Is(err, sw.ErrMode) != c.mode {
					t.Errorf("the error's kind: %v", err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if attachedBy(t, pair.A) {
				t.Error("a program is left attached")
			}
		})
	}
}

// TestUDPAtAnAddress: kernel UDP of an interface is at the address that is named, also of the other family.
func TestUDPAtAnAddress(t *testing.T) {
	pair := labtest.NewPair(t, wideIPv6())
	for address, want := range map[netip.Addr]netip.Addr{
		{}:                               pair.A.Address.Addr(),
		netip.IPv4Unspecified():          pair.A.Address.Addr(),
		netip.IPv6Unspecified():          pair.A.Address6.Addr(),
		pair.A.Address6.Addr():           pair.A.Address6.Addr(),
		netip.MustParseAddr("192.0.2.9"): {}, // nobody's here
	} {
		err := pair.A.Do(func() error {
			e, err := sw.Open(sw.EndpointConfig{Interface: pair.A.Interface, Mode: sw.ModeUDP, Address: address})
			if err != nil {
				return err
			}
			if at := netip.MustParseAddrPort(e.Addr()); at.Addr() != want {
				t.Errorf("for %v: at %v", address, at)
			}
			return e.Close()
		})
		if (err == nil) != want.IsValid() {
			t.Errorf("for %v: %v", address, err)
		}
	}
}

// TestUDPDialsEitherFamily: a client on kernel UDP of an interface is at its address of the family that it dials.
func TestUDPDialsEitherFamily(t *testing.T) {
	pair := labtest.NewPair(t, wideIPv6())
	p := place{
		name: "xdp", onServer: pair.A.Do, onClient: pair.B.Do,
		server: sw.EndpointConfig{Interface: pair.A.Interface, Mode: sw.ModeCopy, Port: 7700},
		client: sw.EndpointConfig{Interface: pair.B.Interface, Mode: sw.ModeUDP},
	}
	srv := serve(t, p, sw.ServerConfig{SLO: calm, Endpoint: p.server}, map[string]sw.Handler{"echo": echo})
	for at, want := range map[string]netip.Addr{"10.77.0.1:7700": pair.B.Address.Addr(), "[fd77::1]:7700": pair.B.Address6.Addr()} {
		ep := echoes(t, dial(t, p, at, sw.ClientConfig{}))
		if own := netip.MustParseAddrPort(ep.Addr()); own.Addr() != want {
			t.Errorf("dialed %s from %v", at, own)
		}
		audit(t, srv.Endpoint(), ep)
	}
}

// onLoopback sets the loopback interface up, and returns its name.
func onLoopback(t *testing.T, end *lab.End) string {
	t.Helper()
	labtest.Must(t, end.Do(func() error {
		l, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	}))
	return "lo"
}

// TestLoopback: the loopback interface has no Ethernet addresses, so auto serves by kernel UDP there, and says why.
func TestLoopback(t *testing.T) {
	pair := labtest.NewPair(t, wide())
	for mode, says := range map[sw.Mode]string{sw.ModeAuto: "kernel UDP (AF_XDP on lo is not to be had: ", sw.ModeUDP: "kernel UDP"} {
		p := place{
			name: "udp", onServer: pair.A.Do, onClient: pair.A.Do,
			server: sw.EndpointConfig{Interface: onLoopback(t, pair.A), Mode: mode},
		}
		srv := serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
		if e := srv.Endpoint(); !strings.HasPrefix(e.Mode(), says) || mode == sw.ModeUDP && !strings.HasPrefix(e.Addr(), "127.0.0.1:") {
			t.Errorf("%v: served at %s over %s", mode, e.Addr(), e.Mode())
		}
		echoes(t, dial(t, p, net.JoinHostPort("127.0.0.1", portText(t, srv.Addr())), sw.ClientConfig{}))
	}
}

// onBridge moves an end's address to a bridge that its interface becomes a port of, and returns the bridge's name.
func onBridge(t *testing.T, end *lab.End) string {
	t.Helper()
	const name = "bridge0"
	labtest.Must(t, end.Do(func() error {
		port, err := netlink.LinkByName(end.Interface)
		if err != nil {
			return err
		}
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}
		if err := netlink.LinkAdd(bridge); err != nil {
			return err
		}
		address := &netlink.Addr{IPNet: &net.IPNet{IP: end.Address.Addr().AsSlice(), Mask: net.CIDRMask(end.Address.Bits(), 32)}}
		return errors.Join(netlink.LinkSetMaster(port, bridge), netlink.AddrDel(port, address), netlink.AddrAdd(bridge, address),
			netlink.LinkSetUp(bridge))
	}))
	return name
}

// TestNoNativeXDP serves on a bridge, whose driver has no XDP: auto comes to generic by itself, and who named another rung is told.
func TestNoNativeXDP(t *testing.T) {
	pair := labtest.NewPair(t, wide())
	p := place{name: "xdp", onServer: pair.A.Do, onClient: pair.B.Do}
	p.server.Interface = onBridge(t, pair.A)
	for mode, says := range map[sw.Mode]string{sw.ModeAuto: " (no native XDP there)", sw.ModeGeneric: ""} {
		t.Run(mode.String(), func(t *testing.T) {
			p.server.Mode = mode
			srv := serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
			if e := srv.Endpoint(); e.Mode() != "AF_XDP on bridge0 queue 0, generic XDP, copy mode"+says {
				t.Errorf("served over %s", e.Mode())
			}
			for _, p.client = range []sw.EndpointConfig{{}, {Interface: pair.B.Interface, Mode: sw.ModeCopy}} {
				audit(t, srv.Endpoint(), echoes(t, dial(t, p, srv.Addr(), sw.ClientConfig{})))
			}
			if passed := statsOf(t, srv.Endpoint()).Port.PassedOn; passed != 0 {
				t.Errorf("the kernel's socket took %d packets", passed)
			}
		})
	}
	for mode, words := range map[sw.Mode]string{sw.ModeCopy: "use generic mode", sw.ModeZeroCopy: "use copy mode"} {
		cfg := sw.EndpointConfig{Interface: p.server.Interface, Mode: mode}
		labtest.Must(t, pair.A.Do(func() error {
			e, err := sw.Open(cfg)
			if err == nil {
				t.Errorf("opened: %s", e.Mode())
				return e.Close()
			}
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%v: %v", mode, err)
			}
			return nil
		}))
	}
}

// TestRungIsKept deletes the interface under an endpoint: it is opened anew in the mode that was named.
func TestRungIsKept(t *testing.T) {
	for _, mode := range []sw.Mode{sw.ModeAuto, sw.ModeCopy, sw.ModeGeneric} {
		t.Run(mode.String(), func(t *testing.T) {
			pair := labtest.NewPair(t, wide())
			p := onPair(pair)
			p.server.Mode = mode
			srv, cli := start(t, p, sw.ServerConfig{SLO: brisk}, map[string]sw.Handler{"echo": echo})
			f := newTraffic(cli)
			await(t, "calls are answered", f.whole)
			before := srv.Endpoint().Mode()
			for _, fault := range lab.DeviceFaults {
				if fault.Name != "deleted and made again" {
					continue
				}
				labtest.Must(t, fault.Strike(pair))
				await(t, "the trouble is seen", func() bool { return strings.Contains(srv.Endpoint().Trouble(), "looking for veth0") })
				labtest.Must(t, fault.Mend(pair))
			}
			await(t, "the interface is whole", func() bool { return srv.Endpoint().Trouble() == "" && attachedBy(t, pair.A) })
			f.again()
			await(t, "calls are answered again", f.whole)
			if after := srv.Endpoint().Mode(); after != before {
				t.Errorf("it was %s, and is %s", before, after)
			}
			f.end(t)
			audit(t, srv.Endpoint(), cli.Endpoint())
		})
	}
}
