//go:build linux && !portable

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
)

// startAt starts the program in a process of its own at an end of a lab.
func startAt(t *testing.T, end *lab.End, args ...string) (p *process) {
	t.Helper()
	if err := end.Do(func() error { p = startProgram(t, asProgramVariable, args...); return nil }); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOtherSockets serves, calls and measures over asavie/xdp, which has each queue once in a process: so every program has one of its own. Its
// peers over our sockets notice nothing, and neither does a server that takes the place of one that was killed.
func TestOtherSockets(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	on := func(end *lab.End, whose string) []string {
		return []string{"--interface", end.Interface, "--xsk", whose}
	}
	serve := append([]string{"serve", "-o", "jsonl"}, on(pair.A, "asavie")...)
	const mode = "AF_XDP on veth0 queue 0, native XDP, copy mode, sockets of asavie/xdp (no zero-copy there)"
	for _, signal := range []os.Signal{os.Kill, os.Interrupt} {
		server := startAt(t, pair.A, serve...)
		var ready serveReady
		if err := json.Unmarshal([]byte(next(t, server.lines, `"event":"ready"`)), &ready); err != nil {
			t.Fatal(err)
		}
		if ready.Port != "xdp" || ready.Mode != mode {
			t.Errorf("ready line %+v", ready)
		}
		for _, whose := range []string{"asavie", "own", "asavie"} {
			client := startAt(t, pair.B, append([]string{"call", ready.Address, "echo", "hello", "--count", "3", "--timeout", "10s"}, on(pair.B, whose)...)...)
			next(t, client.lines, "hello")
			if code := client.exitOf(t); code != exitOK {
				t.Errorf("call over %s: exit code %d", whose, code)
			}
		}
		bench := startAt(t, pair.B, append(strings.Fields("bench closed "+ready.Address+quick+"-o json"), on(pair.B, "asavie")...)...)
		next(t, bench.lines, mode)
		if code := bench.exitOf(t); code != exitOK {
			t.Errorf("bench: exit code %d", code)
		}
		server.signal(t, signal)
		if signal == os.Interrupt {
			next(t, server.lines, `"event":"stopped"`)
		}
		if code := server.exitOf(t); signal == os.Interrupt && code != exitOK {
			t.Errorf("serve: exit code %d", code)
		}
	}
}

// TestOtherSocketsAreRefused asks for what they cannot do, and where a foreign program is: it fails, without a fallback that would hide
// it, and nobody is evicted.
func TestOtherSocketsAreRefused(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2})
	stranger := labtest.Stranger(t, "somebody_else")
	if err := pair.B.Do(func() error {
		attached, err := link.AttachXDP(link.XDPOptions{Program: stranger, Interface: pair.B.Index})
		if err == nil {
			t.Cleanup(func() { attached.Close() })
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		end  *lab.End
		more []string
		want string
	}{
		{pair.A, nil, "choose one of them"},
		{pair.B, []string{"--queues", "1"}, "somebody_else"},
	} {
		p := startAt(t, c.end, append([]string{"serve", "--interface", c.end.Interface, "--xsk", "asavie"}, c.more...)...)
		next(t, p.stderr, c.want)
		if code := p.exitOf(t); code != exitInternal {
			t.Errorf("%s: exit code %d", c.want, code)
		}
	}
	if err := pair.B.Do(func() error {
		status, err := bpf.Inspect(pair.B.Interface)
		if err == nil && status.Name != "somebody_else" {
			t.Errorf("the foreign program is gone: %+v", status)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
