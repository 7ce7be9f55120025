//go:build linux && !portable

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
)

// packetsIn counts the packets in and out of a capture.
func packetsIn(t *testing.T, path string) (in, out uint64) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(text), pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, _, options, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return in, out
		}
		if err != nil {
			t.Fatal(err)
		}
		if options.Flags.Direction == pcapgo.NgEpbFlagDirectionInbound {
			in++
		} else {
			out++
		}
	}
}

// TestCaptureUsage are captures that cannot be meant.
func TestCaptureUsage(t *testing.T) {
	for line, word := range map[string]string{
		"serve --capture -":                                       "standard output is for data",
		"serve --capture-snap 96":                                 "need --capture",
		"serve --capture-bytes 1MiB":                              "need --capture",
		"serve --capture-rotate":                                  "need --capture",
		"serve --capture x --capture-bytes 131071":                "at least 128KiB",
		"serve --capture x --capture-bytes 100MB":                 "100MiB",
		"serve --capture x --capture-bytes 9999999999GiB":         "100MiB",
		"call 127.0.0.1 echo --capture x --capture-snap 47":       "48",
		"bench closed 127.0.0.1 --capture x --capture-snap 65536": "65535",
	} {
		refused(t, line, word)
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a file was created for a command that was refused")
	}
}

// TestCapture has every command that opens a port capture its traffic, over either port. The files are complete when the commands are over.
func TestCapture(t *testing.T) {
	for _, p := range places(t) {
		t.Run(p.name, func(t *testing.T) {
			dir := t.TempDir()
			atServer, atCall, atBench := filepath.Join(dir, "server"), filepath.Join(dir, "call"), filepath.Join(dir, "bench")
			s := startServe(t, p.onServer, append(p.server, "--capture", atServer)...)
			p.run(t, "call "+s.Address+" echo hello --capture "+atCall).check(t, exitOK, "hello", "the capture is complete")
			var d benchData
			r := p.run(t, "bench closed "+s.Address+quick+"-o json --capture-snap 48 --capture "+atBench)
			r.check(t, exitOK)
			r.decode(t, &d)
			last := s.end(t)

			in, out := packetsIn(t, atServer)
			if port := last.Port; in < port.Received || in+out < port.Captured || port.CaptureMissed != 0 || in < 2 || out < 2 {
				t.Errorf("the server's file has %d packets in and %d out, its port counted %+v", in, out, port)
			}
			if in, out = packetsIn(t, atCall); in == 0 || out == 0 {
				t.Errorf("a call's file has %d packets in and %d out", in, out)
			}
			if in, out = packetsIn(t, atBench); d.Client.Port.Captured == 0 || in+out < d.Client.Port.Captured {
				t.Errorf("bench's file has %d packets in and %d out, its port counted %+v", in, out, d.Client.Port)
			}
		})
	}
}

// TestCaptureFails captures where nothing can be written, and into a file that becomes full: the command goes on and says so.
func TestCaptureFails(t *testing.T) {
	p := places(t)[0]
	s := startServe(t, p.onServer, p.server...)
	call := "call " + s.Address + " echo hello --capture "
	p.run(t, call+"/nosuch/x.pcapng").check(t, exitInternal, "/nosuch/x.pcapng")
	p.run(t, call+t.TempDir()).check(t, exitInternal, "is a directory")
	p.run(t, call+"/dev/full").check(t, exitInternal, "hello", "writing the capture", syscall.ENOSPC.Error())
	small := filepath.Join(t.TempDir(), "small")
	full := p.run(t, call+small+" --capture-bytes 128KiB --count 500 -o jsonl --strict")
	full.check(t, exitWarning, "the capture is not complete")
	if lines := strings.Count(full.stdout, `"outcome":"ok"`); lines != 500 {
		t.Errorf("%d calls of 500 were answered", lines)
	}
	if info, err := os.Stat(small); err != nil || info.Size() > 128<<10 {
		t.Errorf("%v, %v", info, err)
	}
	p.run(t, call+small+" --capture-bytes 128KiB --capture-rotate --count 500 -o jsonl --strict").check(t, exitOK, "the capture is complete")
	if in, out := packetsIn(t, small+".old"); in+out < 100 {
		t.Errorf("the older file has %d packets in and %d out", in, out)
	}
	s.end(t)
}

// TestCaptureStoppedAtOnce has a second signal end a server that is in the middle of a request: its file is whole all the same.
func TestCaptureStoppedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pcapng")
	server := startProgram(t, asProgramVariable, "serve", "--address", "127.0.0.1", "--port", "0", "-o", "jsonl",
		"--stats-interval", "5ms", "--drain-timeout", "1h", "--slo", "5s", "--capture", path)
	var ready serveReady
	if err := json.Unmarshal([]byte(next(t, server.lines, `"event":"ready"`)), &ready); err != nil {
		t.Fatal(err)
	}
	caller := startProgram(t, asProgramVariable, "call", ready.Address, "sleep", "--work", "10s", "--timeout", "1m")
	next(t, server.lines, `"in_service_count":1`)
	server.signal(t, syscall.SIGTERM)
	next(t, server.stderr, "draining")
	server.signal(t, syscall.SIGTERM)
	next(t, server.stderr, "the capture is complete")
	if code := server.exitOf(t); code != exitInternal {
		t.Errorf("exit code %d", code)
	}
	if in, out := packetsIn(t, path); in == 0 || out == 0 {
		t.Errorf("the file has %d packets in and %d out", in, out)
	}
	caller.signal(t, syscall.SIGTERM) // nobody will answer it
	caller.exitOf(t)
}

// TestByteSize reads sizes, and prints them as they can be read again.
func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{
		"0": 0, "131072": 128 << 10, "1000": 1000, "128KiB": 128 << 10, "100MiB": 100 << 20, "3GiB": 3 << 30, "1025KiB": 1025 << 10,
		"8589934591GiB": 8589934591 << 30,
	} {
		var s, again byteSize
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q: %d, %v", text, s, err)
		}
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%q is printed as %q", text, s.String())
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "1 MiB", "1MB", "1KiBMiB", "8589934592GiB", "9223372036854775808"} {
		if err := new(byteSize).Set(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
