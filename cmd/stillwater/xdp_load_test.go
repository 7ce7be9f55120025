//go:build linux && !portable

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
)

// TestXDPLoad loads, looks, fails to load or serve over it, and takes it down; twice, so that nothing is left of the first.
func TestXDPLoad(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	dir := filepath.Join(lab.DescriptorPath(labtest.BPFFS(t).Fd()), "here")
	for range 2 {
		r := runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", dir, "--service", "10.77.0.1:7700,10.77.0.1:7701", "-o", "json")
		r.check(t, exitOK)
		var loaded struct {
			Schema string
			attachedData
		}
		r.decode(t, &loaded)
		if loaded.Schema != schemaLoad || loaded.Event != "attached" || loaded.Mode != "native" || loaded.Index != pair.A.Index || loaded.PinPath != dir ||
			loaded.ProgramID == 0 || loaded.LinkID == 0 || strings.Join(loaded.Services, " ") != "10.77.0.1:7700 10.77.0.1:7701" {
			t.Errorf("%+v", loaded)
		}
		r = runAt(t, pair.A.Do, "xdp", "status", "veth0", "--pin-path", dir, "-o", "json")
		r.check(t, exitOK)
		var all struct{ Interfaces []interfaceStatus }
		r.decode(t, &all)
		got := all.Interfaces[0]
		if got.Pins == nil || *got.Pins != (pinsStatus{dir, loaded.ProgramID, "live"}) || got.ProgramID != loaded.ProgramID || !got.Ours ||
			len(got.Holders) != 0 || len(got.Services) != 2 || len(got.Sockets) != 0 || got.QueueCount != 1 || got.Verdicts == nil {
			t.Errorf("%+v", got)
		}
		runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", dir).check(t, exitCheck, "pins are there already", "stillwater xdp detach veth0")
		runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", dir+"2").check(t, exitCheck, fmt.Sprintf("runs XDP program %d (stillwater_xdp)", loaded.ProgramID))
		if _, err := os.Stat(dir + "2"); err == nil {
			t.Error("a load that failed left pins")
		}
		runAt(t, pair.A.Do, "serve", "--interface", "veth0", "--require-xdp").check(t, exitInternal, "runs XDP program")
		runAt(t, pair.A.Do, "xdp", "attach", "veth0", "--pin-path", dir).check(t, exitOK, "as it was")
		runAt(t, pair.A.Do, "xdp", "detach", "veth0", "--pin-path", dir).check(t, exitOK, "veth0: detached, the pins in "+dir+" are removed")
		runAt(t, pair.A.Do, "xdp", "status", "veth0", "--pin-path", dir).check(t, exitOK, "veth0  no program\n")
	}
	runAt(t, pair.A.Do, "xdp", "detach", "veth0", "--pin-path", dir).check(t, exitCheck, "no program is pinned there")
	runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", dir, "--mode", "generic").check(t, exitOK, "attached in generic mode")
}

// TestXDPLoadRefuses asks for what cannot be, and changes nothing.
func TestXDPLoadRefuses(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	root := lab.DescriptorPath(labtest.BPFFS(t).Fd())
	dir := filepath.Join(root, "here")
	for _, c := range []struct {
		code  int
		words string
		args  []string
	}{
		{exitCheck, "mount -t bpf bpf /sys/fs/bpf", []string{"veth0", "--pin-path", t.TempDir()}},
		{exitUsage, "no interface veth7", []string{"veth7"}},
		{exitUsage, "10.0.0.1:7700", []string{"veth0", "--service", "10.77.0.1"}},
		{exitUsage, "cannot be steered", []string{"veth0", "--service", "224.0.0.1:7700", "--pin-path", dir}},
		{exitUsage, "no such group", []string{"veth0", "--group", "no-such-group", "--pin-path", dir}},
		{exitUsage, "leave --group out", []string{"veth0", "--foreground", "--group", "0"}},
		{exitUsage, "one of native, generic", []string{"veth0", "--mode", "offload"}},
		{exitInternal, "use generic mode", []string{"lo", "--pin-path", dir}},
		{exitInternal, "none.o", []string{"veth0", "--object", "none.o", "--pin-path", dir}},
	} {
		runAt(t, pair.A.Do, append([]string{"xdp", "load"}, c.args...)...).check(t, c.code, c.words)
	}
	leave(t, pair.A, labtest.Stranger(t, "a_firewall"))
	for _, verb := range []string{"load", "detach"} {
		runAt(t, pair.A.Do, "xdp", verb, "veth0", "--pin-path", dir).check(t, exitCheck)
	}
	runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", dir).check(t, exitCheck, "a_firewall", "native mode", "stop its owner")
	runAt(t, pair.A.Do, "xdp", "status").check(t, exitOK, "a_firewall")
	if left, err := filepath.Glob(filepath.Join(root, "*", "*")); err != nil || len(left) != 0 {
		t.Errorf("%v in the file system, %v", left, err)
	}
}

