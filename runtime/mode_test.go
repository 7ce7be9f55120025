//go:build linux && !portable

package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/hw/cpu"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// attachForeign attaches a program that is not ours, by a link that lasts as long as the test.
func attachForeign(t *testing.T, end *lab.End) {
	t.Helper()
	program := labtest.Stranger(t, "somebody_else")
	if err := end.Do(func() error {
		attached, err := link.AttachXDP(link.XDPOptions{Program: program, Interface: end.Index})
		if err == nil {
			t.Cleanup(func() { attached.Close() })
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestFallback opens where AF_XDP is not to be had: kernel UDP serves, and Mode says why; or opening fails, if AF_XDP is required.
// Whoever is there is left alone.
func TestFallback(t *testing.T) {
	pair := labtest.NewPair(t, wide())
	attachForeign(t, pair.A)
	address := pair.A.Address.Addr()
	for name, c := range map[string]struct {
		cfg sw.EndpointConfig
		why string
	}{
		"a foreign program": {sw.EndpointConfig{Interface: pair.A.Interface, Address: address}, "somebody_else"},
		"no such queue":     {sw.EndpointConfig{Interface: pair.A.Interface, Address: address, Queue: 5}, "queue 5"},
		"no such interface": {sw.EndpointConfig{Interface: "eth99", Address: address}, "eth99"},
		"no address":        {sw.EndpointConfig{Interface: "bare0"}, "has no address"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := pair.A.Do(func() error {
				if name != "no address" {
					return nil
				}
				attrs := netlink.NewLinkAttrs()
				attrs.Name = c.cfg.Interface
				return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "bare1"})
			}); err != nil {
				t.Fatal(err)
			}
			p := place{name: "udp", onServer: pair.A.Do, onClient: pair.B.Do, server: c.cfg}
			srv := serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
			mode := srv.Endpoint().Mode()
			if srv.Endpoint().PortName() != "udp" || !strings.HasPrefix(mode, "kernel UDP (") || !strings.Contains(mode, c.why) {
				t.Errorf("mode: %s", mode)
			}
			at := net.JoinHostPort(address.String(), portText(t, srv.Addr()))
			cli := dial(t, p, at, sw.ClientConfig{})
			if _, err := cli.Call(timeout(t, guard), "echo", nil, nil); err != nil {
				t.Errorf("over the fallback: %v", err)
			}
			c.cfg.RequireXDP = true
			err := pair.A.Do(func() error {
				e, err := sw.Open(c.cfg)
				if err == nil {
					return errors.Join(errors.New("opened"), e.Close())
				}
				if !strings.Contains(err.Error(), c.why) {
					return err
				}
				return nil
			})
			if err != nil {
				t.Errorf("with AF_XDP required: %v", err)
			}
		})
	}
	err := pair.A.Do(func() error {
		status, err := bpf.Inspect(pair.A.Interface)
		if err == nil && (!status.Attached || status.Name != "somebody_else") {
			t.Errorf("the foreign program is gone: %+v", status)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPeerChangesItsMAC gives the client's interface another MAC, which takes the link down and up: calls go on.
func TestPeerChangesItsMAC(t *testing.T) {
	pair := labtest.NewPair(t, wide())
	p := place{
		name: "xdp", onServer: pair.A.Do, onClient: pair.B.Do,
		server: sw.EndpointConfig{Interface: pair.A.Interface, RequireXDP: true},
		client: sw.EndpointConfig{Address: pair.B.Address.Addr()},
	}
	srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"echo": echo})
	for _, text := range []string{"", "02:00:00:00:00:77", "02:00:00:00:00:78"} {
		if text != "" {
			err := pair.B.Do(func() error {
				mac, err := net.ParseMAC(text)
				if err != nil {
					return err
				}
				l, err := netlink.LinkByName(pair.B.Interface)
				if err != nil {
					return err
				}
				return errors.Join(netlink.LinkSetDown(l), netlink.LinkSetHardwareAddr(l, mac), netlink.LinkSetUp(l))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			if _, err := cli.Call(timeout(t, guard), "echo", nil, nil); err != nil {
				t.Fatalf("with the MAC %q: %v", text, err)
			}
		}
	}
	audit(t, srv.Endpoint(), cli.Endpoint())
}

// TestDialAttachesNothing dials in a namespace of its own without naming an interface, as a library does that is told nothing.
func TestDialAttachesNothing(t *testing.T) {
	pair := labtest.NewPair(t, wide())
	var cli *sw.Client
	err := pair.B.Do(func() (err error) {
		cli, err = sw.Dial(context.Background(), "10.77.0.1:9", sw.ClientConfig{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	if cli.Endpoint().PortName() != "udp" || cli.Endpoint().Mode() != "kernel UDP" {
		t.Errorf("%s: %s", cli.Endpoint().PortName(), cli.Endpoint().Mode())
	}
	err = pair.B.Do(func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, l := range links {
			status, err := bpf.Inspect(l.Attrs().Name)
			if err != nil {
				return err
			}
			if status.Attached {
				t.Errorf("%s has program %d", status.Interface, status.ProgramID)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestDedicated says what the loop does, and refuses what cannot be.
func TestDedicated(t *testing.T) {
	open := func(cfg sw.EndpointConfig) (string, error) {
		cfg.Address = netip.MustParseAddr("127.0.0.1")
		ep, err := sw.Open(cfg)
		if err != nil {
			return "", err
		}
		return ep.Mode(), ep.Close()
	}
	allowed, err := cpu.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	last, none := allowed[len(allowed)-1], 9999
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	for _, test := range []struct {
		name  string
		cfg   sw.EndpointConfig
		ps    int
		mode  string
		wrong string
	}{
		{"shared", sw.EndpointConfig{}, 2, "kernel UDP", ""},
		{"dedicated", sw.EndpointConfig{Dedicated: true}, 2, "kernel UDP, dedicated dispatcher", ""},
		{"pinned", sw.EndpointConfig{Dedicated: true, PollerCPU: &last}, 2, "kernel UDP, dedicated dispatcher", ""},
		{"one P", sw.EndpointConfig{Dedicated: true}, 1, "kernel UDP, shared dispatcher (dedicated needs two Ps, and GOMAXPROCS is 1: run one process per CPU)", ""},
		{"a CPU and not dedicated", sw.EndpointConfig{PollerCPU: &last}, 2, "", "set Dedicated"},
		{"a CPU that is not there", sw.EndpointConfig{Dedicated: true, PollerCPU: &none}, 2, "", "this process may use"},
	} {
		goruntime.GOMAXPROCS(test.ps)
		mode, err := open(test.cfg)
		if mode != test.mode || (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s: %q, %v", test.name, mode, err)
		}
	}
}

// TestDedicatedPollerIsPinned finds the poller's thread, and nobody else, on its CPU alone.
func TestDedicatedPollerIsPinned(t *testing.T) {
	allowed, err := cpu.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	if len(allowed) < 2 {
		t.Skipf("it takes two CPUs, and this process may use %v", allowed) // with one, everybody is on it
	}
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	srv, err := sw.NewServer(sw.ServerConfig{Endpoint: sw.EndpointConfig{
		Address: netip.MustParseAddr("127.0.0.1"), Dedicated: true, PollerCPU: &allowed[1],
	}})
	if err != nil {
		t.Fatal(err)
	}
	pinned := func() (n int) {
		threads, err := filepath.Glob("/proc/self/task/*/status")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range threads {
			text, _ := os.ReadFile(file) // a thread may end meanwhile
			if bytes.Contains(text, fmt.Appendf(nil, "\nCpus_allowed_list:\t%d\n", allowed[1])) {
				n++
			}
		}
		return n
	}
	statsOf(t, srv.Endpoint()) // the loop runs from the first use on
	await(t, "the poller is on its CPU", func() bool { return pinned() == 1 })
	if err := srv.Endpoint().Close(); err != nil {
		t.Error(err)
	}
	await(t, "its thread has ended", func() bool { return pinned() == 0 })
}
