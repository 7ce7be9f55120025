//go:build linux && !portable

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
)

// leave attaches a program by netlink, as one that outlives its process.
func leave(t *testing.T, end *lab.End, program *ebpf.Program) {
	t.Helper()
	err := end.Do(func() error {
		device, err := netlink.LinkByName(end.Interface)
		if err != nil {
			return err
		}
		return netlink.LinkSetXdpFdWithFlags(device, program.FD(), int(link.XDPDriverMode))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestXDPOfServer looks at the program of a server at work, and fails to take it away.
func TestXDPOfServer(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	s := startServe(t, pair.A.Do, "--interface", pair.A.Interface, "--require-xdp")
	runAt(t, pair.B.Do, "call", s.Address, "echo", "x").check(t, exitOK)

	self := fmt.Sprintf("process %d", os.Getpid())
	r := runAt(t, pair.A.Do, "xdp", "status")
	r.check(t, exitOK, "lo     no program\n", "(stillwater_xdp) in native mode, ours", self, "redirected ")
	var all struct {
		Schema     string
		Interfaces []interfaceStatus
	}
	r = runAt(t, pair.A.Do, "xdp", "status", "veth0", "-o", "json")
	r.check(t, exitOK)
	r.decode(t, &all)
	if all.Schema != schemaStatus || len(all.Interfaces) != 1 {
		t.Fatalf("%+v", all)
	}
	got := all.Interfaces[0]
	if !got.Attached || !got.Ours || got.ProgramID == 0 || got.LinkID == 0 || got.Mode != "native" || got.Index != pair.A.Index ||
		len(got.Holders) != 1 || got.Holders[0].PID != os.Getpid() || got.Holders[0].Command == "" || got.Verdicts["redirected"] == 0 {
		t.Errorf("%+v", got)
	}
	if r := runAt(t, pair.A.Do, "xdp", "status", "-o", "jsonl"); strings.Count(r.stdout, "\n") != 2 {
		t.Errorf("not one line for each of two interfaces:\n%s", r.stdout)
	}
	runAt(t, pair.A.Do, "xdp", "detach", "veth0").check(t, exitCheck, self, "stop the holder")
	runAt(t, pair.B.Do, "call", s.Address, "echo", "still there").check(t, exitOK, "still there")
	s.end(t)
	runAt(t, pair.A.Do, "xdp", "status", "veth0").check(t, exitOK, "veth0  no program\n")
}

func TestXDPDetach(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	runAt(t, pair.A.Do, "xdp", "detach", "veth0").check(t, exitOK, "no program was attached")
	leave(t, pair.A, labtest.Stranger(t, "stillwater_xdp"))
	// It only has our name, so its counters are not to be read: that is a warning and no failure.
	runAt(t, pair.A.Do, "xdp", "status", "veth0").check(t, exitOK, "ours", "not all of the program's maps can be read")
	runAt(t, pair.A.Do, "serve", "--interface", "veth0", "--require-xdp").check(t, exitInternal, "stillwater xdp detach veth0")
	r := runAt(t, pair.A.Do, "xdp", "detach", "veth0", "-o", "json")
	r.check(t, exitOK)
	var d struct {
		Schema string
		detachData
	}
	r.decode(t, &d)
	if d.Schema != schemaDetach || !d.Detached || d.Interface != "veth0" {
		t.Errorf("%+v", d)
	}
	leave(t, pair.A, labtest.Stranger(t, "a_firewall"))
	runAt(t, pair.A.Do, "xdp", "status").check(t, exitOK, "(a_firewall) in native mode, not ours")
	runAt(t, pair.A.Do, "xdp", "detach", "veth0").check(t, exitCheck, "a_firewall")
	runAt(t, pair.A.Do, "xdp", "status").check(t, exitOK, "a_firewall")
}

// asNobody runs the program in a process without rights, inside a namespace.
func asNobody(t *testing.T, end *lab.End, args ...string) result {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), asNobodyVariable+"=1", "STILLWATER_TIMEOUT=20s")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := end.Do(cmd.Start); err != nil { // a child is born in the namespace of the thread that forks
		t.Fatal(err)
	}
	_ = cmd.Wait() // the code says it all
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// TestWithoutRights does as nobody what needs root: each command says so with a code of its own, or does what it can.
func TestWithoutRights(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	asNobody(t, pair.A, "serve", "--interface", "veth0", "--require-xdp").check(t, exitPrivilege, "AF_XDP on veth0", "run it as root")
	leave(t, pair.A, labtest.Stranger(t, "stillwater_xdp"))
	asNobody(t, pair.A, "xdp", "status", "veth0").check(t, exitOK, "name unknown", "owner unknown")
	asNobody(t, pair.A, "xdp", "detach", "veth0").check(t, exitPrivilege, "CAP_SYS_ADMIN", "run it as root")
	server := startServe(t, pair.B.Do)
	address := pair.B.Address.Addr().String()
	asNobody(t, pair.A, "call", address, "echo", "hello").check(t, exitOK, "hello\n")
	asNobody(t, pair.A, "call", address, "echo", "hello", "--interface", "veth0", "--strict").check(t, exitWarning, "hello\n", "fell back")
	server.end(t)
}