// TestXDPLoadObject takes a program of the user's own: our object, and one that is none.
func TestXDPLoadObject(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	dir := filepath.Join(lab.DescriptorPath(labtest.BPFFS(t).Fd()), "here")
	runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", dir, "--object", "../../bpf/steer_bpfel.o").check(t, exitOK, "attached")
	runAt(t, pair.A.Do, "xdp", "detach", "veth0", "--pin-path", dir).check(t, exitOK)
	source := filepath.Join(t.TempDir(), "none.o")
	if err := os.WriteFile(source, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", dir, "--object", source).check(t, exitInternal, "read the object")
}

// TestXDPForeground holds a program until the first signal, and shares it meanwhile.
func TestXDPForeground(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	dir := filepath.Join(lab.DescriptorPath(labtest.BPFFS(t).Fd()), "here")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := -1
		err := pair.A.Do(func() error {
			code = run(env{
				args: []string{"xdp", "load", "veth0", "--foreground", "--service", "10.77.0.1:7700", "-o", "jsonl", "--pin-path", dir}, stdout: in, stderr: os.Stderr,
				ctx: ctx, hurry: context.Background(), getenv: func(string) string { return "" },
			})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		in.Close()
		ended <- code
	}()
	lines := bufio.NewScanner(out)
	next(t, lines, `"event":"attached"`)
	self := fmt.Sprintf("process %d", os.Getpid())
	runAt(t, pair.A.Do, "xdp", "status", "veth0").check(t, exitOK, self, "services 10.77.0.1:7700")
	runAt(t, pair.A.Do, "xdp", "detach", "veth0").check(t, exitCheck, self, "stop the holder")
	runAt(t, pair.A.Do, "xdp", "detach", "veth0", "--pin-path", dir).check(t, exitCheck, self, "stop the holder")
	s := startServe(t, pair.A.Do, "--interface", "veth0", "--require-xdp", "--pin-path", dir)
	runAt(t, pair.B.Do, "call", s.Address, "echo", "shared").check(t, exitOK, "shared")
	s.end(t)
	cancel()
	next(t, lines, `"event":"detached"`)
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
	runAt(t, pair.A.Do, "xdp", "status", "veth0").check(t, exitOK, "no program")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("pins are left: %v", err)
	}
}

// TestXDPAttach attaches again what was detached and kept, then what lost its interface, and cleans up after another that did.
func TestXDPAttach(t *testing.T) {
	pair, after := labtest.NewPair(t, lab.PairConfig{}), labtest.NewPair(t, lab.PairConfig{})
	root := lab.DescriptorPath(labtest.BPFFS(t).Fd())
	dir := filepath.Join(root, "veth0")
	runAt(t, pair.A.Do, "xdp", "attach", "veth0", "--pin-path", dir).check(t, exitCheck, "no program is pinned there", "stillwater xdp load")
	runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", dir, "--service", "10.77.0.1:7700").check(t, exitOK)
	runAt(t, after.A.Do, "xdp", "detach", "veth0", "--pin-path", dir).check(t, exitCheck, "attached to another interface")
	runAt(t, after.A.Do, "xdp", "attach", "veth0", "--pin-path", dir).check(t, exitCheck, "attached already")
	runAt(t, pair.A.Do, "xdp", "detach", "veth0", "--pin-path", dir, "--keep").check(t, exitOK, "are kept")
	runAt(t, pair.A.Do, "xdp", "status", "veth0", "--pin-path", dir).check(t, exitOK, "no program\n", "is pinned in "+dir+", link none")
	runAt(t, pair.A.Do, "xdp", "clean", "--pin-root", root).check(t, exitOK, dir+": kept: detached")
	runAt(t, pair.A.Do, "xdp", "attach", "veth0", "--pin-path", dir, "-o", "json").check(t, exitOK, schemaAttach, `"10.77.0.1:7700"`)

	deleteInterface(t, pair.A)
	runAt(t, after.A.Do, "xdp", "status", "veth0", "--pin-path", dir).check(t, exitOK, "link defunct")
	runAt(t, after.A.Do, "xdp", "clean", "--pin-root", root, "--dry-run").check(t, exitOK, dir+": would be removed: its link is defunct")
	runAt(t, after.A.Do, "xdp", "attach", "veth0", "--pin-path", dir).check(t, exitOK, "attached in native mode")
	runAt(t, after.A.Do, "xdp", "clean", "--pin-root", root).check(t, exitOK, dir+": kept: attached to interface")

	deleteInterface(t, after.A)
	r := runAt(t, here, "xdp", "clean", "--pin-root", root, "-o", "json")
	r.check(t, exitOK)
	var cleaned struct {
		Schema string
		cleanData
	}
	r.decode(t, &cleaned)
	if cleaned.Schema != schemaClean || len(cleaned.Folders) != 1 || !cleaned.Folders[0].Removed || cleaned.Folders[0].Path != dir {
		t.Errorf("%+v", cleaned)
	}
	runAt(t, here, "xdp", "clean", "--pin-root", root).check(t, exitOK, "no pins")
	runAt(t, here, "xdp", "clean", "--pin-root", t.TempDir()).check(t, exitCheck, "mount -t bpf")
}

func deleteInterface(t *testing.T, end *lab.End) {
	t.Helper()
	err := end.Do(func() error {
		device, err := netlink.LinkByName(end.Interface)
		if err != nil {
			return err
		}
		return netlink.LinkDel(device)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGroupsWay names the folder that a group cannot pass.
func TestGroupsWay(t *testing.T) {
	dir := t.TempDir()
	shut := filepath.Join(dir, "shut")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Mkdir(shut, 0o700)); err != nil {
		t.Fatal(err)
	}
	if got := blockedAt(filepath.Join(shut, "pins"), nobody); got != shut {
		t.Errorf("blocked at %q, want %q", got, shut)
	}
	if got := blockedAt(filepath.Join(shut, "pins"), 0); got != "" {
		t.Errorf("root is blocked at %q", got)
	}
	if err := os.Chmod(shut, 0o711); err != nil {
		t.Fatal(err)
	}
	if got := blockedAt(filepath.Join(shut, "pins"), nobody); got == shut {
		t.Errorf("blocked at %q all the same", got)
	}
}
