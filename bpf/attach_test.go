//go:build linux

package bpf_test

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
)

// helperVariable makes the test binary a holder of a link, in a process of its own; see TestMain.
const helperVariable = "STILLWATER_TEST_HOLD_INTERFACE"

// TestMain is also the other process of TestDetachRefusesAnotherProcess: it attaches the program, says so, and holds it until
// its standard input ends.
func TestMain(m *testing.M) {
	ifindex := os.Getenv(helperVariable)
	if ifindex == "" {
		os.Exit(m.Run())
	}
	var index int
	if _, err := fmt.Sscan(ifindex, &index); err != nil {
		panic(err)
	}
	program, err := bpf.Load(bpf.Options{})
	if err != nil {
		panic(err)
	}
	if _, err := program.Attach(index, bpf.ModeNative); err != nil {
		panic(err)
	}
	fmt.Println("attached")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	runtime.KeepAlive(program)
}

// inside runs fn in the namespace of pair's end A and fails the test on its error.
func inside(t *testing.T, pair *lab.Pair, fn func() error) {
	t.Helper()
	if err := pair.A.Do(fn); err != nil {
		t.Fatalf("%+v", err)
	}
}

func load(t *testing.T) *bpf.Program {
	t.Helper()
	program, err := bpf.Load(bpf.Options{})
	labtest.Must(t, err)
	t.Cleanup(func() {
		if err := program.Close(); err != nil {
			t.Error(err)
		}
	})
	return program
}

func inspect(t *testing.T, pair *lab.Pair) *bpf.Status {
	t.Helper()
	var status *bpf.Status
	inside(t, pair, func() (err error) {
		status, err = bpf.Inspect(pair.A.Interface)
		return err
	})
	return status
}

func TestAttachModes(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	for mode, want := range map[bpf.Mode]bpf.Mode{
		bpf.ModeAuto: bpf.ModeNative, bpf.ModeNative: bpf.ModeNative, bpf.ModeGeneric: bpf.ModeGeneric,
	} {
		program := load(t)
		inside(t, pair, func() error {
			got, err := program.Attach(pair.A.Index, mode)
			if got != want {
				t.Errorf("asked for %v, attached in %v, want %v", mode, got, want)
			}
			return err
		})
		runtime.GC() // a link that nobody refers to would be detached here
		runtime.GC()
		status := inspect(t, pair)
		if !status.Attached || !status.Ours || status.Mode != want || status.LinkID == 0 {
			t.Errorf("status %+v", status)
		}
		if on, err := program.Attached(); !on || err != nil {
			t.Errorf("attached: %v, %v", on, err)
		}
		if err := program.Detach(); err != nil {
			t.Error(err)
		}
		if status := inspect(t, pair); status.Attached {
			t.Errorf("after detach: %+v", status)
		}
		if err := program.Detach(); !errors.Is(err, bpf.ErrNotAttached) {
			t.Errorf("second detach: %v", err)
		}
	}
}

// TestLoopbackIsGeneric attaches where no driver has native XDP: auto falls back, native says so.
func TestLoopbackIsGeneric(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	inside(t, pair, func() error {
		loopback, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		program := load(t)
		if _, err := program.Attach(loopback.Attrs().Index, bpf.ModeNative); err == nil ||
			!strings.Contains(err.Error(), "generic mode") {
			t.Errorf("native on lo: %v", err)
		}
		mode, err := program.Attach(loopback.Attrs().Index, bpf.ModeAuto)
		if mode != bpf.ModeGeneric {
			t.Errorf("auto on lo gave %v", mode)
		}
		return err
	})
}

