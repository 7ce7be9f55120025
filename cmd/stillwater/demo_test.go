//go:build linux && !portable

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
)

// demoKeys are the keys that every line of the demo's JSON has.
var demoKeys = []string{
	"arm", "port", "load", "offered_per_s", "goodput_per_s", "capacity_per_s", "slo_ns", "latency_ns_p50", "latency_ns_p99",
	"latency_ns_p999", "rejected_per_s", "reject_latency_ns_p99", "expired_per_s",
}

// demoCommand is a short demo in a process of its own: it starts this test binary as its children.
func demoCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"demo", "--window", "50ms", "--steps", "1", "--sessions", "50"}, args...)...)
	cmd.Env = append(os.Environ(), asProgramVariable+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// stderrOf is what a command said before it failed.
func stderrOf(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(exit.Stderr)
	}
	return ""
}

// childrenOf lists the children of all threads of a process.
func childrenOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended since
		}
		for _, word := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
	}
	return children
}

func TestDemoPrintsOneObjectAStep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.html")
	out, err := demoCommand(t, "--ipv6", "-o", "jsonl", "--html", file).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderrOf(err))
	}
	port := "xdp"
	if os.Geteuid() != 0 {
		port = "udp"
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 20 {
		t.Fatalf("%d lines, want 2 arms of 10 loads", len(lines))
	}
	for _, line := range lines {
		var step map[string]any
		if err := json.Unmarshal([]byte(line), &step); err != nil {
			t.Fatal(err)
		}
		for _, key := range demoKeys {
			if _, ok := step[key]; !ok {
				t.Errorf("no %s in %s", key, line)
			}
		}
		if step["port"] != port || step["ip_version"] != 6.0 {
			t.Errorf("port %v, want %s; IP version %v, want 6", step["port"], port, step["ip_version"])
		}
	}
	page, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(page), "<svg") {
		t.Errorf("the page: %v, %d bytes", err, len(page))
	}
}

func TestDemoTableEndsWithASentence(t *testing.T) {
	out, err := demoCommand(t, "--loopback", "--html", "").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderrOf(err))
	}
	for _, want := range []string{"Kernel UDP on loopback, not AF_XDP: --loopback was given.", "capacity", "goodput", "times its capacity the server kept"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestDemoOnARung runs on the rung that is named, and fails where that is not to be had, without loopback instead.
func TestDemoOnARung(t *testing.T) {
	labtest.Require(t)
	for _, c := range []struct{ rung, format, want string }{
		{"generic", "text", "generic XDP, copy mode"},
		{"udp", "jsonl", `"port":"udp","ip_version":4`},
		{"zero-copy", "text", ""},
	} {
		out, err := demoCommand(t, "--html", "", "--mode", c.rung, "-o", c.format).Output()
		if refused := strings.Contains(stderrOf(err), "use copy mode"); refused != (c.want == "") || (err == nil) == refused {
			t.Errorf("%s: %v\n%s", c.rung, err, stderrOf(err))
		}
		if !strings.Contains(string(out), c.want) {
			t.Errorf("%s: no %q in\n%s", c.rung, c.want, out)
		}
	}
}

func TestDemoUsage(t *testing.T) {
	for _, args := range [][]string{{"--sessions", "0"}, {"--window", "1ms"}, {"--steps", "0"}, {"--service-time", "triangular:1us"}, {"--mode", "copy"}, {"--mode", "fast"}} {
		cliRun(t, append([]string{"demo", "--loopback"}, args...)...).check(t, exitUsage)
	}
}

// An interrupt in the middle, or the death of a child, leaves no process behind; the namespaces end with their last process.
func TestDemoLeavesNothingBehind(t *testing.T) {
	for _, how := range []string{"interrupt", "child dies"} {
		cmd := demoCommand(t, "--html", "")
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The first line says that both children run.
		if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		// Unless all of them are stopped, the kernel may leave one out (proc_pid_task_children(5)).
		var children []int
		for range 100 {
			if children = childrenOf(t, cmd.Process.Pid); len(children) == 2 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if len(children) != 2 {
			t.Fatalf("children %v", children)
		}
		victim, signal := cmd.Process.Pid, syscall.SIGINT
		if how == "child dies" {
			victim, signal = children[0], syscall.SIGKILL
		}
		if err := syscall.Kill(victim, signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Errorf("%s: no error", how)
		}
		for _, pid := range children {
			if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid))); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: child %d is still there", how, pid)
			}
		}
	}
}
