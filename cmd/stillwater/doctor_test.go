//go:build linux && !portable

package main

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/hw/doctor"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// examined is what doctor printed as JSON.
type examined struct {
	Schema string `json:"schema"`
	doctorData
}

// examine runs doctor at a place, and gives its report and exit code.
func examine(t *testing.T, at func(func() error) error, args ...string) (examined, result) {
	t.Helper()
	r := runAt(t, at, append([]string{"doctor", "-o", "json"}, args...)...)
	return decodeReport(t, r), r
}

func decodeReport(t *testing.T, r result) (e examined) {
	t.Helper()
	r.decode(t, &e)
	if e.Schema != schemaDoctor || len(e.Items) == 0 {
		t.Fatalf("%+v", e)
	}
	for _, i := range e.Items {
		if (i.Verdict == doctor.OK) != (i.Cure == "") || !strings.HasPrefix(i.ID, i.Group+".") || i.Have == "" {
			t.Errorf("%+v", i)
		}
	}
	return e
}

func (e *examined) item(t *testing.T, id string) doctor.Item {
	t.Helper()
	i := slices.IndexFunc(e.Items, func(i doctor.Item) bool { return i.ID == id })
	if i < 0 {
		t.Fatalf("no item %s", id)
	}
	return e.Items[i]
}

// liveOnly are the checks that a recorded tree cannot answer.
var liveOnly = []string{
	"bpf.load", "nic.program", "nic.native", "nic.zero_copy", "nic.metadata", "nic.lro", "nic.gro_hw", "nic.coalescing",
}

// TestRecordedHosts examines three trees: made up of the files that such machines show, with values as they were published.
func TestRecordedHosts(t *testing.T) {
	for _, test := range []struct {
		host, nic string
		path      doctor.Path
		proven    bool
		code      int
		strict    int
		unwell    map[string]doctor.Verdict // all others are ok, but for those that take a live host
	}{
		{
			"container", "eth0", doctor.Socket, true, exitCheck, exitCheck,
			map[string]doctor.Verdict{
				"bpf.jit": doctor.Unknown, "nic.driver": doctor.Unknown, "cpu.numa": doctor.Unknown,
				"privileges.net_admin": doctor.Fail, "privileges.net_raw": doctor.Fail, "privileges.bpf": doctor.Fail,
				"privileges.seccomp": doctor.Warn, "clock.source": doctor.Warn, "cgroup.cpu_max": doctor.Warn,
			},
		},
		{
			"mlx5", "ens1f0np0", doctor.NativeZeroCopy, false, exitOK, exitOK,
			map[string]doctor.Verdict{"steering.rules": doctor.Unknown, "steering.hash": doctor.Unknown},
		},
		{
			"old", "eth2", doctor.Socket, true, exitCheck, exitCheck,
			map[string]doctor.Verdict{
				"kernel.release": doctor.Fail, "kernel.af_xdp": doctor.Fail, "bpf.jit": doctor.Warn, "nic.link": doctor.Fail, "nic.queues": doctor.Warn,
				"nic.mtu": doctor.Warn, "steering.rules": doctor.Unknown, "steering.hash": doctor.Unknown, "cpu.governor": doctor.Warn,
				"cpu.idle": doctor.Warn, "cpu.numa": doctor.Warn, "clock.source": doctor.Warn,
			},
		},
	} {
		root := filepath.Join("testdata", "hosts", test.host)
		e, r := examine(t, here, "--root", root, "--interface", test.nic)
		if r.code != test.code || e.Path != test.path || e.Proven != test.proven || e.Root != root || e.Interface != test.nic {
			t.Errorf("%s: exit code %d, %s, %s", test.host, r.code, e.Path, e.Reason)
		}
		want := maps.Clone(test.unwell)
		for _, id := range liveOnly {
			want[id] = doctor.Unknown
		}
		for _, i := range e.Items {
			if verdict, unwell := want[i.ID]; i.Verdict != verdict && (unwell || i.Verdict != doctor.OK) {
				t.Errorf("%s: %+v, want %q", test.host, i, verdict)
			}
			delete(want, i.ID)
		}
		if len(want) > 0 {
			t.Errorf("%s: no items %v", test.host, want)
		}
		if code := cliRun(t, "doctor", "--root", root, "--interface", test.nic, "--strict").code; code != test.strict {
			t.Errorf("%s: exit code %d with --strict", test.host, code)
		}
		text := cliRun(t, "doctor", "--root", root)
		text.check(t, text.code, "verdict: ", "nic\n  unknown  interface ", "stillwater doctor --interface "+test.nic)
	}
}

