//go:build linux

package lab_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// TestNothingIsLeftByClose starts lab after lab: each must come up at once, and none may leave a process, a namespace,
// a descriptor or, for a moment, a link in the host's namespace.
func TestNothingIsLeftByClose(t *testing.T) {
	labtest.Require(t)
	news := subscribe(t)
	descriptors := descriptorCount(t)
	for range 3 {
		made, err := lab.Start(testContext(t), childConfig("child", "child"))
		if err != nil {
			t.Fatal(err)
		}
		server, client := locate(t, made.Server), locate(t, made.Client)
		exchange(t, made)
		if err := made.Close(); err != nil {
			t.Fatal(err)
		}
		mustBeGone(t, server, client)
	}
	if now := descriptorCount(t); now != descriptors {
		t.Errorf("%d open descriptors before, %d after", descriptors, now)
	}
	if names := newLinks(t, news); len(names) > 0 {
		t.Errorf("links seen in the host's namespace: %v", names)
	}
}

// TestNewLinksSeesLinks proves that the test above could fail.
func TestNewLinksSeesLinks(t *testing.T) {
	namespace, err := lab.NewNamespace()
	labtest.Must(t, err)
	defer namespace.Close()
	if err := namespace.Do(func() error {
		news := subscribe(t)
		link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "left"}, PeerName: "right"}
		if err := errors.Join(netlink.LinkAdd(link), netlink.LinkDel(link)); err != nil {
			return err
		}
		if names := newLinks(t, news); len(names) == 0 {
			t.Error("a link that came and went was not seen")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsLeftByAKilledParent kills the process that holds the lab in the way that leaves it no chance to clean up.
func TestNothingIsLeftByAKilledParent(t *testing.T) {
	labtest.Require(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"=parent")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadBytes('\n')
	var both [2]whereabouts
	decodeErr := json.Unmarshal(line, &both)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // "signal: killed" is the plan
	if err := errors.Join(readErr, decodeErr); err != nil {
		t.Fatal(err)
	}
	mustBeGone(t, both[0], both[1])
}

// mustBeGone waits until the processes are dead and, unless they lived in the host's, their namespaces have no holder: no
// thread, no descriptor, no mount in any process.
func mustBeGone(t *testing.T, all ...whereabouts) {
	t.Helper()
	home := currentNamespace(t)
	for _, w := range all {
		deadline := time.Now().Add(bound) // a killed process takes its time to die; a leak stays for ever
		for syscall.Kill(w.PID, 0) == nil && !zombie(w.PID) {
			if time.Now().After(deadline) {
				t.Errorf("process %d is alive", w.PID)
				return
			}
			time.Sleep(time.Millisecond)
		}
		for w.Namespace != home {
			holder := holderOf(t, w.Namespace)
			if holder == "" {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("namespace %s is held by %s", w.Namespace, holder)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// zombie reports whether a process is dead and only waits to be reaped, which is the duty of whoever inherited it.
func zombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}

func holderOf(t *testing.T, namespace string) string {
	t.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/task/*/ns/net", "/proc/[0-9]*/fd/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if target, err := os.Readlink(path); err == nil && target == namespace {
				return path
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), " "+namespace+" ") {
		return "a mount"
	}
	return ""
}

// TestHolderOf proves that mustBeGone could fail.
func TestHolderOf(t *testing.T) {
	namespace, err := lab.NewNamespace()
	labtest.Must(t, err)
	var name string
	if err := namespace.Do(func() error {
		name = currentNamespace(t)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if holderOf(t, name) == "" {
		t.Error("the holder of a namespace that is held was not found")
	}
	if err := namespace.Close(); err != nil {
		t.Fatal(err)
	}
	if holder := holderOf(t, name); holder != "" {
		t.Errorf("a namespace given up is held by %s", holder)
	}
}

func descriptorCount(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// subscribe listens for links that appear or change in the namespace of the calling thread.
func subscribe(t *testing.T) *nl.NetlinkSocket {
	t.Helper()
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(socket.Close)
	return socket
}

// newLinks returns the names of the veth links that were announced since subscribe. The kernel queues the news in the same
// system call that makes the link, so nothing has to be waited for; and the socket is read directly, because a
// deadline in the past would end Receive before its first look.
func newLinks(t *testing.T, socket *nl.NetlinkSocket) (names []string) {
	t.Helper()
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(socket.GetFd(), buf, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		messages, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if m.Header.Type != unix.RTM_NEWLINK {
				continue
			}
			link, err := netlink.LinkDeserialize(nil, m.Data)
			if err != nil {
				t.Fatal(err)
			}
			if link.Type() == "veth" {
				names = append(names, link.Attrs().Name)
			}
		}
	}
}
