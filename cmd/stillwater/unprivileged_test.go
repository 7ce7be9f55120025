//go:build linux && !portable

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
)

// pinPlace is a BPF file system, as this process and its children find it.
type pinPlace struct{ root *os.File }

func (p pinPlace) here(name string) string {
	return filepath.Join(lab.DescriptorPath(p.root.Fd()), name)
}

func (p pinPlace) inChild(name string) string {
	return filepath.Join(lab.DescriptorPath(lab.FirstFile), name)
}

// startAs runs the program at an end, as a user and a group with some capabilities.
func startAs(t *testing.T, end *lab.End, user, group uint32, capabilities []uintptr, pins pinPlace, args ...string) *process {
	t.Helper()
	p := newProgram(t, asProgramVariable, args...)
	p.ExtraFiles = []*os.File{pins.root}
	p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: group}, AmbientCaps: capabilities}
	p.start(t, end.Do) // a child is born in the namespace of the thread that forks
	return p
}

// startUnprivileged runs serve at an end as a user in nobody's group, with CAP_NET_RAW and no other capability, until it is ready. The kernel
// holds the UMEMs of a user, over all its processes and for a moment after their end, to the limit of locked memory, 8 MiB as a rule, which one
// queue takes: so each server is of a user of its own.
func startUnprivileged(t *testing.T, end *lab.End, user uint32, pins pinPlace, args ...string) (*process, serveReady) {
	t.Helper()
	args = append([]string{"serve", "-o", "jsonl", "--slo", "5s", "--interface", end.Interface, "--require-xdp", "--stats-interval", "5ms",
		"--pin-path", pins.inChild("veth0")}, args...)
	p := startAs(t, end, user, nobody, []uintptr{unix.CAP_NET_RAW}, pins, args...)
	if !p.lines.Scan() {
		for p.stderr.Scan() {
			t.Log(p.stderr.Text())
		}
		t.Fatal("it was never ready")
	}
	var ready serveReady
	if err := json.Unmarshal(p.lines.Bytes(), &ready); err != nil {
		t.Fatal(err)
	}
	return p, ready
}

// freshUser is a user that no process of the tests was of before.
func freshUser() uint32 { return usersFrom + users.Add(1) }

// usersFrom is where the users for tests begin, among numbers that hosts leave free.
const usersFrom = 64000

var users atomic.Uint32

// capabilities are the sets of each thread of a process, as the kernel shows them.
func capabilities(t *testing.T, pid int) map[string]string {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("threads %v, %v", tasks, err)
	}
	sets := map[string]string{}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread ended
		}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimSpace(value)
			if !strings.HasPrefix(name, "Cap") && name != "NoNewPrivs" && name != "Uid" {
				continue
			}
			if before, ok := sets[name]; ok && before != value {
				t.Errorf("%s is %s in one thread and %s in another", name, before, value)
			}
			sets[name] = value
		}
	}
	return sets
}

func checkCapabilities(t *testing.T, pid int, want map[string]string) {
	t.Helper()
	got := capabilities(t, pid)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %s, want %s", name, got[name], value)
		}
	}
}

const noCapability, rawCapability = "0000000000000000", "0000000000002000"