// TestRecordedTreeIsClosed does not follow a link out of the tree, to where this host's own file is.
func TestRecordedTreeIsClosed(t *testing.T) {
	root := t.TempDir()
	for _, directory := range []string{"proc/sys/kernel", "sys"} {
		if err := os.MkdirAll(filepath.Join(root, directory), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/proc/sys/kernel/osrelease", filepath.Join(root, "proc/sys/kernel/osrelease")); err != nil {
		t.Fatal(err)
	}
	e, _ := examine(t, here, "--root", root)
	if i := e.item(t, "kernel.release"); i.Verdict != doctor.Unknown {
		t.Errorf("%+v", i)
	}
}

// TestDoctorOnVeth tries a veth pair, which has native XDP and no zero-copy, and leaves it as it was: a server gets the same, at once.
func TestDoctorOnVeth(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	e, r := examine(t, pair.A.Do, "--interface", "veth0")
	r.check(t, exitOK)
	if e.Path != doctor.NativeCopy || !e.Proven || e.FailCount != 0 {
		t.Errorf("%s, %v, %s", e.Path, e.Proven, e.Reason)
	}
	for id, want := range map[string]doctor.Verdict{
		"bpf.load": doctor.OK, "nic.link": doctor.OK, "nic.native": doctor.OK, "nic.zero_copy": doctor.Warn, "nic.mtu": doctor.OK,
		"nic.tx_checksum": doctor.OK, "steering.rules": doctor.OK, "privileges.bpf": doctor.OK, "nic.program": doctor.OK,
	} {
		if i := e.item(t, id); i.Verdict != want {
			t.Errorf("%+v, want %s", i, want)
		}
	}
	runAt(t, pair.A.Do, "doctor", "--interface", "veth0", "--strict").check(t, exitWarning, "native-copy on veth0, proven", "why", "cure")
	runAt(t, pair.A.Do, "xdp", "status", "veth0").check(t, exitOK, "no program")
	s := startServe(t, pair.A.Do, "--interface", "veth0", "--require-xdp")
	if !strings.Contains(s.Mode, "native XDP, copy mode") {
		t.Errorf("the server says %q", s.Mode)
	}
	// With a server there, nothing is tried, and it goes on.
	e, r = examine(t, pair.A.Do, "--interface", "veth0")
	if r.code != exitOK || e.Proven || e.item(t, "nic.native").Verdict != doctor.Unknown || e.item(t, "nic.program").Verdict != doctor.OK {
		t.Errorf("beside a server: exit code %d, %+v", r.code, e.item(t, "nic.program"))
	}
	runAt(t, pair.B.Do, "call", s.Address, "echo", "still there").check(t, exitOK, "still there")
	s.end(t)
}

// TestDoctorEvictsNobody finds the program of somebody else, and leaves it.
func TestDoctorEvictsNobody(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	leave(t, pair.A, labtest.Stranger(t, "a_firewall"))
	for _, force := range [][]string{nil, {"--force"}} {
		e, r := examine(t, pair.A.Do, append([]string{"--interface", "veth0"}, force...)...)
		i := e.item(t, "nic.program")
		if r.code != exitCheck || e.Path != doctor.Socket || i.Verdict != doctor.Fail || !strings.Contains(i.Have, "a_firewall") {
			t.Errorf("exit code %d, %s, %+v", r.code, e.Path, i)
		}
		runAt(t, pair.A.Do, "xdp", "status", "veth0").check(t, exitOK, "a_firewall")
	}
}

// TestDoctorSparesTheDefaultRoute tries such an interface only when it is told to.
func TestDoctorSparesTheDefaultRoute(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	err := pair.A.Do(func() error {
		return netlink.RouteAdd(&netlink.Route{LinkIndex: pair.A.Index, Gw: pair.B.Address.Addr().AsSlice()})
	})
	if err != nil {
		t.Fatal(err)
	}
	e, r := examine(t, pair.A.Do, "--interface", "veth0")
	i := e.item(t, "nic.native")
	if r.code != exitOK || e.Proven || e.Path != doctor.NativeCopy || i.Verdict != doctor.Unknown || i.Cure != "stillwater doctor --interface veth0 --force" {
		t.Errorf("exit code %d, %s, %+v", r.code, e.Path, i)
	}
	if i := e.item(t, "bpf.load"); i.Verdict != doctor.OK {
		t.Errorf("%+v", i)
	}
	e, _ = examine(t, pair.A.Do, "--interface", "veth0", "--force")
	if e.Path != doctor.NativeCopy || !e.Proven {
		t.Errorf("forced: %s, %s", e.Path, e.Reason)
	}
}

// TestDoctorCures breaks a pair in two ways, and finds what undoes it.
func TestDoctorCures(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	change := func(f func(netlink.Link) error) {
		t.Helper()
		for _, end := range []*lab.End{pair.A, pair.B} {
			err := end.Do(func() error {
				device, err := netlink.LinkByName(end.Interface)
				if err != nil {
					return err
				}
				return f(device)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	change(func(l netlink.Link) error { return netlink.LinkSetMTU(l, 4000) })
	e, r := examine(t, pair.A.Do, "--interface", "veth0")
	if r.code != exitCheck || e.Path != doctor.Socket || e.item(t, "nic.native").Verdict != doctor.Fail || e.item(t, "nic.mtu").Verdict != doctor.Warn {
		t.Errorf("MTU 4000: exit code %d, %+v", r.code, e.item(t, "nic.native"))
	}
	if cure := e.item(t, "nic.native").Cure; cure != "ip link set dev veth0 mtu 1500" {
		t.Errorf("cure %q", cure)
	}
	change(func(l netlink.Link) error { return netlink.LinkSetMTU(l, 1500) })
	change(netlink.LinkSetDown)
	e, r = examine(t, pair.A.Do, "--interface", "veth0")
	if i := e.item(t, "nic.link"); r.code != exitCheck || i.Verdict != doctor.Fail || i.Cure != "ip link set dev veth0 up" {
		t.Errorf("down: exit code %d, %+v", r.code, i)
	}
	change(netlink.LinkSetUp)
	if e, _ = examine(t, pair.A.Do, "--interface", "veth0"); e.Path != doctor.NativeCopy {
		t.Errorf("cured: %s, %s", e.Path, e.Reason)
	}
}

// TestDoctorGeneric tries an interface without native XDP.
func TestDoctorGeneric(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	const name = "plain0"
	err := pair.A.Do(func() (err error) {
		attrs := netlink.LinkAttrs{Name: name}
		// Not every kernel has all of them; none has native XDP.
		for _, device := range []netlink.Link{&netlink.Dummy{LinkAttrs: attrs}, &netlink.Ifb{LinkAttrs: attrs}, &netlink.Bridge{LinkAttrs: attrs}} {
			if err = netlink.LinkAdd(device); err == nil {
				return netlink.LinkSetUp(device)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	e, r := examine(t, pair.A.Do, "--interface", name)
	if r.code != exitOK || e.Path != doctor.SKB || !e.Proven || e.item(t, "nic.native").Verdict != doctor.Warn || e.item(t, "nic.generic").Verdict != doctor.OK {
		t.Errorf("exit code %d, %s, %s, %+v", r.code, e.Path, e.Reason, e.item(t, "nic.native"))
	}
	runAt(t, pair.A.Do, "xdp", "status", name).check(t, exitOK, "no program")
}

// TestDoctorAsNobody says without any right what there is, and that kernel UDP is left.
func TestDoctorAsNobody(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	r := asNobody(t, pair.A, "doctor", "--interface", "veth0", "-o", "json")
	r.check(t, exitCheck)
	e := decodeReport(t, r)
	if e.Path != doctor.Socket || !e.Proven {
		t.Errorf("%s, %s", e.Path, e.Reason)
	}
	for id, want := range map[string]doctor.Verdict{
		"privileges.net_admin": doctor.Fail, "privileges.net_raw": doctor.Fail, "privileges.bpf": doctor.Fail, "nic.driver": doctor.OK,
		"nic.native": doctor.Unknown, "bpf.load": doctor.Unknown,
	} {
		if i := e.item(t, id); i.Verdict != want {
			t.Errorf("%+v, want %s", i, want)
		}
	}
	leave(t, pair.A, labtest.Stranger(t, "a_firewall"))
	e = decodeReport(t, asNobody(t, pair.A, "doctor", "--interface", "veth0", "-o", "json"))
	if i := e.item(t, "nic.program"); i.Verdict != doctor.Unknown { // it may be ours
		t.Errorf("%+v", i)
	}
	asNobody(t, pair.A, "doctor").check(t, exitCheck, "verdict: socket, proven", "setcap ")
	asNobody(t, pair.A, "nic", "status", "veth0").check(t, exitOK, "driver            veth", "driver has no     ")
}

// TestNeeds compares what doctor believes of a frame with what a UMEM says.
func TestNeeds(t *testing.T) {
	umem, err := xsk.NewUMEM(xsk.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer umem.Close()
	cfg := xsk.Config{}.WithDefaults()
	n := needs()
	if n.PacketSizeMax != umem.PacketSizeMax() || n.MemoryBytes(1) != int64(cfg.FrameCount*cfg.FrameSizeBytes) || n.MemoryBytes(64) <= n.MemoryBytes(1) {
		t.Errorf("%+v, and a UMEM holds packets of %d bytes", n, umem.PacketSizeMax())
	}
}

// TestProgramCure names the way that takes a program away: of a link, its holder.
func TestProgramCure(t *testing.T) {
	for link, want := range map[uint32]string{0: "ip link set dev eth1 xdp off", 7: "stillwater xdp status eth1"} {
		p := programOf(&bpf.Status{Interface: "eth1", Attached: true, ProgramID: 5, Name: "x", Mode: bpf.ModeNative, LinkID: link})
		if p.Ours || p.Mode != "native" || !strings.HasPrefix(p.Cure, want) {
			t.Errorf("link %d: %+v", link, p)
		}
	}
}

// TestIsDefault knows the ways to write a default route, and the interfaces that it leads to.
func TestIsDefault(t *testing.T) {
	to := func(text string) *netlink.Route {
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		return &netlink.Route{Dst: network}
	}
	for route, want := range map[*netlink.Route]bool{{}: true, to("0.0.0.0/0"): true, to("::/0"): true, to("10.0.0.0/8"): false} {
		if isDefault(route) != want {
			t.Errorf("%v: %v", route, !want)
		}
	}
	several := &netlink.Route{MultiPath: []*netlink.NexthopInfo{{LinkIndex: 3}, {LinkIndex: 4}}}
	if !leadsTo(several, 4) || leadsTo(several, 5) || !leadsTo(&netlink.Route{LinkIndex: 5}, 5) {
		t.Error("a route leads elsewhere")
	}
}
