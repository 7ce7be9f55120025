//go:build linux && !portable

package main

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServiceManager plays systemd: it is told when calls are answered, sees signs of life while the process runs and none while it is
// stopped, and is told of the end.
func TestServiceManager(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	read := func(within time.Duration) string {
		t.Helper()
		var state [256]byte
		if err := socket.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		n, err := socket.Read(state[:])
		if err != nil {
			return ""
		}
		return string(state[:n])
	}
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "20000")
	const patience = 30 * time.Second
	p := startProgram(t, asProgramVariable, "serve", "--address", "127.0.0.1", "--port", "0")
	if got := read(patience); !strings.HasPrefix(got, "READY=1\nSTATUS=kernel UDP") {
		t.Errorf("first it says %q", got)
	}
	for range 3 {
		if got := read(patience); got != "WATCHDOG=1" {
			t.Errorf("while it runs it says %q", got)
		}
	}
	p.stop(t)
	for read(200*time.Millisecond) != "" { // what it said before it stopped
	}
	p.signal(t, syscall.SIGCONT)
	if got := read(patience); got != "WATCHDOG=1" {
		t.Errorf("when it goes on it says %q", got)
	}
	p.signal(t, syscall.SIGTERM)
	got := read(patience)
	for got == "WATCHDOG=1" {
		got = read(patience)
	}
	if got != "STOPPING=1" {
		t.Errorf("at last it says %q", got)
	}
	if code := p.exitOf(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// TestNoServiceManager: one that is named and not there is an error.
func TestNoServiceManager(t *testing.T) {
	if m, err := findManager(func(string) string { return "" }); m != nil || err != nil {
		t.Errorf("none: %v, %v", m, err)
	}
	nobody := func(name string) string { return map[string]string{"NOTIFY_SOCKET": "/nosuch/socket"}[name] }
	if _, err := findManager(nobody); err == nil || !strings.Contains(err.Error(), "NOTIFY_SOCKET") {
		t.Errorf("one that is not there: %v", err)
	}
	abstract := func(name string) string { return map[string]string{"NOTIFY_SOCKET": "@nosuch"}[name] }
	if _, err := findManager(abstract); err == nil {
		t.Error("an abstract one that is not there was reached")
	}
}
