package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
)

// patience bounds the waits of these tests; only a failure reaches it.
const patience = 60 * time.Second

// onFile puts a tap that writes a file on a port.
func onFile(t *testing.T, cfg Config) (p *port, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.pcapng")
	tap, err := Create(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tap.Close() })
	return tap.Wrap(&fake{}).(*port), path
}

func readFile(t *testing.T, path string) file {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return read(t, f)
}

// sendUntil sends numbered packets of 1000 bytes until something holds, and returns how many it sent. It waits for the writer whenever the ring is full.
func sendUntil(t *testing.T, p *port, holds func() bool) (sent int) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); sent++ {
		send(p, fmt.Sprintf("%1000d", sent))
		for p.tap.ring.filling() && !holds() {
			time.Sleep(100 * time.Microsecond)
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v", patience)
		}
	}
	return sent
}

// TestFileFull sends more than the file may hold: it ends below its bound, complete, and says what is missing.
func TestFileFull(t *testing.T) {
	for _, bound := range []int64{FileBytesMin, FileBytesMin + 1000, 1 << 20} {
		p, path := onFile(t, Config{FileBytes: bound})
		sent := sendUntil(t, p, p.tap.deaf.Load)
		send(p, "more")
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		s := p.tap.Stats()
		if s.Captured+s.Missed != uint64(sent)+1 || s.Missed == 0 {
			t.Errorf("%+v of %d", s, sent+1)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		got := readFile(t, path)
		const block = 1092
		if info.Size() > bound || info.Size() < bound-block-trailerMax {
			t.Errorf("a file of %d bytes, of %d", info.Size(), bound)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
		for i, r := range got.records {
			if r.payload() != fmt.Sprintf("%1000d", i) {
				t.Fatalf("packet %d is %q", i, r.payload())
			}
		}
		if uint64(len(got.records)) != s.Captured || len(got.statistics) != 2 || got.statistics[0].Comment != "the capture ends here: the file is full" {
			t.Errorf("%d packets in the file, %d captured; %+v", len(got.records), s.Captured, got.statistics)
		}
		if want := fmt.Sprintf("captured %d packets, missed %d;", s.Captured, s.Missed); !strings.Contains(got.last(t), want) {
			t.Errorf("at the end: %s, want %s", got.last(t), want)
		}
	}
}

// TestRotate fills several files: two remain, complete and within the bound, with the newest packets in order.
func TestRotate(t *testing.T) {
	p, path := onFile(t, Config{FileBytes: FileBytesMin, Rotate: true})
	sent := 0
	sendUntil(t, p, func() bool { sent++; return sent > 500 })
	if s := p.Stats(); s.Captured != 500 || s.CaptureMissed != 0 {
		t.Errorf("captured %d, missed %d", s.Captured, s.CaptureMissed)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	older, newer := readFile(t, path+oldSuffix), readFile(t, path)
	all := append(older.records, newer.records...)
	for i, r := range all {
		if want := fmt.Sprintf("%1000d", 500-len(all)+i); r.payload() != want {
			t.Fatalf("packet %d of %d is %q, want %q", i, len(all), r.payload(), want)
		}
	}
	if len(older.records) < 100 || len(newer.records) == 0 || older.at.Name != "fake" || newer.at.Name != "fake" {
		t.Errorf("%d and %d packets", len(older.records), len(newer.records))
	}
	if older.last(t) != "the capture goes on in the next file: this one is full" || !strings.Contains(newer.last(t), "captured 500 packets, missed 0") {
		t.Errorf("at the ends: %s; %s", older.last(t), newer.last(t))
	}
	for _, name := range []string{path, path + oldSuffix} {
		if info, err := os.Stat(name); err != nil || info.Size() > FileBytesMin {
			t.Errorf("%v, %v", info, err)
		}
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
}

// TestRotateFails has nowhere to put the next file.
func TestRotateFails(t *testing.T) {
	p, path := onFile(t, Config{FileBytes: FileBytesMin, Rotate: true})
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	sendUntil(t, p, p.tap.deaf.Load)
	if err := p.Close(); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "next file") {
		t.Errorf("%v", err)
	}
}

// failing is a disk that is full after some bytes.
type failing struct {
	bytes.Buffer
	room int
}

func (f *failing) Write(b []byte) (int, error) {
	n, _ := f.Buffer.Write(b[:min(len(b), f.room-f.Len())])
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (f *failing) Truncate(size int64) error {
	f.Buffer.Truncate(int(size))
	return nil
}

// TestDiskFull has writing fail in the middle of a block: the file ends with a whole one, the port goes on, and Close says what was wrong.
func TestDiskFull(t *testing.T) {
	for _, room := range []int{0, 10, 100_001} {
		disk := &failing{room: room}
		tap, err := New(disk, Config{})
		if err != nil {
			t.Fatal(err)
		}
		f := &fake{}
		p := tap.Wrap(f).(*port)
		sent := sendUntil(t, p, tap.deaf.Load)
		if len(f.sent) != sent {
			t.Errorf("%d packets sent of %d", len(f.sent), sent)
		}
		if err := p.Close(); !errors.Is(err, syscall.ENOSPC) || !errors.Is(tap.Close(), syscall.ENOSPC) {
			t.Errorf("closed with %v, then %v", err, tap.Close())
		}
		s := tap.Stats()
		if s.Captured+s.Missed != uint64(sent) || s.Missed == 0 {
			t.Errorf("%+v of %d", s, sent)
		}
		if room < 1000 {
			if disk.Len() != 0 {
				t.Errorf("half a head of %d bytes", disk.Len())
			}
			continue
		}
		if got := read(t, &disk.Buffer); uint64(len(got.records)) != s.Captured || s.Captured == 0 {
			t.Errorf("%d packets in the file; %+v", len(got.records), s)
		}
	}
}

// TestClose closes in every order.
func TestClose(t *testing.T) {
	broken := errors.New("broken")
	tap, err := New(io.Discard, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tap.Wrap(&fake{closed: broken}).Close(); !errors.Is(err, broken) {
		t.Errorf("the port's error became %v", err)
	}
	p, path := onFile(t, Config{})
	send(p, "before")
	if err := errors.Join(p.tap.Close(), p.tap.Close()); err != nil {
		t.Error(err)
	}
	send(p, "after")
	if s := p.Stats(); s.Captured != 1 || s.CaptureMissed != 1 {
		t.Errorf("%+v", s)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got := readFile(t, path); len(got.records) != 1 || got.records[0].payload() != "before" {
		t.Errorf("%+v", got.records)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("two ports on one tap")
			}
		}()
		p.tap.Wrap(&fake{})
	}()
	unused := filepath.Join(t.TempDir(), "unused.pcapng")
	if tap, err = Create(unused, Config{}); err == nil {
		err = tap.Close()
	}
	if text, readErr := os.ReadFile(unused); err != nil || readErr != nil || !bytes.HasPrefix(text, []byte{0x0a, 0x0d, 0x0d, 0x0a}) {
		t.Errorf("%v, %v: %x", err, readErr, text)
	}
}

// TestPipe captures into a named pipe, as for a Wireshark that looks on.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte, 1)
	go func() {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		got <- text
	}()
	tap, err := Create(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := tap.Wrap(&fake{})
	send(p, "live")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if f := read(t, bytes.NewReader(<-got)); len(f.records) != 1 || f.records[0].payload() != "live" {
		t.Errorf("%+v", f.records)
	}
}

// TestPipeWithoutReader closes while nobody reads: it takes as long as the tap has patience, and no longer.
func TestPipeWithoutReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	tap, err := Create(path, Config{RingBytes: RingBytesMin})
	if err != nil {
		t.Fatal(err)
	}
	p := tap.Wrap(&fake{}).(*port)
	for p.Stats().CaptureMissed == 0 { // the pipe is full, and the ring after it
		send(p, strings.Repeat("x", 1000))
	}
	if err := p.Close(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestRefusals are configurations and places that cannot be. Nothing that is there is lost.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "there")
	if err := os.WriteFile(path, []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	for word, cfg := range map[string]Config{
		"47 bytes of each packet":    {SnapBytes: SnapBytesMin - 1},
		"65536 bytes of each packet": {SnapBytes: SnapBytesMax + 1},
		"file of 131071":             {FileBytes: FileBytesMin - 1},
		"file of -1":                 {FileBytes: -1},
		"ring of 131071":             {RingBytes: RingBytesMin - 1},
		"ring of 1073741825":         {RingBytes: RingBytesMax + 1},
	} {
		if _, err := Create(path, cfg); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "dear" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := New(io.Discard, Config{Rotate: true}); err == nil {
		t.Error("a writer was rotated")
	}
	if _, err := Create("/dev/null", Config{Rotate: true}); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("rotating a device: %v", err)
	}
	if _, err := Create(dir, Config{}); err == nil {
		t.Error("a folder was taken for a file")
	}
	var p dispatcher.Port = &fake{}
	if tap, err := Create("/dev/null", Config{SnapBytes: SnapBytesMin, FileBytes: FileBytesMin, RingBytes: RingBytesMin}); err != nil {
		t.Error(err)
	} else if err := tap.Wrap(p).Close(); err != nil {
		t.Error(err)
	}
}
