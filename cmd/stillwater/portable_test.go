//go:build !linux || portable

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// invoke runs the program in this process.
func invoke(ctx context.Context, stdout io.Writer, args ...string) (code int, stderr string) {
	var errors bytes.Buffer
	e := env{args: args, stdout: stdout, stderr: &errors, ctx: ctx, hurry: context.Background(), getenv: func(string) string { return "" }}
	return run(e), errors.String()
}

// TestWhatNeedsLinux: the commands are known, and say what they lack.
func TestWhatNeedsLinux(t *testing.T) {
	for _, args := range [][]string{
		{"demo", "--ipv6"}, {"xdp", "status"}, {"nic", "status", "en0"}, {"doctor", "--interface", "en0"},
		{"serve", "--port", "0", "--drop-privileges"},
	} {
		if code, stderr := invoke(t.Context(), io.Discard, args...); code != exitUsage || !strings.Contains(stderr, "needs a build for Linux") {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
	if code, stderr := invoke(t.Context(), io.Discard, "serve", "--interface", "lo", "--xsk", "asavie"); code != exitUsage {
		t.Errorf("asavie's sockets: exit code %d, %s", code, stderr)
	}
}

// TestServeAndCall has both over kernel UDP.
func TestServeAndCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lines, output := io.Pipe()
	served := make(chan string, 1)
	go func() {
		code, stderr := invoke(ctx, output, "serve", "--address", "127.0.0.1", "--port", "0", "-o", "jsonl")
		output.Close()
		if code != exitOK {
			served <- stderr
		}
		close(served)
	}()
	reader := bufio.NewReader(lines)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		t.Fatalf("no ready line: %v, %s", err, <-served)
	}
	go io.Copy(io.Discard, reader)
	var ready serveReady
	if err := json.Unmarshal(line, &ready); err != nil || ready.Port != "udp" || ready.Mode != "kernel UDP" {
		t.Fatalf("%s: %v", line, err)
	}
	for _, args := range [][]string{
		{"call", ready.Address, "echo", "hello"},
		{"bench", "closed", ready.Address, "--duration", "100ms", "--warmup", "10ms"},
		{"sim", "--calls", "500", "--warmup", "1ms"},
		{"version"},
	} {
		var stdout bytes.Buffer
		if code, stderr := invoke(t.Context(), &stdout, args...); code != exitOK || stdout.Len() == 0 {
			t.Errorf("%v: exit code %d, %s%s", args, code, &stdout, stderr)
		}
	}
	cancel()
	if stderr := <-served; stderr != "" {
		t.Error(stderr)
	}
}