// drain ends a server in order. What it prints meanwhile has to be read, or it waits for that.
func (p *process) drain(t *testing.T) {
	t.Helper()
	p.signal(t, os.Interrupt)
	next(t, p.lines, `"event":"stopped"`)
	if code := p.exitOf(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// received reads statistics until so many packets have come, and checks that all came through AF_XDP.
func received(t *testing.T, p *process, count uint64) {
	t.Helper()
	for {
		var stats serveStats
		if err := json.Unmarshal([]byte(next(t, p.lines, `"event":"stats"`)), &stats); err != nil {
			t.Fatal(err)
		}
		if stats.Port.PassedOn != 0 {
			t.Fatalf("of %d packets %d came through the kernel", stats.Port.Received, stats.Port.PassedOn)
		}
		if stats.Port.Received >= count {
			return
		}
	}
}

// TestServeAsNobody serves over AF_XDP as a user with CAP_NET_RAW alone, on pinned maps, and gives that up as well once it is ready.
func TestServeAsNobody(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	pins := pinPlace{labtest.BPFFS(t)}
	runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", pins.here("veth0"), "--group", fmt.Sprint(nobody)).check(t, exitOK)

	user := freshUser()
	kept, ready := startUnprivileged(t, pair.A, user, pins)
	checkCapabilities(t, ready.PID, map[string]string{"CapEff": rawCapability, "CapPrm": rawCapability, "Uid": fmt.Sprintf("%[1]d\t%[1]d\t%[1]d\t%[1]d", user)})
	kept.drain(t)

	p, ready := startUnprivileged(t, pair.A, nobody, pins, "--drop-privileges")
	if ready.Port != "xdp" || !strings.HasPrefix(ready.Mode, "AF_XDP on veth0 queue 0, native XDP") {
		t.Errorf("ready %+v", ready)
	}
	checkCapabilities(t, ready.PID, map[string]string{
		"CapEff": noCapability, "CapPrm": noCapability, "CapInh": noCapability, "CapAmb": noCapability, "NoNewPrivs": "1",
	})
	runAt(t, pair.B.Do, "call", ready.Address, "echo", "hello", "--interface", "veth0", "--require-xdp", "--count", "100", "--trace").check(t, exitOK, "first call")
	runAt(t, pair.B.Do, "call", ready.Address, "echo", "from a socket").check(t, exitOK, "from a socket")
	received(t, p, 101)
	runAt(t, pair.A.Do, "xdp", "status", "veth0", "--pin-path", pins.here("veth0")).check(t, exitOK, "pinned in "+pins.here("veth0"),
		"services "+ready.Address, fmt.Sprintf("queue 0 of 1: socket of process %d (", ready.PID), "redirected ")
	p.drain(t)
	var all struct{ Interfaces []interfaceStatus }
	r := runAt(t, pair.A.Do, "xdp", "status", "veth0", "--pin-path", pins.here("veth0"), "-o", "json")
	r.check(t, exitOK)
	r.decode(t, &all)
	if s := all.Interfaces[0]; !s.Attached || len(s.Services) != 0 || len(s.Sockets) != 0 {
		t.Errorf("it left something in the maps: %+v", s)
	}
}

// TestServeOfNoGroup is refused the pins, and told why.
func TestServeOfNoGroup(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	pins := pinPlace{labtest.BPFFS(t)}
	runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", pins.here("veth0")).check(t, exitOK)
	p := startAs(t, pair.A, freshUser(), nobody, []uintptr{unix.CAP_NET_RAW}, pins,
		"serve", "--interface", "veth0", "--require-xdp", "--pin-path", pins.inChild("veth0"))
	next(t, p.stderr, "load with `--group` a group of this user")
	if code := p.exitOf(t); code != exitPrivilege {
		t.Errorf("exit code %d", code)
	}
}

// TestLoadBehindAShutDoor pins for a group where it cannot get to, as on a BPF file system that systemd mounts.
func TestLoadBehindAShutDoor(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	shut := pinPlace{labtest.BPFFS(t)}.here("shut")
	if err := os.Mkdir(shut, 0o700); err != nil {
		t.Fatal(err)
	}
	runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", filepath.Join(shut, "veth0"), "--group", fmt.Sprint(nobody), "--strict").
		check(t, exitWarning, "chmod o+x "+shut)
}

// TestLoadWithLeastPrivilege loads, pins and detaches with the three capabilities that it takes, and no root. CAP_PERFMON is for the verifier: the
// program subtracts pointers to know a packet's length.
func TestLoadWithLeastPrivilege(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	pins := pinPlace{labtest.BPFFS(t)}
	user, loader := freshUser(), []uintptr{unix.CAP_NET_ADMIN, unix.CAP_BPF, unix.CAP_PERFMON}
	p := startAs(t, pair.A, user, nobody, loader, pins, "xdp", "load", "veth0", "--pin-path", pins.inChild("veth0"), "--group", fmt.Sprint(nobody))
	next(t, p.lines, "attached in native mode")
	if code := p.exitOf(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	runAt(t, pair.A.Do, "xdp", "status", "veth0", "--pin-path", pins.here("veth0")).check(t, exitOK, "pinned in "+pins.here("veth0"))
	p = startAs(t, pair.A, user, nobody, loader, pins, "xdp", "detach", "veth0", "--pin-path", pins.inChild("veth0"))
	next(t, p.lines, "veth0: detached")
	if code := p.exitOf(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	runAt(t, pair.A.Do, "xdp", "status", "veth0").check(t, exitOK, "no program")
}

// TestDropPrivilegesOfRoot serves as root, with a program of its own, and gives up what root may do.
func TestDropPrivilegesOfRoot(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	p := newProgram(t, asProgramVariable, "serve", "--interface", "veth0", "--require-xdp", "--drop-privileges", "-o", "jsonl", "--slo", "5s")
	p.start(t, pair.A.Do)
	next(t, p.lines, `"event":"ready"`)
	checkCapabilities(t, p.Process.Pid, map[string]string{
		"CapEff": noCapability, "CapPrm": noCapability, "CapInh": noCapability, "CapBnd": noCapability, "CapAmb": noCapability, "NoNewPrivs": "1",
	})
	runAt(t, pair.B.Do, "call", pair.A.Address.Addr().String(), "echo", "hello").check(t, exitOK, "hello")
	p.drain(t)
	runAt(t, pair.A.Do, "xdp", "status", "veth0").check(t, exitOK, "no program")
}

// TestTwoServersOnOneNIC has two processes share one program, each with queues and a service of its own. A call is sent from the queue whose
// number it arrives on.
func TestTwoServersOnOneNIC(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 4, TxQueueCount: 4})
	labtest.Introduce(t, pair)
	pins := pinPlace{labtest.BPFFS(t)}
	runAt(t, pair.A.Do, "xdp", "load", "veth0", "--pin-path", pins.here("veth0"), "--group", fmt.Sprint(nobody)).check(t, exitOK)
	low, lowReady := startUnprivileged(t, pair.A, freshUser(), pins, "--queue", "0", "--queues", "1", "--port", "7700")
	high, highReady := startUnprivileged(t, pair.A, freshUser(), pins, "--queue", "2", "--queues", "1", "--port", "7701")
	call := func(ready serveReady, queue string) {
		t.Helper()
		runAt(t, pair.B.Do, "call", ready.Address, "echo", "over queue "+queue, "--interface", "veth0", "--queue", queue, "--queues", "1", "--require-xdp").
			check(t, exitOK, "over queue "+queue)
	}
	call(lowReady, "0")
	call(highReady, "2")
	for _, p := range []*process{low, high} {
		received(t, p, 1)
	}
	// On a queue of nobody's, and of the other's, a packet goes through the kernel.
	for _, queue := range []string{"0", "1", "2", "3"} {
		call(lowReady, queue)
		call(highReady, queue)
	}
	runAt(t, pair.A.Do, "xdp", "status", "veth0", "--pin-path", pins.here("veth0")).check(t, exitOK,
		"services "+lowReady.Address+", "+highReady.Address,
		fmt.Sprintf("queue 0 of 4: socket of process %d (", lowReady.PID), fmt.Sprintf("queue 2 of 4: socket of process %d (", highReady.PID))
	runAt(t, pair.A.Do, "serve", "--interface", "veth0", "--pin-path", pins.here("veth0"), "--queue", "2", "--queues", "1", "--port", "7702", "--require-xdp").
		check(t, exitInternal, fmt.Sprintf("queue 2 has a socket of process %d (", highReady.PID), "use another queue")

	// One dies without taking anything out; the other does not notice, and the queues are there for the next.
	low.signal(t, os.Kill)
	low.exitOf(t)
	call(highReady, "2")
	runAt(t, pair.A.Do, "xdp", "status", "veth0", "--pin-path", pins.here("veth0")).check(t, exitOK,
		fmt.Sprintf("queue 0 of 4: socket of process %d (", lowReady.PID), "which cannot be seen")
	again, againReady := startUnprivileged(t, pair.A, freshUser(), pins, "--queue", "0", "--queues", "1", "--port", "7700")
	call(againReady, "0")
	for _, p := range []*process{again, high} {
		p.drain(t)
	}
	runAt(t, pair.A.Do, "xdp", "detach", "veth0", "--pin-path", pins.here("veth0")).check(t, exitOK, "removed")
}