// TestAttachNeverEvicts finds another program attached by link and by netlink, in either mode, and leaves it alone.
func TestAttachNeverEvicts(t *testing.T) {
	for _, test := range []struct {
		name   string
		attach func(t *testing.T, device netlink.Link, other *ebpf.Program) error
		want   []string
		mode   bpf.Mode
	}{
		{"link", func(t *testing.T, device netlink.Link, other *ebpf.Program) error {
			held, err := link.AttachXDP(link.XDPOptions{
				Program: other, Interface: device.Attrs().Index, Flags: link.XDPDriverMode,
			})
			if err == nil {
				t.Cleanup(func() { held.Close() })
			}
			return err
		}, []string{"native", fmt.Sprintf("process %d", os.Getpid()), "stop the holder"}, bpf.ModeNative},
		{"netlink", func(_ *testing.T, device netlink.Link, other *ebpf.Program) error {
			return netlink.LinkSetXdpFdWithFlags(device, other.FD(), int(link.XDPDriverMode))
		}, []string{"native", "ip link set dev veth0 xdp off"}, bpf.ModeNative},
		{"generic", func(_ *testing.T, device netlink.Link, other *ebpf.Program) error {
			return netlink.LinkSetXdpFdWithFlags(device, other.FD(), int(link.XDPGenericMode))
		}, []string{"generic"}, bpf.ModeGeneric},
	} {
		t.Run(test.name, func(t *testing.T) {
			pair := labtest.NewPair(t, lab.PairConfig{})
			other := labtest.Stranger(t, "a_firewall")
			inside(t, pair, func() error {
				device, err := netlink.LinkByName(pair.A.Interface)
				if err != nil {
					return err
				}
				return test.attach(t, device, other)
			})
			before := inspect(t, pair)
			program := load(t)
			var errs []error
			inside(t, pair, func() error {
				_, err := program.Attach(pair.A.Index, bpf.ModeAuto)
				errs = append(errs, err, bpf.Detach(pair.A.Interface))
				return nil
			})
			for _, err := range errs {
				checkHeld(t, err, before, append(test.want, "a_firewall"))
			}
			if after := inspect(t, pair); after.ProgramID != before.ProgramID || after.Mode != test.mode {
				t.Errorf("changed from %+v to %+v", before, after)
			}
		})
	}
}

func checkHeld(t *testing.T, err error, status *bpf.Status, words []string) {
	t.Helper()
	held, ok := errors.AsType[*bpf.HeldError](err)
	if !ok {
		t.Fatalf("error %v, want a HeldError", err)
	}
	if held.Interface != "veth0" || held.ProgramID != status.ProgramID || held.ProgramID == 0 || held.Name != status.Name {
		t.Errorf("held %+v, status %+v", held, status)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// TestDetachLeftover removes a program of ours that outlived its process, which netlink-attached ones do.
func TestDetachLeftover(t *testing.T) {
	for _, flags := range []link.XDPAttachFlags{link.XDPDriverMode, link.XDPGenericMode} {
		pair := labtest.NewPair(t, lab.PairConfig{})
		leftover := labtest.Stranger(t, "stillwater_xdp") // it is known by its name
		inside(t, pair, func() error {
			if err := bpf.Detach(pair.A.Interface); !errors.Is(err, bpf.ErrNotAttached) {
				t.Errorf("detach from a bare interface: %v", err)
			}
			device, err := netlink.LinkByName(pair.A.Interface)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetXdpFdWithFlags(device, leftover.FD(), int(flags)); err != nil {
				return err
			}
			_, err = load(t).Attach(pair.A.Index, bpf.ModeAuto)
			if err == nil || !strings.Contains(err.Error(), "stillwater xdp detach veth0") {
				t.Errorf("attach over a leftover: %v", err)
			}
			return bpf.Detach(pair.A.Interface)
		})
		if status := inspect(t, pair); status.Attached {
			t.Errorf("still there: %+v", status)
		}
	}
}

// TestDetachRefusesAnotherProcess has a second process hold the interface: it is named, and after its death the kernel
// has detached its program.
func TestDetachRefusesAnotherProcess(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	holder := exec.Command("/proc/self/exe")
	holder.Env = append(os.Environ(), fmt.Sprintf("%s=%d", helperVariable, pair.A.Index))
	holder.Stderr = os.Stderr
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	inside(t, pair, holder.Start) // a child is born in the namespace of the thread that forks
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if line != "attached\n" {
		t.Fatalf("the holder said %q, %v", line, err)
	}
	status := inspect(t, pair)
	if !status.Ours || len(status.Holders) != 1 || status.Holders[0].PID != holder.Process.Pid {
		t.Errorf("status %+v, want the holder %d", status, holder.Process.Pid)
	}
	inside(t, pair, func() error {
		checkHeld(t, bpf.Detach(pair.A.Interface), status, []string{fmt.Sprintf("process %d", holder.Process.Pid)})
		return nil
	})
	if !inspect(t, pair).Attached {
		t.Error("detached all the same")
	}
	if err := errors.Join(holder.Process.Kill(), stdin.Close()); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // killed is what it shall say
	if status := inspect(t, pair); status.Attached {
		t.Errorf("the program outlived its process: %+v", status)
	}
}

// TestAttachErrorsNameTheCure provokes the driver's refusals.
func TestAttachErrorsNameTheCure(t *testing.T) {
	for _, test := range []struct {
		name string
		cfg  lab.PairConfig
		want string
	}{
		{"too few rx queues", lab.PairConfig{RxQueueCount: 1, TxQueueCount: 4}, "as many rx queues"},
		{"MTU too large", lab.PairConfig{MTU: 9000}, "lower the MTU of 9000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			pair := labtest.NewPair(t, test.cfg)
			program := load(t)
			inside(t, pair, func() error {
				if _, err := program.Attach(pair.A.Index, bpf.ModeAuto); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q in it", err, test.want)
				}
				return nil
			})
		})
	}
	program := load(t)
	if _, err := program.Attach(1<<30, bpf.ModeAuto); err == nil {
		t.Error("attached to an interface that does not exist")
	}
}

