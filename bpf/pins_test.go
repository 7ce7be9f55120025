//go:build linux

package bpf_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
)

var service = netip.MustParseAddrPort("10.77.0.1:7700")

// pinned loads the program with a service, attaches it, pins it, and gives up all its descriptors. It returns the pins' folder.
func pinned(t *testing.T, pair *lab.Pair) string {
	t.Helper()
	dir := filepath.Join(lab.DescriptorPath(labtest.BPFFS(t).Fd()), "stillwater", "veth0")
	program, err := bpf.Load(bpf.Options{})
	labtest.Must(t, err)
	inside(t, pair, func() error {
		_, err := program.Attach(pair.A.Index, bpf.ModeNative)
		return err
	})
	if err := errors.Join(program.RegisterService(service.Addr(), service.Port()), program.Pin(dir, 0), program.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openPins(t *testing.T, dir string) *bpf.Pins {
	t.Helper()
	pins, err := bpf.OpenPins(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pins.Close() })
	return pins
}

func adopt(t *testing.T, dir string) *bpf.Program {
	t.Helper()
	program, err := bpf.Adopt(dir)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// socket is an AF_XDP socket that is bound to nothing.
func socket(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func names(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

// TestPin lets go of everything, finds the program still attached by its pin alone, and takes it down by that.
func TestPin(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	dir := pinned(t, pair)
	if got := names(t, dir); !slices.Equal(got, []string{"link", "program", "queue_owners", "services", "verdicts", "xsks"}) {
		t.Errorf("pins %v", got)
	}
	var status *bpf.Status
	inside(t, pair, func() (err error) { status, err = bpf.Inspect("veth0", dir); return err })
	if !status.Ours || status.Pin != filepath.Join(dir, "link") || len(status.Holders) != 0 {
		t.Errorf("status %+v", status)
	}
	pins := openPins(t, dir)
	if pins.Link != bpf.AttachmentLive || pins.LinkID != status.LinkID || pins.ProgramID != status.ProgramID || pins.Ifindex != pair.A.Index {
		t.Errorf("pins %+v, status %+v", pins, status)
	}
	if got, err := bpf.ServicesOf(status.ProgramID); err != nil || !slices.Equal(got, []netip.AddrPort{service}) {
		t.Errorf("services %v, %v", got, err)
	}
	if err := load(t).Pin(dir, 0); !errors.Is(err, bpf.ErrPinned) {
		t.Errorf("pinned over pins: %v", err)
	}
	inside(t, pair, func() error {
		if _, err := pins.Attach(pair.A.Index, bpf.ModeNative); !errors.Is(err, bpf.ErrAttached) {
			t.Errorf("attached twice: %v", err)
		}
		return nil
	})
	inside(t, pair, pins.Remove)
	if inspect(t, pair).Attached {
		t.Error("still attached")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
	if _, err := bpf.OpenPins(dir); !errors.Is(err, bpf.ErrNoPins) {
		t.Errorf("opened what is gone: %v", err)
	}
}

// TestPinAttachAgain detaches and keeps the pins, attaches again, deletes the interface, and attaches to the one that comes after it.
func TestPinAttachAgain(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	dir := pinned(t, pair)
	pins := openPins(t, dir)
	inside(t, pair, pins.Detach)
	if inspect(t, pair).Attached || pins.Link != bpf.AttachmentNone {
		t.Errorf("still attached: %+v", pins)
	}
	if err := pins.Detach(); !errors.Is(err, bpf.ErrNotAttached) {
		t.Errorf("second detach: %v", err)
	}
	inside(t, pair, func() error { _, err := pins.Attach(pair.A.Index, bpf.ModeNative); return err })
	if err := pins.Close(); err != nil {
		t.Fatal(err)
	}
	if status := inspect(t, pair); status.ProgramID != pins.ProgramID || status.LinkID != pins.LinkID {
		t.Errorf("status %+v, pins %+v", status, pins)
	}
	other := labtest.NewPair(t, lab.PairConfig{})
	deleteInterface(t, pair)
	pins = openPins(t, dir)
	if pins.Link != bpf.AttachmentDefunct {
		t.Errorf("without the interface: %v", pins.Link)
	}
	inside(t, other, func() error { _, err := pins.Attach(other.A.Index, bpf.ModeNative); return err })
	if status := inspect(t, other); status.ProgramID != pins.ProgramID || pins.Link != bpf.AttachmentLive {
		t.Errorf("status %+v, pins %+v", status, pins)
	}
	if err := pins.Remove(); err != nil {
		t.Error(err)
	}
}

func deleteInterface(t *testing.T, pair *lab.Pair) {
	t.Helper()
	inside(t, pair, func() error {
		device, err := netlink.LinkByName("veth0")
		if err != nil {
			return err
		}
		return netlink.LinkDel(device)
	})
}

// TestAdopt shares one program between two users of it: each puts in its own and takes out its own, and neither gets at the other's.
func TestAdopt(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	dir := pinned(t, pair)
	a, b := adopt(t, dir), adopt(t, dir)
	for _, p := range []*bpf.Program{a, b} {
		inside(t, pair, func() error {
			if mode, err := p.Attach(pair.A.Index, bpf.ModeAuto); mode != bpf.ModeNative || err != nil {
				t.Errorf("attached in %v, %v", mode, err)
			}
			return nil
		})
		if on, err := p.Attached(); !on || err != nil {
			t.Errorf("attached: %v, %v", on, err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(a.SetSocket(0, socket(t)))
	must(b.SetSocket(1, socket(t)))
	err := b.SetSocket(0, socket(t))
	if taken, ok := errors.AsType[*bpf.QueueError](err); !ok || taken.Owner.PID != os.Getpid() || !taken.Owner.Alive() ||
		!strings.Contains(err.Error(), fmt.Sprintf("process %d (", os.Getpid())) {
		t.Errorf("a queue that is taken: %v", err)
	}
	must(b.ClearSocket(0)) // not its own: nothing happens
	must(a.RegisterService(service.Addr(), service.Port()))
	must(a.RegisterService(service.Addr(), 1))
	must(b.RegisterService(service.Addr(), 2))
	must(b.UnregisterService(service.Addr(), 1)) // nor this
	checkMaps(t, b, []uint32{0, 1}, 1, 2, 7700)
	must(a.Close())
	checkMaps(t, b, []uint32{1}, 2, 7700) // the loader's service stays
	must(b.SetSocket(0, socket(t)))
	if err := b.Detach(); err != nil {
		t.Error(err)
	}
	must(b.Close())
	pins := openPins(t, dir)
	checkMaps(t, pins.Program, nil, 7700)
	if pins.Link != bpf.AttachmentLive {
		t.Errorf("adopters detached it: %v", pins.Link)
	}
}

func checkMaps(t *testing.T, p *bpf.Program, queues []uint32, ports ...uint16) {
	t.Helper()
	owners, err := p.Owners()
	if err != nil {
		t.Fatal(err)
	}
	var gotQueues []uint32
	for _, o := range owners {
		gotQueues = append(gotQueues, o.Queue)
	}
	services, err := p.Services()
	if err != nil {
		t.Fatal(err)
	}
	var gotPorts []uint16
	for _, s := range services {
		gotPorts = append(gotPorts, s.Port())
	}
	if !slices.Equal(gotQueues, queues) || !slices.Equal(gotPorts, ports) {
		t.Errorf("queues %v and ports %v, want %v and %v", gotQueues, gotPorts, queues, ports)
	}
}

// TestAdoptElsewhere adopts where nothing is attached, where a stranger is, and after the interface has gone.
func TestAdoptElsewhere(t *testing.T) {
	pair, other := labtest.NewPair(t, lab.PairConfig{}), labtest.NewPair(t, lab.PairConfig{})
	dir := pinned(t, pair)
	p := adopt(t, dir)
	defer p.Close()
	attach := func(at *lab.Pair) (err error) {
		inside(t, at, func() error { _, err = p.Attach(at.A.Index, bpf.ModeAuto); return nil })
		return err
	}
	if err := attach(other); !errors.Is(err, bpf.ErrNotAttached) || !strings.Contains(err.Error(), "stillwater xdp attach veth0 --pin-path "+dir) {
		t.Errorf("nothing there: %v", err)
	}
	inside(t, other, func() error {
		device, err := netlink.LinkByName("veth0")
		if err != nil {
			return err
		}
		return netlink.LinkSetXdpFdWithFlags(device, labtest.Stranger(t, "a_firewall").FD(), int(link.XDPDriverMode))
	})
	if held, ok := errors.AsType[*bpf.HeldError](attach(other)); !ok || held.Name != "a_firewall" {
		t.Errorf("a stranger there: %v", held)
	}
	if on, err := p.Attached(); on || err != nil {
		t.Errorf("attached: %v, %v", on, err)
	}
	if err := attach(pair); err != nil {
		t.Fatal(err)
	}
	deleteInterface(t, pair)
	if on, err := p.Attached(); on || err != nil {
		t.Errorf("without the interface: %v, %v", on, err)
	}
}

// TestClean finds pins in every state, and removes those that lead nowhere.
func TestClean(t *testing.T) {
	pair, gone := labtest.NewPair(t, lab.PairConfig{}), labtest.NewPair(t, lab.PairConfig{})
	live := pinned(t, pair)
	root := filepath.Dir(live)
	pin := func(name string) string {
		t.Helper()
		dir := filepath.Join(root, name)
		program := load(t)
		if name == "gone" {
			inside(t, gone, func() error { _, err := program.Attach(gone.A.Index, bpf.ModeNative); return err })
		}
		if err := program.Pin(dir, 0); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	pin("gone")
	deleteInterface(t, gone)
	pin("detached")
	if err := errors.Join(os.Remove(filepath.Join(pin("incomplete"), "xsks")), os.Rename(pin("x"), filepath.Join(root, "loading-999999999-x")),
		os.Rename(pin("y"), filepath.Join(root, fmt.Sprintf("loading-%d-y", os.Getpid()))),
		os.Mkdir(filepath.Join(pin("foreign"), "folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"veth0": false, "gone": true, "detached": false, "incomplete": true, "loading-999999999-x": true,
		fmt.Sprintf("loading-%d-y", os.Getpid()): false, "foreign": false,
	}
	for _, dryRun := range []bool{true, false} {
		left, err := bpf.Clean(root, dryRun)
		if err != nil || len(left) != len(want) {
			t.Fatalf("%+v, %v", left, err)
		}
		for _, l := range left {
			_, err := os.Stat(l.Dir)
			if name := filepath.Base(l.Dir); l.Removed != want[name] || l.Reason == "" || (err == nil) != (dryRun || !l.Removed) {
				t.Errorf("dry run %v: %+v, %v", dryRun, l, err)
			}
		}
	}
	if pins := openPins(t, live); pins.Link != bpf.AttachmentLive {
		t.Errorf("the live one is %v", pins.Link)
	}
	if _, err := bpf.OpenPins(filepath.Join(root, "foreign")); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("opened a folder with foreign things: %v", err)
	}
	if left, err := bpf.Clean(filepath.Join(root, "none"), false); len(left) != 0 || err != nil {
		t.Errorf("nothing to clean: %v, %v", left, err)
	}
}

// TestPinPath asks for pins where there can be none.
func TestPinPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pins")
	for _, err := range []error{bpf.CheckPinPath(dir), load(t).Pin(dir, 0)} {
		if !errors.Is(err, bpf.ErrNotBPFFS) || !strings.Contains(err.Error(), "mount -t bpf bpf") {
			t.Errorf("not on a BPF file system: %v", err)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("made a folder all the same")
	}
	dir = filepath.Join(lab.DescriptorPath(labtest.BPFFS(t).Fd()), filepath.Base(bpf.PinPath("eth0.5")))
	if err := bpf.CheckPinPath(dir); err != nil {
		t.Errorf("for a VLAN: %v", err)
	}
	if err := bpf.CheckPinPath(filepath.Join(dir, "eth0.5")); err == nil || !strings.Contains(err.Error(), "dot") {
		t.Errorf("with a dot: %v", err)
	}
}