func TestServiceAddresses(t *testing.T) {
	program := load(t)
	good := netip.MustParseAddr("::ffff:10.0.0.1") // IPv4-mapped is IPv4
	for range 2 {
		if err := program.RegisterService(good, 9); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := program.UnregisterService(good.Unmap(), 9); err != nil {
			t.Error(err)
		}
	}
	for _, addr := range []string{"2001:db8::1", "fe80::1", "fe80::1%lo"} {
		if err := program.RegisterService(netip.MustParseAddr(addr), 9); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		if err := program.UnregisterService(netip.MustParseAddr(addr).WithZone(""), 9); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"0.0.0.0", "224.0.0.1", "::", "ff02::1"} {
		if err := program.RegisterService(netip.MustParseAddr(addr), 9); !errors.Is(err, bpf.ErrAddress) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if err := program.RegisterService(good, 0); !errors.Is(err, bpf.ErrAddress) {
		t.Errorf("port 0: %v", err)
	}
	for port := range uint16(64) {
		if err := program.RegisterService(good, port+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := program.RegisterService(good, 1000); err == nil || !strings.Contains(err.Error(), "ServiceCount above 64") {
		t.Errorf("one service too many: %v", err)
	}
	if err := program.SetSocket(256, 0); err == nil || !strings.Contains(err.Error(), "QueueCount above 256") {
		t.Errorf("one queue too many: %v", err)
	}
}

// TestAttachedFollowsTheDevice deletes the interface under the program.
func TestAttachedFollowsTheDevice(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	program := load(t)
	if on, err := program.Attached(); on || err != nil {
		t.Errorf("never attached: %v, %v", on, err)
	}
	inside(t, pair, func() error {
		if _, err := program.Attach(pair.A.Index, bpf.ModeNative); err != nil {
			return err
		}
		if _, err := program.Attach(pair.A.Index, bpf.ModeNative); !errors.Is(err, bpf.ErrAttached) {
			t.Errorf("second attach: %v", err)
		}
		device, err := netlink.LinkByName(pair.A.Interface)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetDown(device); err != nil {
			return err
		}
		if on, err := program.Attached(); !on || err != nil {
			t.Errorf("down: %v, %v", on, err)
		}
		return netlink.LinkDel(device)
	})
	if on, err := program.Attached(); on || err != nil {
		t.Errorf("deleted: %v, %v", on, err)
	}
}
